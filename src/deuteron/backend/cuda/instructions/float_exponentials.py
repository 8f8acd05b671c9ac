"""e**x of float within half an ulp and a little, as a number to multiply by: where ex2.approx is too coarse.

n = round(x / ln 2),  r = x - n ln 2,  e**x = 2**n (1 + g),  g = r + r**2 P(r)

exponential(-x * x, rest).times(y, 24)      y e**(-x**2 + rest) 2**24
"""

from __future__ import annotations

from typing import NamedTuple

from deuteron.backend.math.logarithms import LOG2_E_FLOAT
from deuteron.backend.math.number import Number, fused, polynomial

ROUNDER = 1.5 * 2.0**23  # what is added to it, an integer, stands in the low bits of the sum
_LN2 = (0.693145751953125, 1.4286068202862268e-06)  # whose first part times an exponent is exact
_GROWN = (0.4999999403953552, 0.1666652113199234, 0.04166826233267784, 0.008368674665689468, 0.0013821057509630919)


class Exponential(NamedTuple):
    """2**n (1 + `grown`); n stands in the low bits of `shifted`."""

    grown: Number
    shifted: Number

    def scale(self, shift: int) -> Number:
        """2**(n + shift), from 2**-126 on; beyond the largest power infinity, and once beyond that anything."""
        return ((self.shifted.bits() + (127 + shift)) << 23).as_float("float")

    def value(self, shift: int) -> Number:
        scale = self.scale(shift)
        return fused(scale, self.grown, scale)

    def times(self, y: Number, shift: int) -> Number:
        scaled = y * self.scale(shift)
        return fused(scaled, self.grown, scaled)


def exponential(x: Number, rest: Number | None = None) -> Exponential:
    """e ** (x + rest)."""
    shifted = fused(x, LOG2_E_FLOAT[0], ROUNDER)
    r = reduced(x, shifted)
    r = r if rest is None else r + rest
    return Exponential(fused(r * r, polynomial(r, _GROWN), r), shifted)


def reduced(x: Number, shifted: Number) -> Number:
    """x - n ln 2, of the n that was shifted."""
    n = shifted - ROUNDER
    return fused(n, -_LN2[1], fused(n, -_LN2[0], x))
