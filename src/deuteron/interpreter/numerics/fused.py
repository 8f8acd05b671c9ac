"""a * b + c with one rounding.

    fused_multiply_add(a, b, c)   of float32 or float64
    multiply_add_to_odd(a, b, c)  of values of at most 26 bits: float64 rounded to odd, for rounding to a narrow format

Of two neighbours of the exact value, rounding to odd takes the one with the odd significand; rounding that to at least
two bits less is like rounding the exact value (Boldo and Melquiond, 2008). A product of float64 is the sum of two of
them where both are in the range; near its ends it is computed in fractions.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from deuteron.interpreter.numerics.formats import round_to_odd

# So far from the ends of the range that no part of a product, and no product of parts, leaves it.
_LEAST, _LARGEST = 2.0**-900, 2.0**990


def fused_multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        if np.asarray(a).dtype == np.float64:
            return _of_doubles(*np.broadcast_arrays(a, b, c))
        return multiply_add_to_odd(*(np.asarray(x, np.float64) for x in (a, b, c))).astype(np.float32)


def multiply_add_to_odd(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return _odd_sum(a * b, c)


def two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rounded product and its error: Dekker's."""
    product = a * b
    a_high, b_high = _upper_half(a), _upper_half(b)
    a_low, b_low = a - a_high, b - b_high
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _of_doubles(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    has_product = np.isfinite(a) & np.isfinite(b)
    plain = np.where(has_product & np.isinf(c), c, a * b + c)  # the product may overflow
    is_inexact = has_product & np.isfinite(c) & (a != 0) & (b != 0)
    far = np.max([np.abs(a), np.abs(b), np.abs(a * b), np.abs(c)], axis=0) > _LARGEST
    in_fractions = is_inexact & (far | (np.abs(a * b) < _LEAST))
    result = np.where(is_inexact & ~in_fractions, _in_parts(a, b, c, plain), plain)
    result[in_fractions] = _IN_FRACTIONS(*(x[in_fractions] for x in (a, b, c, plain)))
    return result


def _in_parts(a: np.ndarray, b: np.ndarray, c: np.ndarray, plain: np.ndarray) -> np.ndarray:
    """The three numbers, added from the small ones on; a sum of 0 has the sign of the plain one."""
    high, low = two_product(a, b)
    middle, rest = _sum(c, low)
    top, carry = _sum(high, middle)
    total = top + _odd_sum(carry, rest)
    return np.where(total == 0, plain, total)


def _in_fraction(a: float, b: float, c: float, plain: float) -> float:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if not exact:
        return plain
    sign = -1.0 if exact < 0 else 1.0
    try:
        return math.copysign(float(exact), sign)
    except OverflowError:
        return math.copysign(math.inf, sign)


_IN_FRACTIONS = np.frompyfunc(_in_fraction, 4, 1)


def _odd_sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    total, error = _sum(a, b)
    return round_to_odd(total, np.where(np.isfinite(total), error, 0.0))


def _sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rounded sum and its error."""
    total = a + b
    rest = total - a
    return total, (a - (total - rest)) + (b - rest)


def _upper_half(x: np.ndarray) -> np.ndarray:
    """The upper 26 bits of the significand of a float64."""
    scaled = x * 134217729.0
    return scaled - (scaled - x)
