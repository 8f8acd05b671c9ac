"""tan, sinpi, cospi, asin, acos, atan, atan2, in float and double. sin and cos are those of the language.

sinpi:  n = round(2 x),  r = pi (x - n / 2) as a pair, and on with sine or cosine as n says
atan2:  z = |y| / |x|, or (z - 1) / (z + 1), or -1 / z, so that |z| < 0.415:  z + z**3 A(z**2), plus 0, pi/4 or pi/2
asin:   up to 1/2 x + x**3 P(x**2), beyond pi/2 - 2 asin(sqrt((1 - x) / 2)), whose root is kept as a pair
"""

from __future__ import annotations

import math

from deuteron.backend.llvm.types import element
from deuteron.backend.math import float_trigonometry, trigonometry
from deuteron.backend.math.coefficients import ASIN, ATAN, COS, SIN
from deuteron.backend.math.number import (
    Number,
    any_of,
    fused,
    magnitude,
    near_root,
    nearest,
    polynomial,
    ratio,
    where,
    with_sign_of,
)
from deuteron.backend.math.pair import Pair, quick_sum, quotient, two_product, two_sum

_PI = {"float": (3.1415927410125732, -8.742277657347586e-08), "double": (math.pi, 1.2246467991473532e-16)}
_TAN_PI_8 = 0.4142135623730951


def sin(x: Number) -> Number:
    return _of_language(x, float_trigonometry.sin, trigonometry.sin)


def cos(x: Number) -> Number:
    return _of_language(x, float_trigonometry.cos, trigonometry.cos)


def tan(x: Number) -> Number:
    if not x.is_double and x.unit.doubles and not x.unit.fuses:
        return tan(x.extend("double")).narrow("float")
    reduce = trigonometry.reduce_angle if x.is_double else float_trigonometry.reduce_angle
    r, rest, n = (x.make(value) for value in reduce(x.b, x.value))
    sine, cosine = _sine(r, rest), _cosine(r, rest)
    is_odd = (n & 1).equals(1)
    y = ratio(where(is_odd, -cosine, sine), where(is_odd, sine, cosine))
    return where(x.equals(0.0), x, y)


def sinpi(x: Number) -> Number:
    y = _of_half_turns(x, 0)
    # of a whole number a zero of its sign
    return where(nearest(x).equals(x) & (magnitude(x) < math.inf), with_sign_of(x.number(0.0), x), y)


def cospi(x: Number) -> Number:
    return _of_half_turns(x, 1)


def asin(x: Number) -> Number:
    size = magnitude(x)
    is_large, small, doubled = _arcsine_parts(size)
    half_pi = _PI[element(x.type)][0] * 0.5, _PI[element(x.type)][1] * 0.5
    large = half_pi[0] - (doubled.high + (doubled.low - half_pi[1]))
    return with_sign_of(where(is_large, large, small.total), x)


def acos(x: Number) -> Number:
    size = magnitude(x)
    is_large, small, doubled = _arcsine_parts(size)
    pi = _PI[element(x.type)]
    near_one = doubled.high + doubled.low
    near_minus_one = pi[0] - (doubled.high + (doubled.low - pi[1]))
    middle = two_sum(x.number(pi[0] * 0.5), -with_sign_of(small.high, x))
    middle = middle.high + (middle.low + (pi[1] * 0.5 - with_sign_of(x.number(1.0), x) * small.low))
    return where(is_large, where(x < 0.0, near_minus_one, near_one), middle)


def atan(x: Number) -> Number:
    """Of |x| > 1: pi/2 - atan(1 / |x|)."""
    return with_sign_of(_angle(magnitude(x), x.number(1.0), x < x), x)


def atan2(y: Number, x: Number) -> Number:
    """The angle of (|x|, |y|), or pi less that."""
    rise, run = magnitude(y), magnitude(x)
    is_left = x.bits() < 0
    angle = _angle(rise, run, is_left)
    is_nan = any_of(x.is_nan(), y.is_nan())
    return with_sign_of(where(is_nan, math.nan, angle), y)


def _of_language(x: Number, in_float, in_double) -> Number:
    narrow = in_double if x.is_double or x.unit.doubles else in_float
    return x.make(narrow(x.b, x.value))


