"""Arithmetic in each rounding, from what rounding to nearest loses.

    add_rd(x, y):  s = x + y, and what that loses;  where that is negative, the float below s

A product of floats is exact in double; of doubles it is a pair of the mantissas, compared with the result scaled alike,
so that nothing is lost at the ends of the range. A quotient r is compared by x - r y, a root by x - r r.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from deuteron.backend.llvm.types import element
from deuteron.backend.math.extern.convert import stepped
from deuteron.backend.math.extern.whole import exponent_of, ldexp, mantissa_of
from deuteron.backend.math.number import Function, Number, any_of, fused, magnitude, square_root, where
from deuteron.backend.math.pair import two_product, two_sum

MODES = ("rn", "rz", "rd", "ru")
_FARTHEST = -400  # bits: what is smaller than another term by so much only matters by its sign


def _rounded(operation: Callable[..., tuple[Number, Number]], mode: str) -> Function:
    """`operation` gives the result to nearest, and a number with the sign of the exact value less that; or NaN."""

    def emit(*numbers: Number) -> Number:
        y, lost = operation(*numbers)
        return y if mode == "rn" else stepped(y, lost < 0.0, lost > 0.0, mode)

    return emit


def _sum(mode: str) -> Function:
    def emit(x: Number, y: Number) -> Number:
        total = two_sum(x, y)
        is_over = magnitude(total.high).equals(math.inf) & (magnitude(x) < math.inf) & (magnitude(y) < math.inf)
        lost = where(is_over, -total.high, total.low)
        result = stepped(total.high, lost < 0.0, lost > 0.0, mode)
        return _zero_below(total.high, result, x, y) if mode == "rd" else result

    return emit


def _difference(mode: str) -> Function:
    add = _sum(mode)
    return lambda x, y: add(x, -y)


def _zero_below(exact: Number, result: Number, x: Number, y: Number) -> Number:
    """A sum that is exactly 0 of terms of both signs is negative where rounding is downwards."""
    has_negative = any_of(x.bits() < 0, y.bits() < 0)
    return where(exact.equals(0.0) & has_negative, -magnitude(exact), result)


def _product(x: Number, y: Number) -> tuple[Number, Number]:
    result = x * y
    if not x.is_double:
        return result, _sign(x.extend("double") * y.extend("double") - result.extend("double"))
    exact = two_product(mantissa_of(x), mantissa_of(y))
    scaled = ldexp(result, -(exponent_of(x) + exponent_of(y)))
    return result, _where_usual((exact.high - scaled) + exact.low, x, y)


def _quotient(x: Number, y: Number) -> tuple[Number, Number]:
    result = x / y
    if not x.is_double:
        wide = y.extend("double")
        rest = x.extend("double") - result.extend("double") * wide
        return result, _sign(where(wide < 0.0, -rest, rest))
    top, below = mantissa_of(x), mantissa_of(y)
    product = two_product(ldexp(result, exponent_of(y) - exponent_of(x)), below)
    rest = (top - product.high) - product.low
    lost = where(below < 0.0, -rest, rest)
    return result, _where_usual(where(magnitude(result).equals(math.inf), -result, lost), x, y)


def _reciprocal(x: Number) -> tuple[Number, Number]:
    return _quotient(x.number(1.0), x)


def _root(x: Number) -> tuple[Number, Number]:
    result = square_root(x)
    if not x.is_double:
        wide = result.extend("double")
        return result, _sign(x.extend("double") - wide * wide)
    exponent = exponent_of(x)
    odd = exponent & 1
    top = mantissa_of(x) * where(odd.equals(1), x.number(2.0), 1.0)
    root = ldexp(result, -((exponent - odd).arithmetic_shift(1)))
    product = two_product(root, root)
    return result, _where_usual((top - product.high) - product.low, x)


def _fused(mode: str) -> Function:
    def emit(x: Number, y: Number, z: Number) -> Number:
        nearest, is_zero, lost = (_fused_double if x.is_double else _fused_float)(x, y, z)
        result = stepped(nearest, lost < 0.0, lost > 0.0, mode)
        has_negative = any_of((x.bits() ^ y.bits()) < 0, z.bits() < 0)
        return where(is_zero & has_negative, -magnitude(nearest), result) if mode == "rd" else result

    return emit


def _fused_float(x: Number, y: Number, z: Number) -> tuple[Number, Number, Number]:
    """The sum of the exact product, in double; rounded to odd, so that a second rounding is as good as one."""
    total = two_sum(x.extend("double") * y.extend("double"), z.extend("double"))
    result = _to_odd(total.high, total.low).narrow("float")
    lost = (total.high - result.extend("double")) + total.low
    return result, total.high.equals(0.0), _sign(lost)


def _fused_double(x: Number, y: Number, z: Number) -> tuple[Number, Number, Number]:
    """Scaled by the largest exponent: the product's pair and the third, with all that adding them loses."""
    product_exponent, third_exponent = exponent_of(x) + exponent_of(y), exponent_of(z)
    largest = where(product_exponent < third_exponent, third_exponent, product_exponent)
    largest = where(z.equals(0.0), product_exponent, largest)
    exact = two_product(mantissa_of(x), mantissa_of(y))
    high, low = (_moved(part, product_exponent - largest) for part in exact)
    third = where(z.equals(0.0), 0.0, _moved(mantissa_of(z), third_exponent - largest))
    middle = two_sum(third, low)
    top = two_sum(high, middle.high)
    rest = two_sum(top.low, middle.low)
    plain = x * y + z
    result = fused(x, y, z) if x.unit.fuses else ldexp(top.high + _to_odd(rest.high, rest.low), largest)
    is_usual = _is_usual(x, y) & (magnitude(z) < math.inf)
    result = where(is_usual, result, where(_is_finite(x, y) & magnitude(z).equals(math.inf), z, plain))
    distance = two_sum(top.high - ldexp(result, -largest), rest.high)
    lost = distance.high + (distance.low + rest.low)
    lost = where(magnitude(result).equals(math.inf), -result, lost)
    is_zero = where(is_usual, top.high + rest.high, plain).equals(0.0)
    return result, is_zero, where(is_usual, lost, 0.0)


