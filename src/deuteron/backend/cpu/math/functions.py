"""The mathematical functions of the language on scalars and vectors of float and double, without calls of libm.

    FUNCTIONS["exp"](b, x)          Value; x: float, double or a vector of them
    floor(b, x, target.rounds)

Whatever emitted C is linked into then needs no library. Half-precision values are converted to float around
them. Where a CPU has a fused multiply-add it is used; the functions keep their accuracy without.
"""

from __future__ import annotations

from collections.abc import Callable

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, like
from deuteron.backend.math.conversions import round_to_odd, sum_to_odd
from deuteron.backend.math.error_function import erf
from deuteron.backend.math.exponentials import exp2_or_zero, exp_or_zero, tanh
from deuteron.backend.math.logarithms import log, log2
from deuteron.backend.math.polynomial import Float, fused, number
from deuteron.backend.math.trigonometry import cos, sin


def rsqrt(b: Builder, x: Value) -> Value:
    """1 / sqrt(x), each of the two rounded: 1 ulp at most; the CPU's own estimate has 12 bits."""
    return b.fdiv(number(x, 1.0), b.sqrt(x), flags="")


def floor(b: Builder, x: Value, rounds: bool) -> Value:
    """`rounds` is whether the CPU has an instruction for it (CPU.rounds); otherwise it would be a call."""
    if rounds:
        return b.intrinsic("llvm.floor", x.type, x)
    nearest = _round(b, x)
    lower = b.fsub(nearest, number(x, 1.0), flags="")
    return b.copysign(b.select(b.fcmp("ogt", nearest, x), lower, nearest), x)


def ceil(b: Builder, x: Value, rounds: bool) -> Value:
    """`rounds` as for floor."""
    if rounds:
        return b.intrinsic("llvm.ceil", x.type, x)
    nearest = _round(b, x)
    upper = b.fadd(nearest, number(x, 1.0), flags="")
    return b.copysign(b.select(b.fcmp("olt", nearest, x), upper, nearest), x)


def fma(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """x * y + z in one rounding; in two on the old CPUs that have no such instruction."""
    return fused(b, x, y, z)


def narrow_fma(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """x * y + z of floats of 16 bits or fewer, rounded to odd, so that it can be rounded to them: a double has the
    product exactly.
    """
    x, y, z = (b.fpext(value, like(value.type, "double")) for value in (x, y, z))
    return round_to_odd(b, sum_to_odd(b, b.fmul(x, y, flags=""), z))


def _round(b: Builder, x: Value) -> Value:
    """To a whole number; what is so large that it is one stays."""
    limit = number(x, 2.0 ** Float.of(x).mantissa_bits)
    shifted = b.fsub(b.fadd(b.fabs(x), limit, flags=""), limit, flags="")
    return b.select(b.fcmp("olt", b.fabs(x), limit), b.copysign(shifted, x), x)


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "exp": exp_or_zero,
    "exp2": exp2_or_zero,
    "log": log,
    "log2": log2,
    "sin": sin,
    "cos": cos,
    "tanh": tanh,
    "erf": erf,
    "sqrt": Builder.sqrt,
    "rsqrt": rsqrt,
}
