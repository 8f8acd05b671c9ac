"""tgamma and lgamma, in double.

x < 8     gamma(2 + z) or its logarithm by a polynomial in the fraction z; the factors x - 1, x - 2 ... down to 2 + z
x >= 8    Stirling's formula, with the logarithm as a pair: (x - 1/2) log x - x + log(2 pi) / 2 + S(x**-2) / x
x < 0     by reflection: gamma(-a) = -pi / (a sin(pi a) gamma(a))
"""

from __future__ import annotations

import math

from deuteron.backend.math import logarithms
from deuteron.backend.math.coefficients_special import GAMMA, LGAMMA_ONE, LGAMMA_TWO, STIRLING
from deuteron.backend.math.extern.angle import sinpi
from deuteron.backend.math.extern.exponential import Power, exponential
from deuteron.backend.math.extern.logarithm import log_pair
from deuteron.backend.math.extern.shared import branch, shared
from deuteron.backend.math.number import Number, downward, fused, magnitude, polynomial, smaller, where
from deuteron.backend.math.pair import Pair

_HALF_LOG_TAU = (0.9189385332046728, -3.8782941580672414e-17)
_LARGE = 8  # from here on Stirling's formula


def _tgamma(x: Number) -> Number:
    size = magnitude(x)
    y = branch(size < float(_LARGE), lambda: _near(x, size), lambda: _far(x, size))
    is_pole = (x < 0.0) & downward(x).equals(x)
    return where(is_pole, math.nan, y)


def _near(x: Number, size: Number) -> Number:
    fraction = size - downward(size)
    is_small, is_negative = size < 1.0, x < 0.0
    z = where(is_small & is_negative, x + 1.0, fraction)
    divisor = x * (x + 1.0) * where(is_negative, x + 2.0, 1.0)
    divisor = where(is_small, divisor, where(size < 2.0, size, 1.0))
    y = polynomial(z - 0.5, GAMMA) * _factors(size) / divisor
    reflected = -math.pi / (size * sinpi(size) * y)
    return where(is_negative & (is_small ^ True), reflected, y)


def _far(x: Number, size: Number) -> Number:
    logarithm = _stirling(smaller(size, 190.0))
    is_negative = x < 0.0
    sign = where(is_negative, x.number(-1.0), 1.0)
    power = exponential(logarithm.high * sign, logarithm.low * sign)
    factor = where(is_negative, -math.pi / (size * sinpi(size)), 1.0)
    return Power(Pair(power.mantissa.high * factor, power.mantissa.low * factor), power.exponent).value


def _lgamma(x: Number) -> Number:
    size = magnitude(x)
    y = branch(size < float(_LARGE), lambda: _log_near(size), lambda: _log_far(size))
    is_negative = x < 0.0
    reflected = _log(math.pi / (size * magnitude(sinpi(size)))) - y
    y = where(is_negative, where(downward(x).equals(x), math.inf, reflected), y)
    y = where(size < 2.0**-70, -_log(size), y)
    return where(size.equals(math.inf), size, y)


def _log_near(size: Number) -> Number:
    """Of 1 + z near 1, of 2 + z beyond; below 1/2 and from 3 on with a logarithm."""
    is_small, is_one = size < 0.5, size < 1.5
    whole = downward(size)
    z = where(is_small, size, where(is_one, size - 1.0, where(size < 3.0, size - 2.0, size - whole)))
    y = z * where(is_one, polynomial(z, LGAMMA_ONE), polynomial(z - 0.25, LGAMMA_TWO))
    rest = _log(where(is_small, size, _factors(size)))
    return where(is_small, y - rest, y + rest)


def _log_far(size: Number) -> Number:
    usual = _stirling(smaller(size, 1e100)).total
    return where(size < 1e100, usual, size * (_log(size) - 1.0))


def _stirling(size: Number) -> Pair:
    rest = polynomial(1.0 / (size * size), STIRLING) / size
    zero = size.number(0.0)
    grown = log_pair(size).times(size - 0.5) + Pair(-size, zero)
    return grown + Pair(size.number(_HALF_LOG_TAU[0]), rest + _HALF_LOG_TAU[1])


def _factors(size: Number) -> Number:
    """(size - 1) (size - 2) ... down to the one between 2 and 3."""
    product = size.number(1.0)
    for i in range(1, _LARGE - 2):
        product = where(size >= float(i + 2), fused(product, size, product * -float(i)), product)
    return product


def _log(x: Number) -> Number:
    return x.make(logarithms.log(x.b, x.value))


tgamma, lgamma = shared("tgamma", _tgamma), shared("lgamma", _lgamma)
