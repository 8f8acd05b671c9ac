"""Special functions of float64 that Python's `math` lacks, one number at a time, plainly.

erfcx(x)        e**(x**2) erfc(x), with what rounding the square loses put right; far out a series in 1 / x**2
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction


def _exp_of_square(x: float, factor: float) -> float:
    """e ** (factor x**2), with the square exact."""
    exact = Fraction(x) ** 2 * Fraction(factor)
    rounded = float(exact)
    return math.exp(rounded) * (1.0 + float(exact - Fraction(rounded)))


def erfcx(x: float) -> float:
    if x != x:
        return x
    if x < 0:
        return 2.0 * _exp_of_square(x, 1.0) - erfcx(-x) if x > -27 else math.inf
    if x < 20:
        return _exp_of_square(x, 1.0) * math.erfc(x)
    total = term = 1.0
    for k in range(1, 10):
        term *= -(2 * k - 1) / (2 * x) / x
        total += term
    return total / x / math.sqrt(math.pi)


def normcdf(x: float) -> float:
    if not x <= -1:
        return 0.5 * math.erfc(-x * math.sqrt(0.5))
    return 0.5 * erfcx(-x * math.sqrt(0.5)) * _exp_of_square(x, -0.5) if x > -39 else 0.0


FUNCTIONS: dict[str, Callable[..., float]] = {"erfcx": erfcx, "normcdf": normcdf}
