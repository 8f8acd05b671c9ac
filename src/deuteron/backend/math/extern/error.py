"""erfc, erfcx, normcdf in float and double, all of one polynomial.

    t = (x - 4) / (x + 4),  erfcx(x) = P(t) / (1 + 2 x) for x >= 0,  erfc(x) = e**(-x**2) erfcx(x)

x**2 is taken as a pair, since an error of it counts in full. Negative x: erfc(x) = 2 - erfc(-x). Near 0 it is
1 - erf(x), since P is less exact there.
"""

from __future__ import annotations

import math

from deuteron.backend.math import error_function
from deuteron.backend.math.coefficients import ERFCX
from deuteron.backend.math.extern.exponential import Power, exponential
from deuteron.backend.math.number import Number, magnitude, polynomial, ratio, smaller, where
from deuteron.backend.math.pair import Pair, two_product


def erf(x: Number) -> Number:
    return x.make(error_function.erf(x.b, x.value))


def erfc(x: Number) -> Number:
    size = smaller(magnitude(x), 28.0 if x.is_double else 10.5)
    y = _times_gaussian(_erfcx(size), two_product(size, size))
    return where(magnitude(x) < 0.5, _near_zero(x), where(x < 0.0, 2.0 - y, y))


def erfcx(x: Number) -> Number:
    """Of negative numbers 2 e**(x**2) - erfcx(-x)."""
    size = magnitude(x)
    inside = smaller(size, 27.0 if x.is_double else 9.5)
    square = two_product(inside, inside)
    power = exponential(square.high, square.low)
    twice = Power(power.mantissa, power.exponent + 1).value
    y = where(size < 0.5, power.value * _near_zero(size), _erfcx(size))
    return where(x < 0.0, twice - y, y)


def normcdf(x: Number) -> Number:
    """erfc(-x / sqrt(2)) / 2, with the Gaussian of x itself."""
    size = smaller(magnitude(x), 39.0 if x.is_double else 14.5)
    square = two_product(size, size)
    y = _times_gaussian(_erfcx(size * math.sqrt(0.5)) * 0.5, Pair(square.high * 0.5, square.low * 0.5))
    return where(x > 0.0, 1.0 - y, y)


def _near_zero(x: Number) -> Number:
    """erfc of |x| < 0.5."""
    return 1.0 - x.make(error_function.erf_of_small(x.b, x.value))


def _erfcx(size: Number) -> Number:
    """Of a large one both sides of the quotient are scaled, so that its result may be subnormal."""
    inside = smaller(size, 2.0**100)
    t = ratio(inside - 4.0, inside + 4.0)
    scale = where(size > 2.0**64, size.number(2.0**-64), 1.0)
    y = ratio(polynomial(t, ERFCX) * 0.5 * scale, (size + 0.5) * scale)
    return where(size.equals(math.inf), 0.0, y)


def _times_gaussian(y: Number, exponent: Pair) -> Number:
    """y e**(-exponent), rounded once at the end."""
    power = exponential(-exponent.high, -exponent.low)
    return Power(Pair(power.mantissa.high * y, power.mantissa.low * y), power.exponent).value
