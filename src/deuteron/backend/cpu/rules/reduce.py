"""tt.reduce: accumulators through a loop, then their lanes combined by shuffles.

Sums and products of narrow floats are accumulated in float and rounded once.

8 lanes:  a b c d e f g h   ->  a+e b+f c+g d+h   ->  a+e+c+g b+f+d+h   ->  the sum
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from xdsl.ir import Block, Operation

from deuteron.backend.cpu.algebra import as_vector, lanewise, of_value
from deuteron.backend.cpu.context import AxisIndex, Context
from deuteron.backend.cpu.emitter import OpenLoop
from deuteron.backend.cpu.fragment import Fragment
from deuteron.backend.cpu.memory.elements import register_type
from deuteron.backend.cpu.memory.formats import rounded
from deuteron.backend.cpu.memory.places import write_place
from deuteron.backend.cpu.plan.roots import ReduceRoot
from deuteron.backend.cpu.rules.region import adds_in_float, combine, combine_scalars, identity_of
from deuteron.backend.llvm.types import Value, const, vector, zero
from deuteron.backend.rule_errors import guarded
from deuteron.ir.types import element_type_of, is_tile

Group = list[Value]  # a vector for each operand of the reduction


def reduce_elements(ctx: Context, op: Operation, *elements: Fragment) -> Fragment:
    """Of a reduction without a loop: what its elements come to, the first ones first."""
    block = op.combine.block
    total = functools.reduce(lambda total, element: _accumulate(ctx, block, [total], [element])[0], elements)
    return _complete(ctx, block, total)


def _accumulate(ctx: Context, block: Block, first: Sequence[Fragment], second: Sequence[Fragment]) -> list[Fragment]:
    add = adds_in_float(block)
    return combine(ctx, block, first, second) if add is None else [lanewise(ctx.emitter, add, *first, *second)]


def _complete(ctx: Context, block: Block, total: Fragment) -> Fragment:
    """The result of an accumulator."""
    if adds_in_float(block) is None:
        return total
    type = element_type_of(block.args[0].type)
    return lanewise(ctx.emitter, lambda b, x: rounded(b, x, type, ctx.target), total)


class Reduction:
    """A reduction while its loop is emitted, part by part. In the first part each of the vectors that are computed at a
    time has a group of accumulators; in those after it they share one, and are combined with each other before.
    """

    def __init__(self, ctx: Context, root: ReduceRoot, lanes: int):
        self.root = root
        self._ctx, self._lanes = ctx, lanes
        self._block = root.op.combine.block
        self._identity = identity_of(self._block)
        self._groups: list[Group | None] = []
        self._pending: list[Group] = []
        self._sharing = 1
        self._loop: OpenLoop | None = None

    def before(self, copies: int) -> list[Value]:
        """The accumulators before a part of the loop, which computes so many vectors at a time."""
        if self._groups:
            self._groups, self._sharing = [self._fold(self._groups)], copies
            return self.values()
        self._groups = [None] * copies
        types = [vector(register_type(source.type), self._lanes) for source in self.root.sources]
        if self._identity is None:
            group = [zero(type) for type in types]
        else:
            group = [as_vector(self._ctx.emitter, self._identity, self._lanes)]
        return group * copies

    def enter(self, loop: OpenLoop | None, carried: Iterator[Value]) -> None:
        """Take the accumulators at the head of the loop."""
        self._loop = loop
        if loop is not None:
            self._groups = [[next(carried) for _ in self.root.sources] for _ in self._groups]

    def combine(self, copy: int, index: AxisIndex, elements: list[Fragment]) -> None:
        """Combine the elements of one vector into their accumulators."""
        emitter = self._ctx.emitter
        self._pending.append([as_vector(emitter, fragment, self._lanes) for fragment in elements])
        if len(self._pending) < self._sharing:
            return
        group, self._pending = self._fold(self._pending), []
        copy //= self._sharing
        before = self._groups[copy]
        if before is None:
            self._groups[copy] = group
            return
        if self._identity is None:
            is_first = emitter.innermost().icmp("eq", self._loop.index, const("i32", 0))
        if self.root.body is not None:
            args = (self.root.body, self._block, is_first, before, group)
            self._groups[copy] = guarded(self.root.op, combine_scalars, self._ctx, *args)
            return
        combined = self._combine(before, group)
        if self._identity is None:
            b = emitter.innermost()
            combined = [b.select(is_first, new, old) for new, old in zip(group, combined, strict=True)]
        self._groups[copy] = combined

    def values(self) -> list[Value]:
        return [value for group in self._groups for value in group]

    def leave(self, after: Iterator[Value]) -> None:
        """Take the accumulators after a part of the loop."""
        self._groups = [[next(after) for _ in self.root.sources] for _ in self._groups]

    def finish(self, axis: int, vectorised: bool, indices: list[AxisIndex]) -> None:
        """Write the results."""
        groups = self._groups
        if vectorised:
            groups = [self._across_lanes(self._fold(groups))]
        for index, group in zip(indices, groups, strict=True):
            self._write(index[:axis] + index[axis + 1 :], group)

    def _fold(self, groups: list[Group]) -> Group:
        """Combine the copies, neighbours first."""
        while len(groups) > 1:
            groups = [self._combine(a, b) for a, b in zip(groups[::2], groups[1::2], strict=True)]
        return groups[0]

    def _across_lanes(self, group: Group) -> Group:
        b, lanes = self._ctx.emitter.innermost(), self._lanes
        while lanes > 1:
            lanes //= 2
            low = [b.shufflevector(value, None, range(lanes)) for value in group]
            high = [b.shufflevector(value, None, range(lanes, 2 * lanes)) for value in group]
            if lanes == 1:
                low, high = ([b.extractelement(value, 0) for value in half] for half in (low, high))
            group = self._combine(low, high)
        return group

    def _combine(self, first: Group, second: Group) -> Group:
        ctx, level = self._ctx, self._ctx.emitter.depth
        groups = [[of_value(value, level) for value in group] for group in (first, second)]
        results = guarded(self.root.op, _accumulate, ctx, self._block, *groups)
        lanes = 1 if not first[0].type.startswith("<") else int(first[0].type[1:].split(" ")[0])
        return [as_vector(ctx.emitter, result, lanes) for result in results]

    def _write(self, index: AxisIndex, group: Group) -> None:
        ctx = self._ctx
        for result, value in zip(self.root.op.results, group, strict=True):
            total = _complete(ctx, self._block, of_value(value, ctx.emitter.depth))
            if is_tile(result.type):
                write_place(ctx, ctx.plan.places[result], index, total)
            else:
                ctx.bind(result, total.value)


RULES = {"tt.reduce": reduce_elements}
