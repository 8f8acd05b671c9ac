"""How many elements from an index on have the same quotient, lie on the same side of a limit, or do not wrap around:
what segments of a nest end at (`segments.py`). A room may be less than that, and is one element at least.

    x // 28 at x = 60       24 elements
"""

from __future__ import annotations

from deuteron.backend.cpu.context import AxisIndex, Context
from deuteron.backend.cpu.parts import elements_before
from deuteron.backend.cpu.plan.vectors.mask_limits import Limit
from deuteron.backend.cpu.plan.vectors.quotients import SIGNED
from deuteron.backend.cpu.plan.vectors.segments import Division, Growth
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, bit_width, const
from deuteron.backend.math.division import rest, safe_divisor
from deuteron.ir.casts import ExtSIOp


def room_of_division(ctx: Context, division: Division, index: AxisIndex, extent: int) -> Value:
    """How many elements from an index on have the same quotient, `extent` at most; it may say fewer.

    Of what is negative the quotient changes after a multiple of the divisor, of what is not before one.
    """
    x, y = (ctx.evaluate(operand, index).value for operand in division.op.operands)
    ctx.evaluate(division.op.results[0], index)
    b, signed = ctx.emitter.innermost(), isinstance(division.op, SIGNED)
    divisor = safe_divisor(b, y, signed)
    left = rest(b, x, divisor, signed)
    growth = b.sub(b.sub(magnitude(b, divisor, division), const(x.type, 1)), left)
    if signed:
        growth = b.select(b.icmp("slt", x, const(x.type, 0)), b.sub(const(x.type, 0), left), growth)
    return num_elements(b, b.umin(growth, before_wrapping(b, x, signed)), division.step, extent)


def room_of_widened(ctx: Context, widened: Growth, index: AxisIndex, extent: int) -> Value:
    """How many elements from an index on grow without wrapping."""
    x, b = ctx.evaluate(widened.op.operands[0], index).value, ctx.emitter.innermost()
    return num_elements(b, before_wrapping(b, x, isinstance(widened.op, ExtSIOp)), widened.step, extent)


def before_wrapping(b: Builder, x: Value, signed: bool) -> Value:
    """By how much an integer may grow."""
    return b.sub(const(x.type, (1 << (bit_width(x.type) - signed)) - 1), x)


def num_elements(b: Builder, growth: Value, step: int, extent: int) -> Value:
    """How many elements there are until so much growth in steps, `extent` at most."""
    steps = b.udiv(growth, const(growth.type, step)) if step > 1 else growth
    if bit_width(steps.type) > 32:
        steps = b.trunc(b.umin(steps, const(steps.type, extent - 1)), "i32")
    return b.add(b.umin(steps, const("i32", extent - 1)), const("i32", 1))


def room_of_limit(ctx: Context, limit: Limit, index: AxisIndex, extent: int) -> Value:
    """How many elements from an index on are on the same side of a limit."""
    before, known = elements_before(ctx, limit, index, extent)
    ctx.evaluate(limit.op.results[0], index)
    b, zero = ctx.emitter.innermost(), const("i32", 0)
    behind = b.select(b.icmp("eq", known, zero), const("i32", extent), const("i32", 1))
    return b.select(b.icmp("eq", before, zero), behind, before)


def magnitude(b: Builder, y: Value, division: Division) -> Value:
    """Of a divisor, without a sign."""
    if not isinstance(division.op, SIGNED):
        return y
    return b.intrinsic("llvm.abs", y.type, y, const("i1", False))
