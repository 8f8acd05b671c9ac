"""Which stores of a function may come before a load, or need not wait for it.

    if first:
        x = load a[...]            ProgramOrder(func, writers_in(func)).after(x): those of b and c; .before(x): none
        store b[...], x + 1        Writers(func).are_apart(x): it needs x, and so comes after it, whatever overlaps with
    else:                          what
        store d[...], 1            a program that does this does not load x
    store c[...], 1                of this nobody knows: the kernel relies on a and c being apart (apart.py)

That the store needs the load helps where all of a tile is there before anything is done with it: copies that are waited
for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from deuteron.analysis.aliasing.points_to import Targets
from deuteron.analysis.aliasing.written_arguments import has_order, is_apart, read_by, written_arguments, written_by
from deuteron.ir.effects import GLOBAL, WRITE, effects_inside
from deuteron.ir.nested import nested_ops
from deuteron.ir.reached import reached

Ops = tuple[Operation, ...]


def writers_in(op: Operation) -> list[Operation]:
    """The ops in the regions of a function or a loop that write global memory."""
    found = (inner for inner, effect in effects_inside(op) if effect.resource is GLOBAL and effect.kind is WRITE)
    return list(dict.fromkeys(found))


class ProgramOrder:
    """Which of some ops a program may do before an op of the function, and which after it.

    In a loop that is before and after: in another iteration. What is in the other branch of an `if` is neither.
    """

    def __init__(self, func: Operation, ops: Sequence[Operation]):
        self._all = tuple(ops)
        self._inside: dict[Operation, Ops] = _by_ancestors(func, ops)
        self._around: dict[Operation, tuple[Ops, Ops]] = {}
        for region in func.regions:
            self._visit(region.block, (), ())

    def before(self, op: Operation) -> Ops:
        return self._around_or_all(op)[0]

    def after(self, op: Operation) -> Ops:
        return self._around_or_all(op)[1]

    def _around_or_all(self, op: Operation) -> tuple[Ops, Ops]:
        """Of an op that is new since then nothing is known."""
        return self._around.get(op, (self._all, self._all))

    def _visit(self, block: Block, before: Ops, after: Ops) -> None:
        """What is around the ops of a block that a program does at most once."""
        here = [(op, self._inside.get(op, ())) for op in block.ops]
        later = (*chain.from_iterable(own for _, own in here), *after)
        for op, own in here:
            later = later[len(own) :] if own else later
            self._around[op] = before, later
            if isinstance(op, scf.IfOp):
                for region in op.regions:
                    for inner in region.blocks:
                        self._visit(inner, before, later)
            elif op.regions:
                self._around |= dict.fromkeys(nested_ops(op)[1:], (before + own, own + later))
            before = before + own if own else before


def _by_ancestors(func: Operation, ops: Iterable[Operation]) -> dict[Operation, Ops]:
    """For each op of a function those of `ops` that are in it, or are it."""
    found = defaultdict(list)
    for op in ops:
        around: Operation | None = op
        while around is not None and around is not func:
            found[around].append(op)
            around = around.parent_op()
    return {op: tuple(inner) for op, inner in found.items()}


class Writers:
    """What a function writes. `waits_for(load)(writer)`: whether a writer that comes after a load waits for it."""

    def __init__(self, func: Operation, waits_for: Callable[[Operation], Callable[[Operation], bool]] | None = None):
        self._waits_for = waits_for or (lambda load: lambda writer: needs(writer, load))
        writers = writers_in(func)
        self._all, self._order = written_arguments(func), ProgramOrder(func, writers)
        self._written = {writer: written_by(writer) for writer in writers}

    def are_apart(self, load: Operation) -> bool:
        """Whether a load may be done before or after what the function writes, but for what needs it."""
        read = read_by(load)
        if has_order(load) or not read.is_known or read.shares(self._all):
            return False
        before, waits = self._order.before(load), self._waits_for(load)
        unordered = [*before, *(op for op in self._order.after(load) if not waits(op))]
        return is_apart(load, union({self._written[op] for op in unordered}))


def union(targets: Iterable[Targets]) -> Targets:
    found = Targets()
    for one in targets:
        found |= one
    return found


def needs(op: Operation, load: Operation) -> bool:
    """Whether an op is computed from what a load gives, or runs where that says so."""
    return any(_owner(value) is load for value in reached(_operands_around(op), lambda value: _sources(_owner(value))))


def _owner(value: SSAValue) -> Operation:
    """What gives a value, or gives it to one of its regions."""
    return value.block.parent_op() if isinstance(value, BlockArgument) else value.owner


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
