"""log10, log1p, pow, the inverse hyperbolic functions, and the logarithm as a sum of two parts.

x = 2**e (1 + f),  s = f / (2 + f):   log(1 + f) = 2 s + 2/3 s**3 + s**5 Q(s**2)
                                                 = f - (h - s (h + 2/3 s**2 + s**4 Q(s**2))),  h = f**2 / 2
"""

from __future__ import annotations

import math

from deuteron.backend.llvm.types import element
from deuteron.backend.math.coefficients import LOG, LOG1P
from deuteron.backend.math.exponentials import constants_of
from deuteron.backend.math.extern.exponential import LOG10_2, exp_limits, exponential
from deuteron.backend.math.number import (
    Function,
    Number,
    any_of,
    fused,
    magnitude,
    near_root,
    nearest,
    polynomial,
    ratio,
    smaller,
    where,
    with_sign_of,
)
from deuteron.backend.math.pair import Pair, quick_sum, quotient, two_sum

_TWO_THIRDS = {"float": (0.6666666865348816, -1.9868215517249155e-08), "double": (2 / 3, 3.700743415417188e-17)}
_ONE, _THREE_QUARTERS = 0x3F800000, 0x3F400000  # the bits of floats
# 1 / ln 10 as a sum whose first part times a float of 12 bits, a double of 21, is exact
_LOG10_E = {"float": (0.4342041015625, 9.038033749675378e-05), "double": (0.4342944818781689, 2.5082946711645275e-11)}


def split(x: Number) -> tuple[Number, Number]:
    """e, as a float, and f of a positive number: 0.7 < 1 + f < 1.42."""
    format, name = x.format, element(x.type)
    bits = format.mantissa_bits
    is_small = x < format.smallest_normal
    x = where(is_small, x * 2.0**bits, x)
    root = (format.bias - 1 << bits) + int((math.sqrt(2.0) - 1.0) * 2.0**bits)
    biased = (x.bits() + ((format.bias << bits) - root)) >> bits
    f = (x.bits() - ((biased - format.bias) << bits)).as_float(name) - 1.0
    e = (biased - format.bias - where(is_small, biased.number(bits), 0)).to_float(name)
    return e, f


def log_pair(x: Number) -> Pair:
    """The logarithm of a positive, finite number, to some 11 bits (float: 9) more than the type has."""
    e, f = split(x)
    ln2 = constants_of(x.value).ln2
    zero = f.number(0.0)
    s = quotient(Pair(f, zero), two_sum(f.number(2.0), f))
    square = s * s
    third = _TWO_THIRDS[element(x.type)]
    inner = quick_sum(f.number(third[0]), fused(square.high, polynomial(square.high, LOG), third[1]))
    tail = square * s * inner
    return two_sum(e * ln2[0], e * ln2[1]) + Pair(s.high + s.high, s.low + s.low) + tail


def log1p(x: Number) -> Number:
    y = (_log1p_double if x.is_double else _log1p_float)(x)
    y = where(x < math.inf, where(x < -1.0, math.nan, y), x)  # NaN, too
    return where(x.equals(-1.0), -math.inf, where(x.equals(0.0), x, y))


def _log1p_float(x: Number) -> Number:
    """With 0.75 <= 1 + f < 1.5, where f = 2**-e x + (2**-e - 1) is exact; of a large x the 1 counts for nothing."""
    total = x + 1.0
    exponent = (total.bits() - _THREE_QUARTERS) & -(1 << 23)
    unit = (_ONE - exponent).as_float("float")
    exact = fused(unit, x, unit - 1.0)
    f = where(x < 2.0**24, exact, (total.bits() - exponent).as_float("float") - 1.0)
    e, ln2 = exponent.arithmetic_shift(23).to_float("float"), constants_of(x.value).ln2
    square = f * f
    y = fused(e, ln2[1], polynomial(f, LOG1P) * f * square)
    return fused(e, ln2[0], f + fused(square, -0.5, y))


def _log1p_double(x: Number) -> Number:
    total = two_sum(x.number(1.0), x)
    e, f = split(total.high)
    inverse = where(e < 1000.0, e, 1000.0)
    unit = ((x.format.bias - inverse.to_integer(x.format.integer)) << x.format.mantissa_bits).as_float(element(x.type))
    return _log_parts(e, f, total.low * unit / (f + 1.0))


