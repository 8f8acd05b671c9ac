"""Sums of two floats, for twice the digits: the first is the sum rounded, the second what that loses.

two_sum(x, y)        Pair(x + y, what rounding lost), exactly
two_product(x, y)    the same of x * y, also on machines that do not fuse
"""

from __future__ import annotations

from typing import NamedTuple

from deuteron.backend.math.number import Number, fused, ratio


class Pair(NamedTuple):
    """`high` + `low`, where `low` is at most half an ulp of `high`."""

    high: Number
    low: Number

    def __add__(self, other: Pair) -> Pair:  # type: ignore[override]
        total = two_sum(self.high, other.high)
        return quick_sum(total.high, total.low + (self.low + other.low))

    def __mul__(self, other: Pair) -> Pair:  # type: ignore[override]
        product = two_product(self.high, other.high)
        rest = fused(self.high, other.low, fused(self.low, other.high, product.low))
        return quick_sum(product.high, rest)

    def times(self, factor: Number | float) -> Pair:
        """Times a number without a second part."""
        factor = factor if isinstance(factor, Number) else self.high.number(factor)
        product = two_product(self.high, factor)
        return quick_sum(product.high, fused(self.low, factor, product.low))

    def __neg__(self) -> Pair:
        return Pair(-self.high, -self.low)

    @property
    def total(self) -> Number:
        return self.high + self.low


def two_sum(x: Number, y: Number | float) -> Pair:
    """x + y (Knuth)."""
    y = y if isinstance(y, Number) else x.number(y)
    total = x + y
    seen = total - x
    return Pair(total, (x - (total - seen)) + (y - seen))


def quick_sum(x: Number, y: Number) -> Pair:
    """x + y where |x| is at least |y| (Dekker)."""
    total = x + y
    return Pair(total, y - (total - x))


def two_product(x: Number, y: Number) -> Pair:
    """x * y, in the range where the product's last bits are not below the smallest number."""
    product = x * y
    if x.unit.fuses:
        return Pair(product, fused(x, y, -product))
    (x_high, x_low), (y_high, y_low) = _halves(x), _halves(y)
    first = (x_high * y_high - product) + x_high * y_low
    return Pair(product, (first + x_low * y_high) + x_low * y_low)


def quotient(x: Pair, y: Pair) -> Pair:
    """x / y, to almost twice the digits, where `ratio` gives it."""
    first = ratio(x.high, y.high)
    product = two_product(first, y.high)
    rest = ((x.high - product.high) - product.low) + fused(-first, y.low, x.low)
    return quick_sum(first, ratio(rest, y.high))


def _halves(x: Number) -> Pair:
    """x as a sum of two of half the digits: the upper bits, and the rest."""
    low_bits = (x.format.mantissa_bits + 2) // 2
    high = (x.bits() & -(1 << low_bits)).as_float("double" if x.is_double else "float")
    return Pair(high, x - high)