def _of_half_turns(x: Number, first_quadrant: int) -> Number:
    """sin(pi x + first_quadrant * pi/2)."""
    limit = 2.0 ** (x.format.mantissa_bits + 1)  # from here on all are even
    inside = where(magnitude(x) < limit, x, where(magnitude(x) < math.inf, x.number(0.0), math.nan))
    doubled = inside + inside
    whole = nearest(doubled)
    fraction = fused(whole, -0.5, inside)
    pi = _PI[element(x.type)]
    r = two_product(fraction, x.number(pi[0]))
    rest = fused(fraction, pi[1], r.low)
    n = whole.to_integer(x.format.integer) + first_quadrant
    y = where((n & 1).equals(1), _cosine(r.high, rest), _sine(r.high, rest))
    return where((n & 2).equals(2), -y, y)


def _sine(r: Number, rest: Number) -> Number:
    square = r * r
    return r + fused(r * square, polynomial(square, SIN), rest)


def _cosine(r: Number, rest: Number) -> Number:
    square = r * r
    half = square * 0.5
    main = 1.0 - half
    lost = fused(-r, rest, (1.0 - main) - half)
    return main + fused(square * square, polynomial(square, COS), lost)


def _arcsine_parts(size: Number) -> tuple[Number, Pair, Pair]:
    """Whether it is above 1/2; asin of it up to there; 2 asin(sqrt((1 - size) / 2)) = acos(size) beyond."""
    is_large = size > 0.5
    square = where(is_large, fused(size, -0.5, 0.5), size * size)
    tail = polynomial(square, ASIN) * square
    small = quick_sum(size, size * tail)
    root = near_root(square)
    product = two_product(root, root)
    rest = where(root > 0.0, ratio((square - product.high) - product.low, root + root), 0.0)
    doubled = quick_sum(root + root, 2.0 * fused(root, tail, rest))
    return is_large, small, doubled


def _angle(rise: Number, run: Number, is_left: Number) -> Number:
    """atan(rise / run) of numbers that are not negative; pi less that where `is_left`."""
    name, pi = element(rise.type), _PI[element(rise.type)]
    rise, run = _scaled_alike(rise, run)
    is_steep, is_flat = rise * _TAN_PI_8 > run, rise <= run * _TAN_PI_8
    is_middle = any_of(is_steep, is_flat) ^ True
    difference, total = two_sum(rise, -run), two_sum(rise, run)
    above = where(is_middle, difference.high, where(is_steep, -run, rise))
    below = where(is_middle, total.high, where(is_steep, rise, run))
    lost = [where(is_middle, pair.low, 0.0) for pair in (difference, total)]
    z = quotient(Pair(above, lost[0]), Pair(below, lost[1]))
    square = z.high * z.high
    tail = fused(z.high * square, polynomial(square, ATAN), z.low)
    z = quick_sum(z.high, tail)
    sign = where(is_left, rise.number(-1.0), 1.0)
    quarters = where(is_middle, rise.number(1.0), where(is_steep, rise.number(2.0), 0.0))
    quarters = where(is_left, 4.0 - quarters, quarters)
    base = quarters * (pi[0] * 0.25)
    result = two_sum(base, sign * z.high)
    angle = result.high + (result.low + fused(quarters, pi[1] * 0.25, sign * z.low))
    plain = ratio(rise, run)  # where it is tiny it is the angle, and the pair would lose it
    is_tiny = (plain < 2.0 ** (-60 if name == "double" else -30)) & (is_left ^ True)
    angle = where(is_tiny, plain, angle)
    return where(rise.equals(0.0), where(is_left, rise.number(pi[0]), 0.0), angle)


def _scaled_alike(rise: Number, run: Number) -> tuple[Number, Number]:
    """Both times a power of two that brings the larger one to the middle of the range; for infinity 1, beside it 0."""
    is_infinite = [value.equals(math.inf) for value in (rise, run)]
    rise, run = (
        where(is_infinite[i], 1.0, where(is_infinite[1 - i], 0.0, value)) for i, value in enumerate((rise, run))
    )
    format = rise.format
    largest = where(rise > run, rise, run)
    is_large, is_small = largest > 2.0 ** (format.bias - 2), largest < 2.0 ** (-format.bias // 2)
    shift = format.bias // 2
    factor = where(is_large, rise.number(2.0**-shift), where(is_small, rise.number(2.0**shift), 1.0))
    return rise * factor, run * factor
