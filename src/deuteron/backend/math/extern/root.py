"""cbrt, rcbrt, and the norms of up to four numbers with their inverses; a step of Newton's with an exact residue each.

cbrt:    x = m 2**(3 k),  y by a polynomial and a step of Halley's,  y + (m - y**3) / (3 y**2)
hypot:   s = the sum of squares as a pair, scaled,  h = sqrt(s),  h + (s - h**2) / (2 h)
"""

from __future__ import annotations

import math

from deuteron.backend.llvm.types import element
from deuteron.backend.math.coefficients import CBRT
from deuteron.backend.math.number import (
    Number,
    any_of,
    larger,
    magnitude,
    near_root,
    polynomial,
    power_of_two,
    ratio,
    square_root,
    where,
    with_sign_of,
)
from deuteron.backend.math.pair import Pair, quick_sum, two_product

_ROOTS = (2.0 ** (1 / 3), 2.0 ** (2 / 3))


def cbrt(x: Number) -> Number:
    m, y, k = _cube_root(x)
    square = two_product(y, y)
    cube = square.times(y)
    y = y + ratio((m - cube.high) - cube.low, square.high * 3.0)
    result = with_sign_of(y * power_of_two(k, element(x.type)), x)
    return where(any_of(x.equals(0.0), (magnitude(x) < math.inf) ^ True), x, result)


def rcbrt(x: Number) -> Number:
    m, y, k = _cube_root(x)
    z = ratio(1.0, y)
    product = two_product(z, z).times(z).times(m)
    z = z + z * ((1.0 - product.high) - product.low) * (1 / 3)
    result = with_sign_of(z * power_of_two(-k, element(x.type)), x)
    inverse = where(x.equals(0.0), with_sign_of(x.number(math.inf), x), with_sign_of(x.number(0.0), x))
    special = where(x.is_nan(), x, inverse)
    return where(any_of(x.equals(0.0), (magnitude(x) < math.inf) ^ True), special, result)


def norm(*numbers: Number) -> Number:
    total, largest, exponent = _sum_of_squares(*numbers)
    root = near_root(total.high)
    square = two_product(root, root)
    better = root + ratio(((total.high - square.high) - square.low) + total.low, root + root)
    scale = (exponent << root.format.mantissa_bits).as_float(element(root.type))
    return _special(where(largest.equals(0.0), 0.0, better * scale), math.inf, *numbers)


def rnorm(*numbers: Number) -> Number:
    total, largest, exponent = _sum_of_squares(*numbers)
    y = ratio(1.0, near_root(total.high))
    product = two_product(y, total.high)
    square = product.times(y)
    y = y + y * 0.5 * (((1.0 - square.high) - square.low) - total.low * y * y)
    y = y * _inverse_scale(y, exponent)
    return _special(where(largest.equals(0.0), math.inf, y), 0.0, *numbers)


def rsqrt(x: Number) -> Number:
    """One over the square root, correctly rounded in float. Without the second term 1 - 2**-23 would be a tie."""
    format = x.format
    is_small = x < format.smallest_normal
    shift = format.mantissa_bits & ~1
    m = where(is_small, x * 2.0**shift, x)
    y = 1.0 / square_root(m)
    product = two_product(y, m)
    square = product.times(y)
    rest = (1.0 - square.high) - square.low
    better = y + y * (rest * 0.5) * (1.0 + rest * 0.75)
    better = where(is_small, better * 2.0 ** (shift // 2), better)
    return where((m > 0.0) & (m < math.inf), better, y)


def _cube_root(x: Number) -> tuple[Number, Number, Number]:
    """m in [1, 8), a first root of it, and k."""
    format, name = x.format, element(x.type)
    bits = format.mantissa_bits
    shift = 3 * ((bits + 2) // 3)
    size = magnitude(x)
    is_small = size < format.smallest_normal
    field = where(is_small, size * 2.0**shift, size).bits()
    exponent = (field >> bits) - where(is_small, field.number(shift), 0) + (3 * format.bias - format.bias)
    third = exponent.make(exponent.b.udiv(exponent.value, exponent.number(3).value))
    left = exponent - third * 3
    m = ((field & ((1 << bits) - 1)) | (format.bias << bits)).as_float(name)
    y = polynomial(m, CBRT["float"])
    y = where(left.equals(0), y, y * where(left.equals(1), y.number(_ROOTS[0]), _ROOTS[1]))
    m = m * where(left.equals(0), y.number(1.0), where(left.equals(1), y.number(2.0), 4.0))
    cube = y * y * y
    return m, ratio(y * (cube + (m + m)), cube + cube + m), third - format.bias


def _sum_of_squares(*numbers: Number) -> tuple[Pair, Number, Number]:
    """The sum of the squares scaled, the largest magnitude, and the exponent field of the scale."""
    sizes = [magnitude(x) for x in numbers]
    largest = sizes[0]
    for size in sizes[1:]:
        largest = larger(largest, size)
    format = largest.format
    field = largest.bits() >> format.mantissa_bits
    field = where(field < 1, 1, where(field > 2 * format.bias - 1, 2 * format.bias - 1, field))
    scale = _inverse_scale(largest, field)
    total = None
    for size in sizes:
        square = two_product(size * scale, size * scale)
        total = square if total is None else total + square
    return quick_sum(total.high, total.low), largest, field


def _inverse_scale(like: Number, field: Number) -> Number:
    return ((2 * like.format.bias - field) << like.format.mantissa_bits).as_float(element(like.type))


def _special(y: Number, of_infinity: float, *numbers: Number) -> Number:
    y = where(any_of(*(x.is_nan() for x in numbers)), math.nan, y)
    return where(any_of(*(magnitude(x).equals(math.inf) for x in numbers)), of_infinity, y)
