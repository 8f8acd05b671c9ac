"""Whole numbers, signs, exponents and neighbours of floats: all exact.

round(2.5)   3.0        rint(2.5)   2.0        nextafter(1.0, 2.0)   1 + 2**-23        ilogb(0.1)   -4
"""

from __future__ import annotations

import math

from deuteron.backend.llvm.types import element
from deuteron.backend.math.extern.exponential import scaled
from deuteron.backend.math.number import (
    Number,
    any_of,
    downward,
    magnitude,
    nearest,
    toward_zero,
    upward,
    where,
    with_sign_of,
)

floor, ceil, trunc, rint = downward, upward, toward_zero, nearest

_LEAST = -(2**31)


def round(x: Number) -> Number:
    """Halves away from zero."""
    size = magnitude(x)
    whole = toward_zero(size)
    return with_sign_of(where(size - whole >= 0.5, whole + 1.0, whole), x)


def llrint(x: Number) -> Number:
    return whole_number(nearest(x), "i64", signed=True)


def llround(x: Number) -> Number:
    return whole_number(round(x), "i64", signed=True)


def whole_number(x: Number, name: str, signed: bool) -> Number:
    """As an integer, limited; NaN gives 0, or the highest bit where 64 bits are involved, as PTX has it."""
    y = x.to_integer(name, signed)
    bits = int(name[1:])
    return where(x.is_nan(), 1 << (bits - 1), y) if x.is_double or bits == 64 else y


def isnan(x: Number) -> Number:
    return x.is_nan().extend("i32")


def isinf(x: Number) -> Number:
    return magnitude(x).equals(math.inf).extend("i32")


def isfinite(x: Number) -> Number:
    return (magnitude(x) < math.inf).extend("i32")


def signbit(x: Number) -> Number:
    return (x.bits() >> (63 if x.is_double else 31)).narrow("i32")


def absolute(x: Number) -> Number:
    return magnitude(x) if x.is_float else where(x < 0, -x, x)


def minimum(x: Number, y: Number) -> Number:
    """Of a NaN and a number the number, of zeros the negative one."""
    smaller = where(any_of(x < y, y.is_nan()), x, y)
    return where(x.equals(y), (x.bits() | y.bits()).as_float(element(x.type)), smaller)


def maximum(x: Number, y: Number) -> Number:
    return -minimum(-x, -y)


def copysign(x: Number, y: Number) -> Number:
    return with_sign_of(x, y)


def fdim(x: Number, y: Number) -> Number:
    return where(x <= y, 0.0, x - y)


def saturate(x: Number) -> Number:
    return where(x > 0.0, where(x < 1.0, x, 1.0), 0.0)


def nextafter(x: Number, y: Number) -> Number:
    """The bits of the magnitude, one more or one less; from 0 the smallest number with the sign of y."""
    bits = x.bits()
    is_outward = (y > x).equals(x > 0.0)
    moved = where(is_outward, bits + 1, bits - 1).as_float(element(x.type))
    smallest = with_sign_of((bits.number(1)).as_float(element(x.type)), y)
    moved = where(x.equals(0.0), smallest, moved)
    moved = where(x.equals(y), y, moved)
    return where(any_of(x.is_nan(), y.is_nan()), math.nan, moved)


def ilogb(x: Number) -> Number:
    exponent = exponent_of(x).narrow("i32")
    exponent = where(any_of(x.equals(0.0), x.is_nan()), _LEAST, exponent)
    return where(magnitude(x).equals(math.inf), 2**31 - 1, exponent)


def logb(x: Number) -> Number:
    exponent = exponent_of(x).to_float(element(x.type))
    exponent = where(magnitude(x) < math.inf, exponent, magnitude(x))
    return where(x.equals(0.0), -math.inf, exponent)


def exponent_of(x: Number) -> Number:
    """Of a finite number but 0, as an integer as wide."""
    format = x.format
    size = magnitude(x)
    is_small = size < format.smallest_normal
    field = where(is_small, size * 2.0**format.mantissa_bits, size).bits() >> format.mantissa_bits
    return field - where(is_small, field.number(format.bias + format.mantissa_bits), format.bias)


def mantissa_of(x: Number) -> Number:
    """Of a finite number but 0, with its sign: 1 to 2."""
    format = x.format
    size = magnitude(x)
    size = where(size < format.smallest_normal, size * 2.0**format.mantissa_bits, size)
    fraction = (size.bits() & ((1 << format.mantissa_bits) - 1)) | (format.bias << format.mantissa_bits)
    return with_sign_of(fraction.as_float(element(x.type)), x)


def ldexp(x: Number, n: Number) -> Number:
    """The mantissa times 2 to the sum of the exponents, rounded once."""
    format = x.format
    limit = 4 * format.bias
    n = where(n < -limit, -limit, where(n > limit, limit, n))
    n = n.sign_extend(format.integer) if x.is_double else n
    total = exponent_of(x) + n
    total = where(total < -2 * format.bias, -2 * format.bias, where(total > 2 * format.bias, 2 * format.bias, total))
    result = scaled(mantissa_of(x), total)
    return where(any_of(x.equals(0.0), (magnitude(x) < math.inf) ^ True), x, result)
