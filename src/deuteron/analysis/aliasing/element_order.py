"""Whether each element that a store writes waits for the element of a load at its place, or for all of them.

    x = load(a + i)                         EACH   x[i]
    y = x * 2 + load(b + i)                 EACH   an op on each element of it
    m = max(y)                              ALL    of a tile of one dimension: it is known when all of them are
    store(out + i, exp(y - m))              ElementOrder(func).waits_for_each(load)(store): True

A thread loads its elements one by one, and what they are needed for may be stored while others are still to be loaded.
Through one array at the same places that is right where each store waits for its own element, or for all. Where
elements move (transposes, rows that are repeated, reductions of a part) nothing is known: the answer is no.

That is found out for all loads at once, in the order of the function: what is waited for, a load or what a loop
carries, is a bit of a number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from deuteron.ir.nested import nested_ops, of_kind
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.tt.reduce import ReduceOp
from deuteron.ir.ttg.inference import is_elementwise
from deuteron.ir.types import is_tile, shape_of


class Waits(NamedTuple):
    """What an element of a value waits for: the elements at its place of `each`, and all elements of `all`."""

    each: int = 0
    all: int = 0

    @property
    def any(self) -> int:
        return self.each | self.all

    def of(self, sources: int) -> Waits:
        return Waits(self.each & sources, self.all & sources)

    def or_longer(self, other: Waits) -> Waits:
        """Of an op that needs both."""
        every = self.all | other.all
        return Waits((self.each | other.each) & ~every, every)

    def or_shorter(self, other: Waits) -> Waits:
        """Of what is one or the other."""
        every = self.all & other.all
        return Waits(self.any & other.any & ~every, every)


NOTHING = Waits()


class ElementOrder:
    """For which elements of the loads of a function its values wait."""

    def __init__(self, func: Operation):
        ops = nested_ops(func)
        loops = of_kind(ops, scf.ForOp)
        sources = [load.result for load in of_kind(ops, LoadOp)]
        sources += [argument for loop in loops for argument in loop.body.block.args[1:]]
        self._bits = {source: 1 << number for number, source in enumerate(sources)}
        self._inside = {loop: self._sources_in(loop) for loop in loops}
        self._waits: dict[SSAValue, Waits] = {}
        for region in func.regions:
            self._visit(region.block)

    def waits_for_each(self, load: LoadOp) -> Callable[[Operation], bool]:
        """Whether a writer that comes after a load waits for it, element by element."""
        bit = self._bits[load.result]
        return lambda writer: any(self._of(operand).any & bit for operand in writer.operands)

    def _sources_in(self, loop: scf.ForOp) -> int:
        """What is waited for in each iteration of a loop."""
        values = [result for op in nested_ops(loop)[1:] for result in op.results]
        values += [argument for inner in nested_ops(loop, scf.ForOp) for argument in inner.body.block.args]
        return sum(self._bits.get(value, 0) for value in values)

    def _of(self, value: SSAValue) -> Waits:
        return self._waits.get(value, NOTHING)

    def _visit(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, scf.ForOp):
                self._loop(op)
            elif op.regions and not isinstance(op, ReduceOp):
                self._regions(op)
            else:
                found = self._of_all(op)
                for result in op.results:
                    self._enter(result, found)

    def _enter(self, value: SSAValue, waits: Waits) -> None:
        """A source waits for itself."""
        bit = self._bits.get(value, 0)
        own = Waits(bit, 0) if is_tile(value.type) else Waits(0, bit)
        self._waits[value] = waits.or_longer(own) if bit else waits

    def _of_all(self, op: Operation) -> Waits:
        found = NOTHING
        for operand in op.operands:
            found = found.or_longer(self._of(operand))
        if not found.each or _keeps_places(op):
            return found
        return Waits(0, found.any) if _is_whole_reduction(op) else Waits(0, found.all)

    def _regions(self, op: Operation) -> None:
        """What is carried by other loops waits for nothing that is known; of branches both count."""
        for region in op.regions:
            for block in region.blocks:
                self._visit(block)
        if isinstance(op, scf.IfOp):
            for index, result in enumerate(op.results):
                first, second = (self._of(region.block.last_op.operands[index]) for region in op.regions)
                self._enter(result, first.or_shorter(second))

    def _loop(self, loop: scf.ForOp) -> None:
        """In the first iteration, which comes before the others, it is what enters. After the last one what each adds
        to waits for what enters, and for what any iteration adds.
        """
        inside, body = self._inside[loop], loop.body.block
        for init, argument in zip(loop.iter_args, body.args[1:], strict=True):
            self._enter(argument, self._of(init).of(~inside))
        self._visit(body)
        for index, result in enumerate(loop.results):
            init, argument = loop.iter_args[index], body.args[1 + index]
            yielded, bit = self._of(body.last_op.operands[index]), self._bits[argument]
            if not yielded.any & bit:
                self._enter(result, NOTHING)
                continue
            around = Waits(~0, 0) if yielded.each & bit else Waits(0, ~0)
            entered = self._of(init).or_shorter(around).of(~inside)
            self._enter(result, entered.or_longer(yielded.of(inside)))


def _keeps_places(op: Operation) -> bool:
    return is_elementwise(op) or op.name == "ttg.convert_layout"


def _is_whole_reduction(op: Operation) -> bool:
    return isinstance(op, ReduceOp) and len(shape_of(op.operands[0].type)) == 1
