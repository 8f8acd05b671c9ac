"""Emits the segments of a nest whose divisions have one quotient in each (`plan/vectors/segments.py`).

for (i = 0; i < extent; i = end):                       x, q, r: of element i;  q = x // d,  q // c is the same in a run
    end = min(extent, i + room of the run)              the first element with another quotient of a quotient
    for (j = i; j < end; j = stop):                     q and q % c count up, without a division
        stop = min(end, j + room)                       the first element with another q
        for (k = j; k < stop; k += lanes):              x // d: q;  x % d: the one of j + (k - j) * step + [0, step ...]
            body, with the lanes on that are below stop - k

Quotients are counted where the number is not negative and the divisor positive; elsewhere a run is one segment.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from deuteron.backend.cpu.algebra import lanewise
from deuteron.backend.cpu.context import AxisIndex, Context
from deuteron.backend.cpu.emitter import OpenLoop
from deuteron.backend.cpu.fragment import Affine, Axis, Fragment, Uniform, Vector
from deuteron.backend.cpu.memory.full_masks import mask_of, where_both_are_full
from deuteron.backend.cpu.plan.indices import Index
from deuteron.backend.cpu.plan.vectors.mask_limits import Limit
from deuteron.backend.cpu.plan.vectors.quotients import SIGNED
from deuteron.backend.cpu.plan.vectors.regular_quotients import REMAINDERS
from deuteron.backend.cpu.plan.vectors.segments import SHORTEST, Division, Growth, Segments
from deuteron.backend.cpu.segment_rooms import (
    before_wrapping,
    magnitude,
    num_elements,
    room_of_division,
    room_of_limit,
    room_of_widened,
)
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, bit_width, const, vector_const
from deuteron.backend.math.division import rest, safe_divisor

At = Callable[[Index, Axis], AxisIndex]  # the index of a tile where the dimension of the segments has this entry


def lanes_on(ctx: Context, mask: Fragment | None) -> Fragment | None:
    """A mask, without the lanes that are beyond the end of their segment."""
    if ctx.nest_state.lanes_on is None or mask is None:
        return mask if mask is not None else ctx.nest_state.lanes_on
    both = lanewise(ctx.emitter, Builder.and_, mask, ctx.nest_state.lanes_on)
    return mask_of(both, where_both_are_full(ctx.emitter, mask, ctx.nest_state.lanes_on))


def are_long(ctx: Context, segments: Segments, first_of: Callable[[Index], AxisIndex]) -> Value:
    """Whether the segments are long enough, of those that only the running program knows."""
    conditions = [_is_long(ctx, division, first_of(division.index)) for division in segments.unknown]
    return functools.reduce(ctx.emitter.innermost().and_, conditions)


def _is_long(ctx: Context, division: Division, index: AxisIndex) -> Value:
    y = ctx.evaluate(division.divisor, index).value
    b = ctx.emitter.innermost()
    return b.icmp("uge", magnitude(b, y, division), const(y.type, SHORTEST * division.step))


def open_segments(
    ctx: Context, segments: Segments, limits: Sequence[Limit], extent: int, lanes: int, at: At
) -> tuple[list[OpenLoop], Axis]:
    """Open all loops; the entry that the body computes at, for which it is known then what divisions give, and
    comparisons with limits.
    """
    emitter = ctx.emitter
    run = _open_run(ctx, segments, limits, extent, at)
    segment = _open_segment(ctx, run, segments, at)
    inner = emitter.open_jumps(segment.entry.start, segment.stop, "vector")
    b = emitter.innermost()
    inner.counter.after = b.add(inner.index, const("i32", lanes), "nuw nsw")
    elements = b.add(b.splat(inner.index, lanes), vector_const("i32", range(lanes)))
    on = b.icmp("ult", elements, b.splat(segment.stop, lanes))
    ctx.nest_state.lanes_on = Vector(on, emitter.depth, b.icmp("ule", inner.counter.after, segment.stop))
    entry = Axis(inner.index, lanes, emitter.depth)
    _carry(ctx, [*segments.runs, *segments.counted], at, segment.entry, entry)
    tiles = ctx.nest_state.tiles
    for chained in segments.of_counted:
        tiles[_key(chained, at, entry)] = tiles[_key(chained, at, segment.entry)]
    for limit in limits:
        tiles[_key(limit, at, entry)] = tiles[_key(limit, at, run.entry)]
    return [run.loop, segment.loop, inner], entry


def _key(one: Division | Limit, at: At, entry: Axis) -> tuple[SSAValue, AxisIndex]:
    """Under which the result of a division, or of a comparison, at an entry is known."""
    return one.op.results[0], at(one.index, entry)


@dataclass(frozen=True)
class _Opened:
    """A loop over runs or segments: its first element, and where it ends."""

    loop: OpenLoop
    entry: Axis
    stop: Value


@dataclass(frozen=True)
class _Counted:
    """A division at the first element of a run: what is divided, the divisor, the remainder; whether its quotient
    `counts` up, and how far what is divided is from a remainder of 0 to the next one, in a run of which it does.
    """

    x: Value
    divisor: Value
    rest: Value
    counts: Value
    distance: Value


@dataclass(frozen=True)
class _Run(_Opened):
    counted: _Counted


def _open_run(ctx: Context, segments: Segments, limits: Sequence[Limit], extent: int, at: At) -> _Run:
    """The loop over runs, in which only counted quotients, and their remainders, change from segment to segment."""
    emitter, stop = ctx.emitter, const("i32", extent)
    loop = emitter.open_jumps(const("i32", 0), stop, "run")
    first = Axis(loop.index, 1, emitter.depth)
    rooms = [room_of_division(ctx, division, at(division.index, first), extent) for division in segments.runs]
    rooms += [room_of_widened(ctx, widened, at(widened.index, first), extent) for widened in segments.widened]
    rooms += [room_of_limit(ctx, limit, at(limit.index, first), extent) for limit in limits]
    division = segments.counted[0]
    of_one = room_of_division(ctx, division, at(division.index, first), extent)
    counted = _count(ctx, division, at(division.index, first))
    b = emitter.innermost()
    of_many = num_elements(b, before_wrapping(b, counted.x, isinstance(division.op, SIGNED)), division.step, extent)
    for chained in segments.of_counted:
        of_many = b.umin(of_many, _room_of_chained(ctx, chained, at(chained.index, first), counted, division, extent))
    for other in segments.counted:
        ctx.evaluate(other.op.results[0], at(other.index, first))
    rooms += [b.select(counted.counts, of_many, of_one), b.sub(stop, loop.index)]
    loop.counter.after = b.add(loop.index, functools.reduce(b.umin, rooms), "nuw nsw")
    return _Run(loop, first, loop.counter.after, counted)


def _count(ctx: Context, division: Division, index: AxisIndex) -> _Counted:
    """A distance that is never met where the quotient does not count up: a run is one segment then."""
    x, y = (ctx.evaluate(operand, index).value for operand in division.op.operands)
    b = ctx.emitter.innermost()
    if not isinstance(division.op, SIGNED):
        divisor = safe_divisor(b, y, False)
        return _Counted(x, divisor, rest(b, x, divisor, False), const("i1", 1), divisor)
    divisor, zero = safe_divisor(b, y, True), const(x.type, 0)
    counts = b.and_(b.icmp("sge", x, zero), b.icmp("sgt", divisor, zero))
    farthest = const(x.type, 1 << (bit_width(x.type) - 1))
    return _Counted(x, divisor, rest(b, x, divisor, True), counts, b.select(counts, divisor, farthest))


def _room_of_chained(
    ctx: Context, chained: Growth, index: AxisIndex, counted: _Counted, division: Division, extent: int
) -> Value:
    """How many elements from an index on have the same quotient of a quotient that counts up."""
    quotient, y = (ctx.evaluate(operand, index).value for operand in chained.op.operands)
    ctx.evaluate(chained.op.results[0], index)
    b, signed = ctx.emitter.innermost(), isinstance(chained.op, SIGNED)
    divisor = safe_divisor(b, y, signed)
    absolute = b.intrinsic("llvm.abs", y.type, divisor, const("i1", False)) if signed else divisor
    further = b.sub(b.sub(absolute, const(y.type, 1)), rest(b, quotient, divisor, signed))
    left = b.sub(b.sub(counted.divisor, const(y.type, 1)), counted.rest)
    further, size, left = (_clamped(b, value) for value in (further, counted.divisor, left))
    return num_elements(b, b.add(b.mul(further, size), left), division.step, extent)


def _clamped(b: Builder, value: Value) -> Value:
    """A number of 64 bits that is not negative, or at most the highest of which a product of two fits."""
    wide = b.zext(value, "i64") if bit_width(value.type) < 64 else value
    return b.umin(wide, const("i64", (1 << 31) - 1))


def _open_segment(ctx: Context, run: _Run, segments: Segments, at: At) -> _Opened:
    """The loop over the segments of a run, which counts them; `start`: what is divided where the remainder is 0."""
    emitter, counted, step = ctx.emitter, run.counted, segments.counted[0].step
    type, first = counted.x.type, run.entry.start
    starts = const(type, 0), emitter.innermost().sub(counted.x, counted.rest)
    loop = emitter.open_jumps(first, run.stop, "segment", starts)
    _, number, start = loop.counters
    entry = Axis(loop.index, 1, emitter.depth)
    _carry(ctx, segments.runs, at, run.entry, entry)
    b = emitter.innermost()
    gone = b.mul(_as_wide(b, b.sub(loop.index, first), type), const(type, step))
    rest = b.sub(b.add(counted.x, gone), start)
    following = b.add(start, counted.distance)
    room = _num_steps_in(b, b.sub(following, counted.x), step, b.sub(run.stop, first))
    stop = b.add(first, room, "nuw nsw")  # computed of nothing but the number of segments: none waits for another
    loop.counter.after, loop.counter.others = stop, [b.add(number, const(type, 1)), following]
    tiles = ctx.nest_state.tiles
    for one in (*segments.counted, *segments.of_counted):
        tiles[_key(one, at, entry)] = _in_segment(ctx, one, tiles[_key(one, at, run.entry)], number, rest)
    return _Opened(loop, entry, stop)


def _num_steps_in(b: Builder, growth: Value, step: int, most: Value) -> Value:
    """How many steps it takes to grow so much, or more, `most` at most; more than that do not wrap around."""
    if step > 1:
        one = const(growth.type, 1)
        growth = b.add(b.udiv(b.sub(growth, one), const(growth.type, step)), one)
    return b.trunc(b.umin(growth, b.zext(most, growth.type)), "i32") if growth.type != "i32" else b.umin(growth, most)


def _in_segment(ctx: Context, one: Growth, known: Fragment, number: Value, rest: Value) -> Fragment:
    """What a division gives in the segment of a run with this number, whose first remainder is `rest`."""
    b, depth = ctx.emitter.innermost(), ctx.emitter.depth
    if isinstance(one, Division):
        return Uniform(rest if isinstance(one.op, REMAINDERS) else b.add(known.value, number), depth)
    if not isinstance(one.op, REMAINDERS):
        return known
    return Uniform(b.add(known.value, number), depth)


def _carry(ctx: Context, divisions: Iterable[Division], at: At, first: Axis, entry: Axis) -> None:
    """What divisions give at an entry of the loop that was opened last, from what they gave where that begins."""
    gone, tiles = ctx.emitter.innermost().sub(entry.start, first.start), ctx.nest_state.tiles
    for division in divisions:
        tiles[_key(division, at, entry)] = _after(ctx, division, tiles[_key(division, at, first)], gone, entry.lanes)


def _after(ctx: Context, division: Division, known: Fragment, gone: Value, lanes: int) -> Fragment:
    """What a division gives in so many lanes, so many elements after the first one of the segment."""
    if not isinstance(division.op, REMAINDERS):
        return known
    b, type = ctx.emitter.innermost(), known.value.type
    base = b.add(known.value, b.mul(_as_wide(b, gone, type), const(type, division.step)))
    return Affine(base, division.step, lanes, ctx.emitter.depth) if lanes > 1 else Uniform(base, ctx.emitter.depth)


def _as_wide(b: Builder, count: Value, type: str) -> Value:
    """A count of elements as a number of a type."""
    if bit_width(type) > bit_width(count.type):
        return b.zext(count, type)
    return b.trunc(count, type) if type != count.type else count
