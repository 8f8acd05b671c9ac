"""erfcx, normcdf, tgamma and lgamma of float64 in decimals, rounded once.

erfcx(x)        e**(x**2) erfc(x): 1 minus the series of erf, whose terms are all positive; far out that in 1 / x**2
normcdf(x)      erfc(-x / sqrt(2)) / 2
tgamma(x)       Stirling's series of x + n, divided by x (x + 1) ... (x + n - 1)

In float64 these lose up to nine units, as those of C libraries and Python do.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798")
_DIGITS = 50
_FAR_ERROR = 10  # from here on the smallest term in 1 / x**2 is below e**-100
_FAR_GAMMA = 60  # from here on nine terms of Stirling's leave an error below 1e-33
# Bernoulli's numbers B(2), B(4), ...
_BERNOULLI = ((1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510), (43867, 798))
# Beyond these tgamma is infinite, and 0.
_LARGEST_GAMMA, _LEAST_GAMMA = 172.0, -186.0


def erfcx(x: float) -> float:
    if not -27 < x < math.inf:
        return x if x != x else 0.0 if x > 0 else math.inf
    with localcontext(Context(prec=_DIGITS)):
        scaled = _scaled(abs(Decimal(x)))
        return float(scaled if x >= 0 else 2 * (Decimal(x) ** 2).exp() - scaled)


def normcdf(x: float) -> float:
    if not -39 < x < 39:
        return x if x != x else 1.0 if x > 0 else 0.0
    with localcontext(Context(prec=_DIGITS)):
        half = Decimal(x) ** 2 / 2
        tail = _scaled(half.sqrt()) * (-half).exp() / 2
        return float(tail if x < 0 else 1 - tail)


def _scaled(x: Decimal) -> Decimal:
    """e**(x**2) erfc(x) of a number of at least 0."""
    if x < _FAR_ERROR:
        with localcontext(Context(prec=_DIGITS + int(x * x))):  # of which the difference loses nearly a half
            return (x * x).exp() - 2 * _odd_factorials(x) / PI.sqrt()
    total = term = Decimal(1)
    for k in range(1, _FAR_ERROR**2):
        term *= -(2 * k - 1) / (2 * x * x)
        total += term
    return total / x / PI.sqrt()


def _odd_factorials(x: Decimal) -> Decimal:
    """The sum of x (2 x**2)**k / (1 3 5 ... (2 k + 1))."""
    term, total, k = x, Decimal(0), 0
    while total + term != total:
        total += term
        k += 1
        term *= 2 * x * x / (2 * k + 1)
    return total


def tgamma(x: float) -> float:
    if not _LEAST_GAMMA < x < _LARGEST_GAMMA or x == math.floor(x) and x <= 0:
        return math.copysign(math.inf, x) if x == 0 else math.gamma(x)
    with localcontext(Context(prec=_DIGITS)):
        logarithm, divisor = _gamma(Decimal(x))
        return float(logarithm.exp() / divisor)


def lgamma(x: float) -> float:
    if x <= 0 and (math.isinf(x) or x == math.floor(x)):
        return math.inf
    if not _LEAST_GAMMA < x < _LARGEST_GAMMA:
        return math.lgamma(x)
    with localcontext(Context(prec=_DIGITS)):
        logarithm, divisor = _gamma(Decimal(x))
        return float(logarithm - abs(divisor).ln())


def _gamma(x: Decimal) -> tuple[Decimal, Decimal]:
    """The logarithm of gamma(x + n), and x (x + 1) ... (x + n - 1)."""
    divisor = Decimal(1)
    while x < _FAR_GAMMA:
        divisor *= x
        x += 1
    series = sum(
        Decimal(top) / bottom / (2 * k * (2 * k - 1)) / x ** (2 * k - 1)
        for k, (top, bottom) in enumerate(_BERNOULLI, start=1)
    )
    return (x - Decimal("0.5")) * x.ln() - x + (2 * PI).ln() / 2 + series, divisor
