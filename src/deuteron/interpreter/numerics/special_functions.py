"""Special functions of float64 that Python's `math` lacks, one number at a time, plainly.

erfinv(x)       Newton's method on erf and erfc
cbrt(x)         a step of Newton's with an exact residue: C libraries are up to four ulps off
jn(2, x)        the power series in decimals of many digits; far out Hankel's expansion
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction

from deuteron.interpreter.numerics.gamma_and_error import PI, erfcx, lgamma, normcdf, tgamma

_DIGITS = 70
_EULER = Decimal(
    "0.57721566490153286060651209008240243104215933593992359880576723488486772677766467093694706329174674951463"
)
_FAR = 30.0  # from here on Hankel's expansion is as good as float64


def _exp_of_square(x: float) -> float:
    """e ** (x**2), with the square exact."""
    exact = Fraction(x) ** 2
    rounded = float(exact)
    return math.exp(rounded) * (1.0 + float(exact - Fraction(rounded)))


def _near_erfcx(x: float) -> float:
    """e**(x**2) erfc(x) within a few units, with what rounding the square loses put right."""
    if x != x:
        return x
    if x < 0:
        return 2.0 * _exp_of_square(x) - _near_erfcx(-x) if x > -27 else math.inf
    if x < 20:
        return _exp_of_square(x) * math.erfc(x)
    total = term = 1.0
    for k in range(1, 10):
        term *= -(2 * k - 1) / (2 * x) / x
        total += term
    return total / x / math.sqrt(math.pi)


def cbrt(x: float) -> float:
    if not math.isfinite(x) or x == 0:
        return x
    near = math.copysign(abs(x) ** (1 / 3), x)
    return near + float((Fraction(x) - Fraction(near) ** 3) / (3 * Fraction(near) ** 2))


def rcbrt(x: float) -> float:
    if not math.isfinite(x) or x == 0:
        return math.copysign(math.inf, x) if x == 0 else 1.0 / x
    near = 1.0 / cbrt(x)
    return near + float(Fraction(near) * (1 - Fraction(x) * Fraction(near) ** 3) / 3)


def erfinv(x: float) -> float:
    if not abs(x) < 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    if abs(x) > 0.5:
        return math.copysign(erfcinv(1.0 - abs(x)), x)
    y = x * math.sqrt(math.pi) / 2
    for _ in range(8):
        y -= (math.erf(y) - x) * math.sqrt(math.pi) / 2 * math.exp(y * y)
    return y


def erfcinv(x: float) -> float:
    if not 0 < x < 2:
        return {0.0: math.inf, 2.0: -math.inf}.get(x, math.nan)
    if x > 0.5:
        return erfinv(1.0 - x) if x < 1.5 else -erfcinv(2.0 - x)
    y = math.sqrt(-math.log(x))
    for _ in range(60):
        # the step on log(erfc), whose slope is -2 / (sqrt(pi) erfcx)
        scaled = _near_erfcx(y)
        y += (math.log(scaled) - y * y - math.log(x)) * scaled * math.sqrt(math.pi) / 2
    return y


def normcdfinv(x: float) -> float:
    return -math.sqrt(2.0) * erfcinv(2.0 * x)


def jn(n: float, x: float) -> float:
    n, size = int(n), abs(x)
    if n < 0 or x != x:
        return math.nan
    sign = -1.0 if math.copysign(1.0, x) < 0 and n % 2 else 1.0
    if math.isinf(x):
        return 0.0 * sign
    if size < _FAR or n >= size:
        return sign * _j_series(n, size) if n < 3000 + 2 * size else 0.0 * sign
    return sign * _upwards(n, size, *(_hankel(order, size)[0] for order in (0, 1)))


def yn(n: float, x: float) -> float:
    n = int(n)
    if n < 0 or not x >= 0:
        return math.nan
    if x == 0 or math.isinf(x) or n > 3000 + 2 * x:
        return 0.0 if math.isinf(x) else -math.inf
    near = x < _FAR
    return _upwards(n, x, *(_y_series(order, x) if near else _hankel(order, x)[1] for order in (0, 1)))


def _j_series(n: int, x: float) -> float:
    """(x/2)**n / n! times the sum of (-x**2 / 4)**k / (k! (n + 1) ... (n + k))."""
    with localcontext(Context(prec=_DIGITS + int(x))):
        total = sum(_terms(n, -_quarter(x)), Decimal(0))
        first = (Decimal(x) / 2) ** n / math.factorial(n) if n else Decimal(1)
        return float(first * total)


def _y_series(order: int, x: float) -> float:
    """With the logarithm, and digamma's numbers in each term."""
    with localcontext(Context(prec=_DIGITS + int(x))):
        half = Decimal(x) / 2
        terms = _terms(order, -_quarter(x))
        digamma, series = -_EULER, Decimal(0)
        for k, term in enumerate(terms):
            next_one = digamma + Decimal(1) / (k + 1)
            series += term * (2 * digamma if order == 0 else digamma + next_one)
            digamma = next_one
        scale = half**order
        total = 2 * half.ln() * sum(terms, Decimal(0)) * scale - series * scale - (2 / Decimal(x) if order else 0)
        return float(total / PI)


