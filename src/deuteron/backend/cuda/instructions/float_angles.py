"""atan, atan2, asin and acos of float, by one approximate reciprocal or root and one polynomial.

    atan(x)      t = |x| or 1 / |x|, so that t <= 1:  t + t**3 A(t**2), of pi/2 where |x| > 1
    asin(x)      up to 1/2 x + x**3 S(x**2), beyond pi/2 - 2 asin(t), t = sqrt((1 - |x|) / 2)

pi/2 less a number is one fused product: of two floats whose product is pi/2 to 41 bits. The polynomials are minimax
fits of the results, to 2**-25.8 and 2**-27.6.
"""

from __future__ import annotations

import math

from deuteron.backend.cuda.instructions.float_functions import reciprocal
from deuteron.backend.math.number import (
    Function,
    Number,
    fused,
    magnitude,
    near_root,
    polynomial,
    ratio,
    where,
    with_sign_of,
)

_ARC_TANGENT = (
    -0.33333152532577515,
    0.19993767142295837,
    -0.14211003482341766,
    0.10665785521268845,
    -0.07551723718643188,
    0.043205857276916504,
    -0.01636413298547268,
    0.0029197228141129017,
)
_ARC_SINE = (
    0.16666752099990845,
    0.074953094124794,
    0.04546914994716644,
    0.024184778332710266,
    0.042158305644989014,
)
_HALF_PI = (1.6622123718261719, 0.9450033903121948)  # whose product it is
_LARGE = 0.5  # of asin
_MOST_RUN, _SMALLER, _LARGER = (
    2.0**96,
    2.0**-32,
    2.0**24,
)  # beyond which the sides of an angle are made smaller, else larger


def atan(x: Number) -> Number:
    size = magnitude(x)
    is_steep = size > 1.0
    small = _small_angle(where(is_steep, reciprocal(size), size))
    return with_sign_of(where(is_steep, _less_than_quarters(small, 1.0), small), x)


def atan2(y: Number, x: Number) -> Number:
    """Of the smaller side over the larger one, which is scaled to be normal."""
    rise, run = magnitude(y), magnitude(x)
    is_steep = rise > run
    low, high = where(is_steep, run, rise), where(is_steep, rise, run)
    scale = where(high > _MOST_RUN, high.number(_SMALLER), _LARGER)
    slope = ratio(low * scale, high * scale)
    slope = where(high.equals(math.inf), low * 0.0, slope)  # NaN where the other one is
    slope = where(low.equals(high), where(high.equals(0.0), high, 1.0), slope)
    angle = _small_angle(slope)
    angle = where(is_steep, _less_than_quarters(angle, 1.0), angle)
    return with_sign_of(where(x.bits() < 0, _less_than_quarters(angle, 2.0), angle), y)


def asin(x: Number) -> Number:
    is_large, angle = _arc_sine(magnitude(x))
    return with_sign_of(where(is_large, _less_than_quarters(angle + angle, 1.0), angle), x)


def acos(x: Number) -> Number:
    is_large, angle = _arc_sine(magnitude(x))
    doubled = angle + angle
    near_one = where(x < 0.0, _less_than_quarters(doubled, 2.0), doubled)
    return where(is_large, near_one, _less_than_quarters(with_sign_of(angle, x), 1.0))


def _arc_sine(size: Number) -> tuple[Number, Number]:
    """Whether it is large; asin of it, or of the root of half of what it lacks to 1."""
    is_large = size > _LARGE
    square = where(is_large, fused(size, -0.5, 0.5), size * size)
    sine = where(is_large, near_root(square), size)
    return is_large, fused(sine * square, polynomial(square, _ARC_SINE), sine)


def _small_angle(tangent: Number) -> Number:
    square = tangent * tangent
    return fused(tangent * square, polynomial(square, _ARC_TANGENT), tangent)


def _less_than_quarters(angle: Number, quarters: float) -> Number:
    """pi/2 or pi, less the angle."""
    first, second = _HALF_PI
    return fused(angle.number(first), second * quarters, -angle)


FUNCTIONS: dict[str, Function] = {
    "atanf": atan,
    "atan2f": atan2,
    "asinf": asin,
    "acosf": acos,
}
