"""Emits the segments of a nest whose divisions have one quotient in each (`plan/segments.py`).

for (i = 0; i < extent; i = stop):                  x0, q0, r0: of element i
    stop = min(extent, i + room)                    the first element with another quotient
    (the same again from i to stop, for the divisions that change more often)
    for (j = i; j < stop; j += lanes):              x // d: q0;  x % d: r0 + (j - i) * step + [0, step ...]
        body, with the lanes on that are below stop - j
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

from deuteron.backend.cpu.algebra import lanewise
from deuteron.backend.cpu.context import AxisIndex, Context
from deuteron.backend.cpu.emitter import OpenLoop
from deuteron.backend.cpu.fragment import Affine, Axis, Fragment, Uniform, Vector
from deuteron.backend.cpu.memory.full_masks import mask_of, where_both_are_full
from deuteron.backend.cpu.plan.indices import Index
from deuteron.backend.cpu.plan.quotients import REMAINDERS, SIGNED
from deuteron.backend.cpu.plan.segments import SHORTEST, Division, Growth, Segments
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, bit_width, const, vector_const
from deuteron.backend.math.division import safe_divisor
from deuteron.ir.casts import ExtSIOp

At = Callable[[Index, Axis], AxisIndex]  # the index of a tile where the dimension of the segments has this entry


def lanes_on(ctx: Context, mask: Fragment | None) -> Fragment | None:
    """A mask, without the lanes that are beyond the end of their segment."""
    if ctx.lanes_on is None or mask is None:
        return mask if mask is not None else ctx.lanes_on
    both = lanewise(ctx.emitter, Builder.and_, mask, ctx.lanes_on)
    return mask_of(both, where_both_are_full(ctx.emitter, mask, ctx.lanes_on))


def are_long(ctx: Context, segments: Segments, first_of: Callable[[Index], AxisIndex]) -> Value:
    """Whether the segments are long enough, of those that only the running program knows."""
    conditions = [_is_long(ctx, division, first_of(division.index)) for division in segments.unknown]
    return functools.reduce(ctx.emitter.innermost().and_, conditions)


def _is_long(ctx: Context, division: Division, index: AxisIndex) -> Value:
    y = ctx.evaluate(division.divisor, index).value
    b = ctx.emitter.innermost()
    return b.icmp("uge", _magnitude(b, y, division), const(y.type, SHORTEST * division.step))


def open_segments(ctx: Context, segments: Segments, extent: int, lanes: int, at: At) -> tuple[list[OpenLoop], Axis]:
    """Open all loops; the entry that the body computes at, for which the results of the divisions are known then."""
    emitter, loops, known = ctx.emitter, [], ()
    begin, stop = Axis(const("i32", 0), 1, ctx.nest_level), const("i32", extent)
    for divisions in segments.levels:
        loop = emitter.open_jumps(begin.start, stop, "segment")
        first = Axis(loop.index, 1, emitter.depth)
        _carry(ctx, known, at, begin, first)
        rooms = [_room_of_division(ctx, division, at(division.index, first), extent) for division in divisions]
        rooms += [_room_of_widened(ctx, widened, at(widened.index, first), extent) for widened in segments.widened]
        b = emitter.innermost()
        room = functools.reduce(b.umin, [*rooms, b.sub(stop, loop.index)])
        loop.counter.after = b.add(loop.index, room, "nuw nsw")
        loops, known, begin, stop = [*loops, loop], (*known, *divisions), first, loop.counter.after
    inner = emitter.open_jumps(begin.start, stop, "vector")
    b = emitter.innermost()
    inner.counter.after = b.add(inner.index, const("i32", lanes), "nuw nsw")
    left = b.sub(stop, inner.index)
    on = b.icmp("ult", vector_const("i32", range(lanes)), b.splat(left, lanes))
    ctx.lanes_on = Vector(on, emitter.depth, b.icmp("uge", left, const("i32", lanes)))
    entry = Axis(inner.index, lanes, emitter.depth)
    _carry(ctx, known, at, begin, entry)
    return [*loops, inner], entry


def _carry(ctx: Context, divisions: Iterable[Division], at: At, first: Axis, entry: Axis) -> None:
    """What divisions give at an entry of the loop that was opened last, from what they gave where that begins."""
    gone = ctx.emitter.innermost().sub(entry.start, first.start)
    for division in divisions:
        known = ctx.tiles[division.op.results[0], at(division.index, first)]
        ctx.tiles[division.op.results[0], at(division.index, entry)] = _after(ctx, division, known, gone, entry.lanes)


def _after(ctx: Context, division: Division, known: Fragment, gone: Value, lanes: int) -> Fragment:
    """What a division gives in so many lanes, so many elements after the first one of the segment."""
    if not isinstance(division.op, REMAINDERS):
        return known
    b, type = ctx.emitter.innermost(), known.value.type
    wide = bit_width(type) > bit_width(gone.type)
    distance = b.zext(gone, type) if wide else b.trunc(gone, type) if type != gone.type else gone
    base = b.add(known.value, b.mul(distance, const(type, division.step)))
    return Affine(base, division.step, lanes, ctx.emitter.depth) if lanes > 1 else Uniform(base, ctx.emitter.depth)


def _room_of_division(ctx: Context, division: Division, index: AxisIndex, extent: int) -> Value:
    """How many elements from an index on have the same quotient, `extent` at most; it may say fewer.

    Of what is negative the quotient changes after a multiple of the divisor, of what is not before one.
    """
    x, y = (ctx.evaluate(operand, index).value for operand in division.op.operands)
    ctx.evaluate(division.op.results[0], index)
    b, signed = ctx.emitter.innermost(), isinstance(division.op, SIGNED)
    divisor = safe_divisor(b, y, signed)
    rest = (b.srem if signed else b.urem)(x, divisor)
    growth = b.sub(b.sub(_magnitude(b, divisor, division), const(x.type, 1)), rest)
    if signed:
        growth = b.select(b.icmp("slt", x, const(x.type, 0)), b.sub(const(x.type, 0), rest), growth)
    return _num_elements(b, b.umin(growth, _before_wrapping(b, x, signed)), division.step, extent)


def _room_of_widened(ctx: Context, widened: Growth, index: AxisIndex, extent: int) -> Value:
    """How many elements from an index on grow without wrapping."""
    x, b = ctx.evaluate(widened.op.operands[0], index).value, ctx.emitter.innermost()
    return _num_elements(b, _before_wrapping(b, x, isinstance(widened.op, ExtSIOp)), widened.step, extent)


def _before_wrapping(b: Builder, x: Value, signed: bool) -> Value:
    """By how much an integer may grow."""
    return b.sub(const(x.type, (1 << (bit_width(x.type) - signed)) - 1), x)


def _num_elements(b: Builder, growth: Value, step: int, extent: int) -> Value:
    """How many elements there are until so much growth in steps, `extent` at most."""
    steps = b.udiv(growth, const(growth.type, step)) if step > 1 else growth
    if bit_width(steps.type) > 32:
        steps = b.trunc(b.umin(steps, const(steps.type, extent - 1)), "i32")
    return b.add(b.umin(steps, const("i32", extent - 1)), const("i32", 1))


def _magnitude(b: Builder, y: Value, division: Division) -> Value:
    """Of a divisor, without a sign."""
    if not isinstance(division.op, SIGNED):
        return y
    return b.intrinsic("llvm.abs", y.type, y, const("i1", False))
