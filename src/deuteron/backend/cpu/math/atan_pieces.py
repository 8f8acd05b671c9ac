"""libdevice's atan of floats on vectors of AVX-512, by pieces: 32 polynomials of Taylor's, whose tables registers hold.

    z = |x|, or 1 / |x| where that is less;  n = round(z / s), where s is 33/1024;  t = z - n s,  |t| <= 0.0162
    atan z = c0 + ((t + r) + t (c1 + t (c2 + t (c3 + t c4)))), of the larger ones pi/2 less that

r is what c0 loses, being a float. Worst error found: 1.2 ulp. Doubles, and narrower registers:
`math/extern/angle.py`.
"""

from __future__ import annotations

import ctypes
import math

from deuteron.backend.cpu.math.pieces import looked_up
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value
from deuteron.backend.math.polynomial import FLOAT, bits_of, fused, number

_STEP = 33 / 1024  # of which all multiples are floats, and the last one is 0.999
_HALF_PI = (1.5707963705062866, -4.371139000186241e-08)


def _piece(z: float) -> list[float]:
    """The function as a sum of two, its first derivative less 1, and what Taylor's polynomial has besides."""
    slope = 1 / (1 + z * z)
    further = (-z * slope**2, (3 * z * z - 1) / 3 * slope**3, (z - z**3) * slope**4)
    whole = ctypes.c_float(math.atan(z)).value
    return [whole, *(ctypes.c_float(c).value for c in (math.atan(z) - whole, slope - 1, *further))]


_WHOLE, _REST, *_COEFFICIENTS = zip(*(_piece(n * _STEP) for n in range(32)), strict=True)


def atan(b: Builder, x: Value) -> Value:
    """Of 16 lanes."""
    size = b.fabs(x)
    is_large = b.fcmp("ogt", size, number(x, 1.0))
    z = b.select(is_large, b.fdiv(number(x, 1.0), size, flags=""), size)
    rounder = number(x, FLOAT.rounder)
    shifted = fused(b, z, number(x, 1 / _STEP), rounder)
    t = fused(b, b.fsub(shifted, rounder, flags=""), number(x, -_STEP), z)
    small = _evaluate(b, bits_of(b, shifted), t)
    large = b.fsub(number(x, _HALF_PI[0]), b.fsub(small, number(x, _HALF_PI[1]), flags=""), flags="")
    return b.copysign(b.select(is_large, large, small), x)


def _evaluate(b: Builder, places: Value, t: Value) -> Value:
    *coefficients, slope = (looked_up(b, places, table) for table in _COEFFICIENTS)
    while coefficients:
        slope = fused(b, slope, t, coefficients.pop())
    rest = b.fadd(t, looked_up(b, places, _REST), flags="")
    return b.fadd(looked_up(b, places, _WHOLE), fused(b, t, slope, rest), flags="")
