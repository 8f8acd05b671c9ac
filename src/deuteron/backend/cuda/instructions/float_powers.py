"""pow, expm1, sinh and cosh of float.

pow     2 ** (y log2 |x|), the logarithm as a sum of two floats:  x = 2**e m,  q = (m - 1) / (m + 1),
        log2 m = 2 log2(e) (q + q**3 / 3 + q**5 L(q**2))
expm1   2**n (e**r - 1) + (2**n - 1),  n = 0 where |x| < 1/2, since 2**n would enlarge the error of e**r
cosh    2 (q + 1 / (16 q)),  q = e**|x| / 4
"""

from __future__ import annotations

import math

from deuteron.backend.cuda.instructions.float_exponentials import ROUNDER, Exponential, exponential, reduced
from deuteron.backend.cuda.instructions.float_functions import exp2, reciprocal
from deuteron.backend.cuda.instructions.float_logarithms import split
from deuteron.backend.math.coefficients import SINH
from deuteron.backend.math.logarithms import LOG2_E_FLOAT
from deuteron.backend.math.number import (
    Function,
    Number,
    fused,
    intrinsic,
    magnitude,
    nearest,
    polynomial,
    power_of_two,
    where,
    with_sign_of,
)
from deuteron.backend.math.pair import Pair, quick_sum, two_product

_ROUNDER_BITS = 0x4B400000  # of float_exponentials.ROUNDER
_TWO_LOG2_E = (2.885390043258667, 3.851926067001e-08)
_THIRD = (0.3333333432674408, -9.934107758624577e-09)
_INVERSE_TANGENT = (0.20000483095645905, 0.1424979567527771, 0.12127882242202759)
_EXPM1 = (
    0.5000000596046448,
    0.1666666716337204,
    0.041664961725473404,
    0.008333196863532066,
    0.0014010637532919645,
    0.00019954363233409822,
)
_MOST = 150.0  # of a power of two beside 1
_LARGEST = 2.0**126


def pow(x: Number, y: Number) -> Number:
    is_whole = nearest(y).equals(y)
    is_odd = is_whole & nearest(y * 0.5).differs(y * 0.5)
    limited = with_sign_of(intrinsic("llvm.minnum", magnitude(y), y.number(_LARGEST)), y)
    return _power(x, y, Pair(limited, y.number(0.0)), is_whole, is_odd)


def powi(x: Number, n: Number) -> Number:
    """The integer as a sum of two floats."""
    high = n.to_float("float")
    low = (n - high.to_integer("i32")).to_float("float")
    return _power(x, high, Pair(high, low), n.equals(n), (n & 1).equals(1))


def expm1(x: Number) -> Number:
    """(2**n - 1) + 2**n (e**r - 1), halved, since 2**n may be infinite, with what the difference loses."""
    size = magnitude(x)
    inside = intrinsic("llvm.maximum", intrinsic("llvm.minimum", x, x.number(89.0)), x.number(-25.0))
    shifted = where(size < 0.5, x.number(ROUNDER), fused(inside, LOG2_E_FLOAT[0], ROUNDER))
    r = reduced(inside, shifted)
    half = Exponential(r, shifted).scale(-1)
    less = half - 0.5
    y = less + fused(half, fused(r * r, polynomial(r, _EXPM1), r), (half - less) - 0.5)
    return where(size < x.format.smallest_normal, x, y + y)


def sinh(x: Number) -> Number:
    size, square = magnitude(x), x * x
    quarter = _quarter_exponential(size)
    large = fused(reciprocal(quarter), -1 / 16, quarter)
    small = fused(size * square, polynomial(square, SINH), size)
    return with_sign_of(where(size < 1.0, small, large + large), x)


def cosh(x: Number) -> Number:
    quarter = _quarter_exponential(magnitude(x))
    half = fused(reciprocal(quarter), 1 / 16, quarter)
    return half + half


def _quarter_exponential(size: Number) -> Number:
    """Of e**|x|, which may be infinite where the result is not."""
    return exponential(intrinsic("llvm.minimum", size, size.number(89.5))).value(-2)


def _power(x: Number, y: Number, factor: Pair, is_whole: Number, is_odd: Number) -> Number:
    size = magnitude(x)
    is_zero, is_infinite = size.equals(0.0), size.equals(math.inf)
    result = exp2_of_product(log2_pair(size), factor)
    result = where(is_zero | is_infinite, where(is_zero ^ (y < 0.0), x.number(0.0), math.inf), result)
    result = where((x < 0.0) & ((is_whole | is_infinite) ^ True), math.nan, result)
    result = where((x.bits() < 0) & is_odd, -result, result)
    result = where(x.make(x.b.fcmp("uno", x.value, y.value)), math.nan, result)
    return where(x.equals(1.0) | y.equals(0.0), 1.0, result)


def log2_pair(x: Number) -> Pair:
    """Of a positive number, to 35 bits."""
    e, m, _ = split(x)
    f, total = m - 1.0, m + 1.0
    inverse = reciprocal(total)
    q = f * inverse
    rest = fused(-q, f - (total - 2.0), fused(-q, total, f)) * inverse
    square = two_product(q, q)
    high = two_product(q, q.number(_TWO_LOG2_E[0]))
    third = two_product(square.high, square.high.number(_THIRD[0]))
    tail = fused(square.high, polynomial(square.high, _INVERSE_TANGENT), _THIRD[1])
    tail = fused(square.high, tail, fused(square.low, _THIRD[0], third.low))
    cube = two_product(high.high, third.high)
    lost = fused(fused(rest, square.high, rest), _TWO_LOG2_E[0], fused(q, _TWO_LOG2_E[1], high.low))
    lost = lost + fused(high.high, tail, cube.low)
    fraction = quick_sum(high.high, cube.high)
    total = quick_sum(e, fraction.high)
    return quick_sum(total.high, total.low + (fraction.low + lost))


def exp2_of_product(x: Pair, y: Pair, factor: Number | float = 1.0) -> Number:
    """Times the factor. Beyond the limits the rest is large, and its power infinite or 0."""
    first = intrinsic("llvm.minnum", x.high * y.high, x.high.number(_MOST))
    first = intrinsic("llvm.maxnum", first, first.number(-_MOST))
    rest = fused(x.low, y.high, fused(x.high, y.high, -first))
    rest = fused(x.high, y.low, rest)
    shifted = first + ROUNDER
    exponent = shifted.bits() - _ROUNDER_BITS
    half = exponent.arithmetic_shift(1)
    power = exp2((first - (shifted - ROUNDER)) + rest)
    return power * factor * power_of_two(half, "float") * power_of_two(exponent - half, "float")


FUNCTIONS: dict[str, Function] = {
    "powf": pow,
    "powif": powi,
    "expm1f": expm1,
    "sinhf": sinh,
    "coshf": cosh,
}
