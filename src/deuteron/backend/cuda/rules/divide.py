"""Quotients of f32 by what is known to be neither too large nor too small, or to be at least a number.

    x / y                       div.full: y 2**-2 where it is more than 2**126, whose inverse is not normal, and y 2**24
                                where it is not normal itself
    x / (sqrt(v) + eps)         x rcp(y): it is less than 2**65, and more than 2**-99 if it is not 0
    x / (1 + exp(-z))           x (rcp(y 2**-2) 2**-2), where y 2**-2 is one multiply-add: it is at least 1

The instructions are those of div.full without comparisons, and without what is done where these hold. The quotients
are the same, but for the last bits of some by more than 2**126: their inverse is rounded as a subnormal number first.
x times its sigmoid takes 6 instructions for 9.
"""

from __future__ import annotations

from functools import partial

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.magnitudes import magnitudes
from deuteron.analysis.never_negative import is_never_negative
from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.fragment import Operand
from deuteron.backend.gpu.rules import floating
from deuteron.backend.gpu.rules.elementwise import each
from deuteron.backend.llvm.types import Value, const
from deuteron.ir.arith import constant_value
from deuteron.ir.types import element_type_of, f32

LARGEST = 126  # the exponent of the largest power of two whose inverse is a normal float
SCALE = 2.0**-2
# Terms of divisors of which neither these times SCALE nor what is added to them changes how a sum is rounded.
SMALLEST_TERM, LARGEST_TERM = 2.0**-100, 2.0**100


def divide(ctx: Context, op: Operation, x: Operand, y: Operand) -> Operand:
    inverse = _inverse(ctx, op.rhs, y) if element_type_of(op.result.type) == f32 else None
    if inverse is None:
        return floating.RULES[op.name](ctx, op, x, y)
    return each(lambda x, y: ctx.b.fmul(x, y, flags=""), x, inverse)


def _inverse(ctx: Context, divisor: SSAValue, y: Operand) -> Operand | None:
    """One over a divisor, if that needs no comparison; of a number ptxas makes none anyway."""
    if constant_value(divisor) is not None:
        return None
    known = magnitudes(divisor)
    if known is not None and known.are_normal and known.power <= LARGEST:
        return each(partial(_reciprocal, ctx), y)
    if (term := _large_enough(divisor)) is None:
        return None
    rest, number = term
    return each(partial(_scaled_reciprocal, ctx, number), ctx.values[rest])


def _large_enough(divisor: SSAValue) -> tuple[SSAValue, float] | None:
    """What is never negative, and the number that is added to it for this divisor, if that is all."""
    if not isinstance(divisor.owner, arith.AddfOp):
        return None
    for rest, other in (divisor.owner.operands, divisor.owner.operands[::-1]):
        number = constant_value(other)
        if number is not None and SMALLEST_TERM <= number <= LARGEST_TERM and is_never_negative(rest):
            return rest, number
    return None


def _scaled_reciprocal(ctx: Context, number: float, rest: Value) -> Value:
    scale = const("float", SCALE)
    scaled = ctx.b.fma(rest, scale, const("float", number * SCALE))
    return ctx.b.fmul(_reciprocal(ctx, scaled), scale, flags="")


def _reciprocal(ctx: Context, y: Value) -> Value:
    return ctx.b.call("float", "llvm.nvvm.rcp.approx.ftz.f", y)


RULES: dict[str, Rule] = {"arith.divf": divide}
