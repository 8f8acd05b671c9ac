"""Which stores of a function may come before a load, or need not wait for it.

    x = load a[...]                      Writers(func).are_apart(x): the store needs x, and so comes after it, whatever
    store b[...], x + 1                  overlaps with what. Of the second nobody knows: the kernel relies on
    store c[...], 1                      a and c being apart (apart.py)

That the store needs the load helps where all of a tile is there before anything is done with it: copies that are waited
for. Of what each thread loads for itself `element_order.py` knows more.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from deuteron.analysis.points_to import Targets
from deuteron.analysis.written_arguments import has_order, is_apart, read_by, written_arguments, written_by
from deuteron.ir.effects import GLOBAL, WRITE, effects_inside
from deuteron.ir.nested import nested_ops


def writers_in(op: Operation) -> list[Operation]:
    """The ops in the regions of a function or a loop that write global memory."""
    found = (inner for inner, effect in effects_inside(op) if effect.resource is GLOBAL and effect.kind is WRITE)
    return list(dict.fromkeys(found))


class Writers:
    """What a function writes. `comes_after(writer, load)`: whether a writer waits for a load that comes before it."""

    def __init__(self, func: Operation, comes_after: Callable[[Operation, Operation], bool] | None = None):
        self._comes_after = comes_after or needs
        self._all, self._ops = written_arguments(func), writers_in(func)

    def are_apart(self, load: Operation) -> bool:
        """Whether a load may be done before or after what the function writes, but for what needs it."""
        read = read_by(load)
        if has_order(load) or not read.is_known or read.shares(self._all):
            return False
        unordered = [op for op in self._ops if may_come_first(op, load) or not self._comes_after(op, load)]
        return is_apart(load, union(map(written_by, unordered)))


def union(targets) -> Targets:
    found = Targets()
    for one in targets:
        found |= one
    return found


def may_come_first(first: Operation, then: Operation) -> bool:
    """Whether a program may do one op, in this iteration of a loop or in another, before the other op."""
    op: Operation | None = then
    while op is not None and op.parent is not None:
        beside = op.parent.find_ancestor_op_in_block(first)
        if beside is not None:
            return _is_in_loop(op if beside is op else op.parent_op()) or beside.is_before_in_block(op)
        op = op.parent_op()
    return True


def _is_in_loop(op: Operation | None) -> bool:
    while op is not None and not isinstance(op, scf.ForOp | scf.WhileOp):
        op = op.parent_op()
    return op is not None


def needs(op: Operation, load: Operation) -> bool:
    """Whether an op is computed from what a load gives, or runs where that says so."""
    pending, seen = [*_operands_around(op)], set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        owner = value.block.parent_op() if isinstance(value, BlockArgument) else value.owner
        if owner is load:
            return True
        pending += _sources(owner)
    return False


def _operands_around(op: Operation) -> list[SSAValue]:
    """What an op is given, and what decides whether it runs."""
    found = [operand for inner in nested_ops(op) for operand in inner.operands]
    parent = op.parent_op()
    return found if parent is None else [*found, *parent.operands, *_operands_of_parents(parent)]


def _operands_of_parents(op: Operation) -> list[SSAValue]:
    parent = op.parent_op()
    return [] if parent is None else [*parent.operands, *_operands_of_parents(parent)]


def _sources(op: Operation) -> list[SSAValue]:
    """What is needed for what an op gives: of a loop or branch what it is given, and the ends of its regions."""
    ends = [region.block.last_op for region in op.regions if region.blocks]
    return [*op.operands, *(operand for end in ends if end is not None for operand in end.operands)]
