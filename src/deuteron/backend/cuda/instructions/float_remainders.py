"""The remainder of floats by an approximate reciprocal, where the quotient is below 2**20; else by the mantissas.

    q = trunc(|x| / |y|), one too many at most;  r = |x| - q |y|, exactly;  r + |y| where r < 0

Of a quotient that is one too few r might have 25 bits, so that the reciprocal is enlarged. Doubles are divided.
"""

from __future__ import annotations

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const
from deuteron.backend.math import remainder as exact

_MOST_QUOTIENT, _ENLARGED = 2.0**20, 1.0 + 2.0**-21
_SMALLEST, _LARGEST = 2.0**-100, 2.0**126  # whose inverse is normal


def remainder(b: Builder, x: Value, y: Value) -> Value:
    """x - trunc(x / y) * y; with the sign of x."""
    if x.type == "double":
        return exact.remainder(b, x, y, divides=True)
    size, unit = (b.fabs(value) for value in (x, y))
    with b.if_(_is_near(b, size, unit), "near") as branch:
        branch.yield_(b.copysign(_by_reciprocal(b, size, unit), x))
        branch.otherwise()
        branch.yield_(exact.remainder(b, x, y))
    return branch.results[0]


def _is_near(b: Builder, size: Value, unit: Value) -> Value:
    is_near = b.fcmp("olt", size, b.fmul(unit, const("float", _MOST_QUOTIENT), flags=""))
    is_near = b.and_(is_near, b.fcmp("ogt", unit, const("float", _SMALLEST)))
    return b.and_(is_near, b.fcmp("olt", unit, const("float", _LARGEST)))


def _by_reciprocal(b: Builder, size: Value, unit: Value) -> Value:
    inverse = b.fmul(b.call("float", "llvm.nvvm.rcp.approx.ftz.f", unit), const("float", _ENLARGED), flags="")
    quotient = b.intrinsic("llvm.trunc", "float", b.fmul(size, inverse, flags=""))
    rest = b.fma(b.fneg(quotient), unit, size)
    return b.select(b.fcmp("olt", rest, const("float", 0.0)), b.fadd(rest, unit, flags=""), rest)