def _quarter(x: float) -> Decimal:
    return Decimal(x) ** 2 / 4


def _terms(n: int, q: Decimal) -> list[Decimal]:
    """q**k / (k! (n + 1) ... (n + k)), until they are small."""
    terms, k = [Decimal(1)], 0
    while abs(terms[-1]) > Decimal(10) ** -_DIGITS or k * k < abs(q):
        k += 1
        terms.append(terms[-1] * q / (k * (n + k)))
    return terms


def _hankel(order: int, x: float) -> tuple[float, float]:
    """J and Y: sqrt(2 / (pi x)) times P cos - Q sin, P sin + Q cos of x - (2 n + 1) pi / 4."""
    p, q, term = 1.0, 0.0, 1.0
    for k in range(1, 30):
        term *= (4 * order * order - (2 * k - 1) ** 2) / (8 * k) / x
        if k % 2:
            q += term * (-1) ** (k // 2)
        else:
            p += term * (-1) ** (k // 2)
    sine, cosine = math.sin(x), math.cos(x)
    sine, cosine = (sine - cosine, sine + cosine) if order == 0 else (-(sine + cosine), sine - cosine)
    scale = 1.0 / math.sqrt(math.pi) / math.sqrt(x)
    return scale * (p * cosine - q * sine), scale * (p * sine + q * cosine)


def _upwards(n: int, x: float, first: float, second: float) -> float:
    """The order n from 0 and 1; once infinite it stays so."""
    for k in range(1, n):
        if math.isinf(second):
            return second
        first, second = second, 2 * k / x * second - first
    return second if n else first


def _modified(order: int) -> Callable[[float], float]:
    def function(x: float) -> float:
        if not abs(x) < 720:
            return x if x != x else math.copysign(math.inf, x**order)
        with localcontext(Context(prec=_DIGITS)):
            total = sum(_terms(order, _quarter(x)), Decimal(0)) * (Decimal(x) / 2 if order else 1)
        return float(total) if x or order == 0 else x

    return function


FUNCTIONS: dict[str, Callable[..., float]] = {
    "erfcx": erfcx,
    "normcdf": normcdf,
    "cbrt": cbrt,
    "rcbrt": rcbrt,
    "erfinv": erfinv,
    "erfcinv": erfcinv,
    "normcdfinv": normcdfinv,
    "lgamma": lgamma,
    "tgamma": tgamma,
    "j0": lambda x: jn(0, x),
    "j1": lambda x: jn(1, x),
    "jn": lambda n, x: jn(n, x),
    "y0": lambda x: yn(0, x),
    "y1": lambda x: yn(1, x),
    "yn": lambda n, x: yn(n, x),
    "cyl_bessel_i0": _modified(0),
    "cyl_bessel_i1": _modified(1),
}
