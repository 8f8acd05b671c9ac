"""Whether each element that a store writes waits for the element of a load at its place, or for all of them.

    x = load(a + i)                         EACH   x[i]
    y = x * 2 + load(b + i)                 EACH   an op on each element of it
    m = max(y)                              ALL    of a tile of one dimension: it is known when all of them are
    store(out + i, exp(y - m))              waits_for_each(load)(store): True

A thread loads its elements one by one, and what they are needed for may be stored while others are still to be loaded.
Through one array at the same places that is right where each store waits for its own element, or for all. Where
elements move (transposes, rows that are repeated, reductions of a part) nothing is known: the answer is no.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from deuteron.ir.tt.reduce import ReduceOp
from deuteron.ir.ttg.inference import is_elementwise
from deuteron.ir.types import is_tile, shape_of


class Wait(IntEnum):
    """What an element of a value waits for."""

    NOTHING = 0
    EACH = 1
    ALL = 2


def waits_for_each(load: Operation) -> Callable[[Operation], bool]:
    """Whether a writer that comes after a load waits for it, element by element."""
    waits = _Waits(load.results[0])
    return lambda writer: any(map(waits.of, writer.operands))


class _Waits:
    """For which elements of one value others wait."""

    def __init__(self, source: SSAValue):
        self._source = source
        self._known = {source: Wait.EACH if is_tile(source.type) else Wait.ALL}

    def of(self, value: SSAValue) -> Wait:
        if value not in self._known:
            self._known[value] = Wait.NOTHING  # of what is carried around a loop, until more is known
            self._known[value] = self._find(value)
        return self._known[value]

    def _find(self, value: SSAValue) -> Wait:
        if isinstance(value, BlockArgument):
            return self._of_argument(value)
        op = value.owner
        if isinstance(op, scf.ForOp):
            return self._of_loop(op, value.index)
        if isinstance(op, scf.IfOp):
            return min(self.of(region.block.last_op.operands[value.index]) for region in op.regions)
        if op.regions and not isinstance(op, ReduceOp):
            return Wait.NOTHING
        found = max(map(self.of, op.operands), default=Wait.NOTHING)
        if found is Wait.EACH and not _keeps_places(op):
            return Wait.ALL if _is_whole_reduction(op) else Wait.NOTHING
        return found

    def _of_argument(self, argument: BlockArgument) -> Wait:
        """In the first iteration, which comes before the others."""
        loop = argument.block.parent_op()
        if not isinstance(loop, scf.ForOp) or not argument.index or self._is_in(loop):
            return Wait.NOTHING
        return self.of(loop.iter_args[argument.index - 1])

    def _of_loop(self, loop: scf.ForOp, index: int) -> Wait:
        """Of what each iteration adds to: it waits for what enters, and for what any iteration adds."""
        yielded = loop.body.block.last_op.operands[index]
        around = _Waits(loop.body.block.args[1 + index]).of(yielded)
        if not around:
            return Wait.NOTHING
        return self.of(yielded) if self._is_in(loop) else min(self.of(loop.iter_args[index]), around)

    def _is_in(self, loop: scf.ForOp) -> bool:
        """Whether the loop has one of what is waited for in each iteration."""
        owner = self._source.owner
        return loop.is_ancestor(owner if isinstance(owner, Operation) else owner.parent_op())


def _keeps_places(op: Operation) -> bool:
    return is_elementwise(op) or op.name == "ttg.convert_layout"


def _is_whole_reduction(op: Operation) -> bool:
    return isinstance(op, ReduceOp) and len(shape_of(op.operands[0].type)) == 1