def log10(x: Number) -> Number:
    e, f = split(x)
    name = element(x.type)
    unit, two = _LOG10_E[name], LOG10_2[x.is_double]
    half_square, inner = _halved(f)
    difference = f - half_square
    low_bits = 32 if x.is_double else 12
    high = (difference.bits() & -(1 << low_bits)).as_float(name)
    low = ((f - high) - half_square) + inner
    main = two_sum(e * two[0], high * unit[0])
    rest = fused(e, two[1], fused(low + high, unit[1], low * unit[0]))
    return _of_positive(x, main.high + (main.low + rest))


def pow(x: Number, y: Number) -> Number:
    is_whole = nearest(y).equals(y)
    is_odd = is_whole & nearest(y * 0.5).differs(y * 0.5)
    limit = 2.0**65 if x.is_double else 2.0**35  # the logarithm of the number next to 1, times this, is out of range
    within = with_sign_of(smaller(magnitude(y), limit), y)
    return _power(x, y, Pair(within, y.number(0.0)), is_whole, is_odd)


def powi(x: Number, n: Number) -> Number:
    """The integer as a sum of two floats, of which one is 0 in double."""
    name = element(x.type)
    high = n.to_float(name)
    wide = n.sign_extend("i64")
    low = (wide - high.to_integer("i64")).to_float(name)
    return _power(x, high, Pair(high, low), n.equals(n), (n & 1).equals(1))


def asinh(x: Number, log1p: Function = log1p) -> Number:
    size = magnitude(x)
    is_large = size > _large(x)
    square = size * size
    grown = where(is_large, size, size + ratio(square, near_root(square + 1.0) + 1.0))
    return with_sign_of(log1p(grown) + where(is_large, x.number(math.log(2.0)), 0.0), x)


def acosh(x: Number, log1p: Function = log1p) -> Number:
    is_large = x > _large(x)
    t = x - 1.0
    grown = where(is_large, x, t + near_root(fused(t, t, t + t)))
    y = log1p(grown) + where(is_large, x.number(math.log(2.0)), 0.0)
    return where(x < 1.0, math.nan, y)


def atanh(x: Number, log1p: Function = log1p) -> Number:
    size = magnitude(x)
    doubled = size + size
    part = where(size < 1.0, ratio(size, 1.0 - size), where(size.equals(1.0), size.number(math.inf), math.nan))
    small = fused(doubled, part, doubled)
    return with_sign_of(log1p(where(size < 0.5, small, part + part)) * 0.5, x)


def _large(x: Number) -> float:
    return 2.0**56 if x.is_double else 2.0**26


def _power(x: Number, y: Number, factor: Pair, is_whole: Number, is_odd: Number) -> Number:
    """|x| ** factor by logarithm and exponential, its sign, and what is special."""
    size = magnitude(x)
    exponent = log_pair(size) * factor
    low, high = exp_limits(x)
    is_out = any_of(exponent.high < low, exponent.high > high)
    inside = where(exponent.high < low, low, where(exponent.high > high, high, exponent.high))
    result = exponential(inside, where(is_out, 0.0, exponent.low)).value
    result = where(size.equals(0.0), where(y < 0.0, x.number(math.inf), 0.0), result)
    result = where(size.equals(math.inf), where(y < 0.0, x.number(0.0), math.inf), result)
    result = where((x < 0.0) & (is_whole ^ True) & (size < math.inf), math.nan, result)
    result = where((x.bits() < 0) & is_odd, -result, result)
    result = where(any_of(x.is_nan(), y.is_nan()), math.nan, result)
    return where(any_of(x.equals(1.0), y.equals(0.0), x.equals(-1.0) & magnitude(y).equals(math.inf)), 1.0, result)


def _halved(f: Number) -> tuple[Number, Number]:
    """h = f**2 / 2 and s (h + ...): log(1 + f) is f - (h - that)."""
    s = ratio(f, f + 2.0)
    square = s * s
    half_square = f * f * 0.5
    series = fused(square, polynomial(square, LOG), _TWO_THIRDS[element(f.type)][0])
    return half_square, s * fused(square, series, half_square)


def _log_parts(e: Number, f: Number, rest: Number) -> Number:
    """e ln 2 + log(1 + f) + rest."""
    ln2 = constants_of(f.value).ln2
    half_square, inner = _halved(f)
    low = fused(e, ln2[1], rest) + inner
    return fused(e, ln2[0], -((half_square - low) - f))


def _of_positive(x: Number, y: Number) -> Number:
    """y where x is positive and finite; infinities, NaN, and what 0 and negative numbers give."""
    y = where(x < math.inf, y, x)
    y = where(x < 0.0, math.nan, y)
    return where(x.equals(0.0), -math.inf, y)