def _moved(x: Number, exponent: Number) -> Number:
    return ldexp(x, where(exponent < _FARTHEST, _FARTHEST, exponent))


def _to_odd(x: Number, lost: Number) -> Number:
    """x, or where it is even and something was lost the neighbour on that side."""
    bits = x.bits()
    is_even = (bits & 1).equals(0)
    is_outward = (lost > 0.0).equals(x > 0.0)
    name = element(x.type)
    neighbour = where(is_outward, bits + 1, bits - 1).as_float(name)
    is_inexact = any_of(lost < 0.0, lost > 0.0) & (magnitude(x) < math.inf)
    return where(is_even & is_inexact, neighbour, x)


def _sign(x: Number) -> Number:
    """As a float: -1, 0, 1, or NaN."""
    positive = where(x > 0.0, x.number(1.0), 0.0)
    return where(x < 0.0, -1.0, positive).narrow("float")


def _is_finite(*numbers: Number) -> Number:
    finite = magnitude(numbers[0]) < math.inf
    for x in numbers[1:]:
        finite = finite & (magnitude(x) < math.inf)
    return finite


def _is_usual(*numbers: Number) -> Number:
    """None is 0, infinite or NaN."""
    usual = _is_finite(*numbers)
    for x in numbers:
        usual = usual & x.differs(0.0)
    return usual


def _where_usual(lost: Number, *numbers: Number) -> Number:
    return where(_is_usual(*numbers), lost, 0.0)


FUNCTIONS: dict[str, Function] = {}
for _mode in MODES:
    FUNCTIONS[f"add_{_mode}"] = _sum(_mode)
    FUNCTIONS[f"sub_{_mode}"] = _difference(_mode)
    FUNCTIONS[f"mul_{_mode}"] = _rounded(_product, _mode)
    FUNCTIONS[f"div_{_mode}"] = _rounded(_quotient, _mode)
    FUNCTIONS[f"rcp_{_mode}"] = _rounded(_reciprocal, _mode)
    FUNCTIONS[f"sqrt_{_mode}"] = _rounded(_root, _mode)
    FUNCTIONS[f"fma_{_mode}"] = _fused(_mode)
