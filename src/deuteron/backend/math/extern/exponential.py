"""exp10, expm1, sinh, cosh, tanh, and the exponential as a sum of two parts that others are made of.

    n = round(x / ln 2),  r = x - n ln 2,  e**x = 2**n * (1 + r + r**2 P(r))

1 + r + r**2 P(r) is kept as a pair, so that what is done with it next is what rounds.
"""

from __future__ import annotations

from typing import NamedTuple

from deuteron.backend.math import exponentials
from deuteron.backend.math.coefficients import SINH, TANH
from deuteron.backend.math.exponentials import LOG2_E
from deuteron.backend.math.number import (
    Number,
    fused,
    larger,
    magnitude,
    polynomial,
    power_of_two,
    ratio,
    smaller,
    where,
    with_sign_of,
)
from deuteron.backend.math.pair import Pair, quick_sum, two_sum

_LN10 = {False: 2.3025851249694824, True: 2.302585092994046}  # by whether it is a double
_LN10_REST = {False: -3.1975436520881384e-08, True: -2.1707562233822494e-16}
_LOG2_10 = 3.321928094887362
# log10(2) as a sum whose first part times any n is exact
LOG10_2 = {False: (0.301025390625, 4.605039066518657e-06), True: (0.30102999566361177, 3.694239077158931e-13)}


class Power(NamedTuple):
    """`mantissa` * 2**`exponent`; the exponent is an integer as wide as the float."""

    mantissa: Pair
    exponent: Number

    @property
    def value(self) -> Number:
        return scaled(self.mantissa.total, self.exponent)

    @property
    def parts(self) -> Pair:
        return Pair(scaled(self.mantissa.high, self.exponent), scaled(self.mantissa.low, self.exponent))


def scaled(y: Number, exponent: Number) -> Number:
    """y * 2**exponent for a normal y, rounded once: as a product with two powers that have half of it each."""
    name = "double" if y.is_double else "float"
    first = exponent.arithmetic_shift(1)
    return y * power_of_two(first, name) * power_of_two(exponent - first, name)


def limited(x: Number, low: float, high: float) -> Number:
    """In these limits; NaN stays."""
    return larger(smaller(x, high), low)


def exponential(x: Number, rest: Number | float = 0.0) -> Power:
    """e ** (x + rest), whose result has an exponent of at most twice the format's."""
    n, exponent = _whole(x, LOG2_E)
    grown = expm1_pair(*_reduced(x, n, exponentials.constants_of(x.value).ln2), rest)
    return Power(_one_more(grown), exponent)


def exp_limits(x: Number) -> tuple[float, float]:
    """Beyond which e**x is 0 or infinite."""
    return exponentials.constants_of(x.value).exp_range


def expm1_pair(r: Number, low: Number, rest: Number | float = 0.0) -> Pair:
    """e ** (r + low + rest) - 1 for |r| <= 0.35."""
    tail = polynomial(r, exponentials.constants_of(r.value).exp) * (r * r)
    return quick_sum(r, fused(low + rest, (r + tail) + 1.0, tail))


def exp10(x: Number) -> Number:
    low, high = (limit / _LN10[True] for limit in exp_limits(x))
    x = limited(x, low, high)
    n, exponent = _whole(x, _LOG2_10)
    decimal, lost = _reduced(x, n, LOG10_2[x.is_double])
    r = decimal * _LN10[x.is_double]
    rest = fused(decimal, _LN10[x.is_double], -r)
    rest = fused(decimal, _LN10_REST[x.is_double], fused(lost, _LN10[x.is_double], rest))
    return Power(_one_more(expm1_pair(r, rest)), exponent).value


def expm1(x: Number) -> Number:
    """2 (2**(n - 1) (e**r - 1) + 2**(n - 1) - 1/2): without overflow on the way."""
    inside = limited(x, -45.0 if x.is_double else -20.0, exp_limits(x)[1])
    n, exponent = _whole(inside, LOG2_E)
    grown = expm1_pair(*_reduced(inside, n, exponentials.constants_of(x.value).ln2))
    half = power_of_two(exponent - 1, "double" if x.is_double else "float")
    less = two_sum(half, -0.5)
    total = two_sum(half * grown.high, less.high)
    y = total.high + fused(half, grown.low, total.low + less.low)
    return where(magnitude(x) < x.format.smallest_normal, x, y + y)


def sinh(x: Number) -> Number:
    size, square = magnitude(x), x * x
    half = _half_exponential(size)
    large = half.high + (half.low - _quarter_over(half.high))
    small = fused(size * square, polynomial(square, SINH), size)
    return with_sign_of(where(size < 1.0, small, large), x)


def cosh(x: Number) -> Number:
    half = _half_exponential(magnitude(x))
    return half.high + (half.low + _quarter_over(half.high))


def tanh(x: Number) -> Number:
    """1 - 2 / (e**(2 |x|) + 1)."""
    size, square = magnitude(x), x * x
    doubled = smaller(size + size, 44.0 if x.is_double else 20.0)
    power = exponential(doubled).parts
    divisor = two_sum(power.high, 1.0)
    y = ratio(2.0, divisor.high)
    y = fused(y * y * -0.5, divisor.low + power.low, y)
    small = fused(size * square, polynomial(square, TANH), size)
    return with_sign_of(where(size < 0.625, small, 1.0 - y), x)


def _quarter_over(half: Number) -> Number:
    """Of a large number it counts for nothing beside that number."""
    return ratio(0.25, smaller(half, 2.0**100))


def _half_exponential(size: Number) -> Pair:
    power = exponential(smaller(size, exp_limits(size)[1] + 1.0))
    return Power(power.mantissa, power.exponent - 1).parts


def _whole(x: Number, factor: float) -> tuple[Number, Number]:
    """The whole number nearest to x * factor, as a float and as an integer."""
    format = x.format
    shifted = fused(x, factor, format.rounder)
    return shifted - format.rounder, shifted.bits() - format.rounder_bits


def _reduced(x: Number, n: Number, unit: tuple[float, float]) -> tuple[Number, Number]:
    """x - n unit, and what rounding that loses."""
    first = fused(n, -unit[0], x)
    r = fused(n, -unit[1], first)
    return r, fused(n, -unit[1], first - r)


def _one_more(grown: Pair) -> Pair:
    """1 + a pair of less than that."""
    total = quick_sum(grown.high.number(1.0), grown.high)
    return Pair(total.high, total.low + grown.low)
