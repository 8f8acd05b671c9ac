"""cbrt, rcbrt, and the norms of up to four floats: approximate roots, and a step of Newton's where needed.

cbrt(x)     y = ex2.approx(lg2.approx(x) / 3),  y + (x - y**3) / (3 y**2)
hypot       2**k sqrt.approx(the sum of squares) of numbers times 2**-k, the power of two of the largest
"""

from __future__ import annotations

import math
from functools import reduce as fold

from deuteron.backend.cuda.instructions.float_functions import exp2, instruction, reciprocal
from deuteron.backend.math.number import (
    Function,
    Number,
    any_of,
    fused,
    intrinsic,
    magnitude,
    near_root,
    where,
    with_sign_of,
)

_EXPONENT = 0x7F800000  # of a float's bits
_FIRST, _LAST, _OPPOSITE = 0x00800000, 0x7E800000, 0x7F000000  # 2**k and 2**-k, both normal, add up to the last


def cbrt(x: Number) -> Number:
    """Of small numbers 2**-8 times that of 2**24 times them: what y**3 lacks would be subnormal. NaN is what 0 and
    infinity become.
    """
    is_small = magnitude(x) < 2.0**-100
    size = magnitude(x) * where(is_small, x.number(2.0**24), 1.0)
    y = exp2(instruction("lg2.approx.ftz.f", size) * (1 / 3))
    square = y * y
    y = fused(fused(-square, y, size), reciprocal(square) * (1 / 3), y)
    y = with_sign_of(y * where(is_small, x.number(2.0**-8), 1.0), x)
    return where(y.is_nan(), x + x, y)


def rcbrt(x: Number) -> Number:
    size = magnitude(x)
    y = exp2(instruction("lg2.approx.f", size) * (-1 / 3))
    square, product = y * y, y * size
    rest = fused(-fused(y, size, -product), square, fused(-product, square, 1.0))
    y = fused(rest, y * (1 / 3), y)
    return with_sign_of(where(y.is_nan(), reciprocal(size), y), x)


def norm(*numbers: Number) -> Number:
    total, unit = _sum_of_squares(numbers)
    return where(_any_infinite(numbers), math.inf, near_root(total) * unit.as_float("float"))


def rnorm(*numbers: Number) -> Number:
    total, unit = _sum_of_squares(numbers)
    y = instruction("rsqrt.approx.ftz.f", total)
    better = fused(fused(-(total * y), y, 1.0), y * 0.5, y)
    y = where(total > 0.0, better, y) * _inverse(unit)
    return where(_any_infinite(numbers), 0.0, y)


def _sum_of_squares(numbers: tuple[Number, ...]) -> tuple[Number, Number]:
    """The sum of the squares of the numbers over a power of two, and the bits of that."""
    sizes = [magnitude(x) for x in numbers]
    exponent = fold(lambda x, y: intrinsic("llvm.maxnum", x, y), sizes).bits() & _EXPONENT
    unit = intrinsic("llvm.smin", intrinsic("llvm.smax", exponent, exponent.number(_FIRST)), exponent.number(_LAST))
    scaled = [size * _inverse(unit) for size in sizes]
    return fold(lambda total, x: fused(x, x, total), scaled[1:], scaled[0] * scaled[0]), unit


def _inverse(unit: Number) -> Number:
    return (_OPPOSITE - unit).as_float("float")


def _any_infinite(numbers: tuple[Number, ...]) -> Number:
    return any_of(*(magnitude(x).equals(math.inf) for x in numbers))


FUNCTIONS: dict[str, Function] = {
    "cbrtf": cbrt,
    "rcbrtf": rcbrt,
    "hypotf": norm,
    "norm3df": norm,
    "norm4df": norm,
    "rhypotf": rnorm,
    "rnorm3df": rnorm,
    "rnorm4df": rnorm,
}
