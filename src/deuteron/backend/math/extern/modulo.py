"""fmod and IEEE's remainder, exactly.

remainder:  r = fmod(|x|, 2 |y|), less |y| where that is nearer to 0, and again
"""

from __future__ import annotations

import math

from deuteron.backend.math import remainder as division
from deuteron.backend.math.number import Function, Number, magnitude, where


def fmod(x: Number, y: Number) -> Number:
    return x.make(division.remainder(x.b, x.value, y.value, x.unit.fuses and x.unit.doubles))


def remainder_by(fmod: Function) -> Function:
    return lambda x, y: _remainder(fmod, x, y)


def _remainder(fmod: Function, x: Number, y: Number) -> Number:
    size, unit = magnitude(x), magnitude(y)
    largest = 2.0**x.format.bias  # twice a unit above it would be infinite, and x is not more than that
    rest = where(unit >= largest, size, fmod(size, unit + unit))
    is_tiny = unit < 4.0 * x.format.smallest_normal  # half of it may not be exact, and twice the rest is not infinite
    limit = where(is_tiny, unit, unit * 0.5)
    is_above = where(is_tiny, rest + rest, rest) > limit
    once = where(is_above, rest - unit, rest)
    is_still_above = is_above & (where(is_tiny, once + once, once) >= limit)
    result = where(is_still_above, once - unit, once)
    result = where(size.equals(math.inf), math.nan, result)
    return where(x.bits() < 0, -result, result)
