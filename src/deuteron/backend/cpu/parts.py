"""The parts of a loop whose masks have limits (`plan/vectors/limits.py`): where no lane is on, nothing is loaded.

    x = load(p + c, mask=c < n, other=-inf)         n = 1000, 16 lanes, four vectors at a time
    for c in 0..960 step 64:                        load, without a mask
    for c in 960..1024 step 16:                     load where the mask is on
    for c in 1024..1024 step 64:                    -inf

Parts begin at multiples of the lanes. The last part is there for tiles that are wider than the limit. Loops without
masks take a third less of sums of long rows: asking whether all lanes are on ends a block of code for each vector. In
short loops one vector at a time comes beyond the limit, from the first without a lane on. A limit from which lanes are
on (`c >= 0`) is taken to be at the first element, or the first part is empty.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from deuteron.backend.cpu.context import AxisIndex, Context
from deuteron.backend.cpu.fragment import Uniform, one_element
from deuteron.backend.cpu.plan.indices import Index
from deuteron.backend.cpu.plan.vectors.limits import Limits
from deuteron.backend.cpu.plan.vectors.mask_limits import Limit
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, bit_width, const, zero
from deuteron.ir.arith import CmpIOp

# Iterations from which on a loop is worth code for several parts. Of two iterations that reduce or compute floats they
# save a fifth to a third of softmax and layer norm of 65 of 128 columns, and take a tenth more to compile; of two that
# only move elements they would save nothing.
MIN_PARTED, MIN_PARTED_COMPUTED = 4, 2

At = Callable[[Index], AxisIndex]  # the index of a tile at the first element of the loop


class Stride(NamedTuple):
    """What an iteration does: so many vectors of so many lanes."""

    lanes: int
    copies: int

    @property
    def elements(self) -> int:
        return self.lanes * self.copies


@dataclass(frozen=True)
class Part:
    """A loop over `start <= index < stop`, what an iteration does, and the comparisons it knows."""

    start: Value
    stop: Value
    stride: Stride
    known: Mapping[tuple[CmpIOp, Index], bool] = field(default_factory=dict)


def parts_of(
    ctx: Context, limits: Limits, extent: int, most: Stride, least: Stride, first: At, across: int = 1
) -> list[Part]:
    """The parts of the loop over a dimension, which is about to begin; `least`: an iteration around the limits;
    `across`: elements along the other dimension of a block.
    """
    b = ctx.emitter.innermost()
    met = {limit: elements_before(ctx, limit, first(limit.index), extent) for limit in limits.limits}
    ends = [met[limit] for limit in limits.limits if limit.is_below]
    conditions = [ctx.evaluate(op.results[0], first(index)).value for op, index in limits.fixed]
    conditions += [b.icmp("eq", b.or_(*met[limit]), zero("i32")) for limit in limits.limits if not limit.is_below]
    conditions += [_all_are_on(ctx, limit, first(limit.index), across) for limit in limits.others]
    before_first = functools.reduce(b.umin, [count for count, _ in ends], const("i32", extent))
    for condition in conditions:
        before_first = b.select(condition, before_first, zero("i32"))
    on = {(limit.op, limit.index): True for limit in (*limits.limits, *limits.others)}
    on |= dict.fromkeys(limits.fixed, True)
    full = _rounded_down(b, before_first, most.elements)
    if extent == least.elements:
        return [Part(const("i32", 0), full, most, on), Part(full, const("i32", extent), least)]
    before_last = functools.reduce(b.umax, [known for _, known in ends]) if ends else const("i32", extent)
    last = least if extent < MIN_PARTED * most.elements else most
    unit = least.elements if limits.ends else last.elements
    past = _rounded_down(b, b.add(before_last, const("i32", unit - 1)), unit)
    off = {(limit.op, limit.index): False for limit in limits.limits if limit.is_below}
    parts = [Part(const("i32", 0), full, most, on), Part(full, past, least)]
    beyond = Part(past, const("i32", extent), last, off)
    return parts if limits.ends or not off else [*parts, beyond]


def _rounded_down(b: Builder, count: Value, unit: int) -> Value:
    return b.mul(b.udiv(count, const("i32", unit)), const("i32", unit))


def first_element(index: Index) -> AxisIndex:
    """The index, in the code, of the first element of a tile."""
    return tuple(one_element(0) if isinstance(axis, int) else axis for axis in index)


def elements_before(ctx: Context, limit: Limit, index: AxisIndex, extent: int) -> tuple[Value, Value]:
    """How many elements certainly come before a limit; and from where on all are certainly behind it: from nowhere on,
    where numbers wrap around.
    """
    x, bound = (ctx.evaluate(value, index).value for value in (limit.counted, limit.bound))
    b, sign, bits = ctx.emitter.innermost(), "s" if limit.is_signed else "u", bit_width(x.type)
    distance = b.sub(bound, x)
    if limit.includes:
        distance = b.add(b.umin(distance, const(x.type, extent - 1)), const(x.type, 1))
    is_before = b.icmp(f"{sign}le" if limit.includes else f"{sign}lt", x, bound)
    count = b.select(is_before, b.umin(distance, const(x.type, extent)), const(x.type, 0))
    count = b.trunc(count, "i32") if bits > 32 else count
    highest = (1 << (bits - 1 if limit.is_signed else bits)) - extent
    counts_up = b.icmp(f"{sign}le", x, const(x.type, highest))
    return count, b.select(counts_up, count, const("i32", extent))


def is_at_end(ctx: Context, limit: Limit, extent: int) -> Value:
    """Whether a mask is on as far as a limit says, for all elements of a tile."""
    return _all_are_on(ctx, limit, first_element(limit.index), extent)


def _all_are_on(ctx: Context, limit: Limit, index: AxisIndex, extent: int) -> Value:
    """Whether all of so many elements are before a limit, or none is, where the mask is on behind it."""
    before, known = elements_before(ctx, limit, index, extent)
    b = ctx.emitter.innermost()
    if limit.is_below:
        return b.icmp("eq", before, const("i32", extent))
    return b.icmp("eq", b.or_(before, known), const("i32", 0))


@contextmanager
def knowing(ctx: Context, part: Part, indices: Callable[[Index], Sequence[AxisIndex]]) -> Iterator[None]:
    """Evaluate with the comparisons that a part knows; what was computed of them is forgotten afterwards."""
    before = ctx.nest_state.tiles
    ctx.nest_state.tiles = dict(before)
    for (op, index), is_true in part.known.items():
        for at in indices(index):
            ctx.nest_state.tiles[op.results[0], at] = Uniform(const("i1", is_true), 0)
    yield
    ctx.nest_state.tiles = before
