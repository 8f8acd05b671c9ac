"""Computes the coefficients that `backend/math/coefficients.py` holds: `python scripts/fit_math.py > coefficients.py`.

    Fit("ATAN", lambda t: ..., 0, 0.172, weight=0.172)        a polynomial in t for t from 0 to 0.172

Each is the interpolation at Chebyshev's nodes in 60 digits, of the lowest degree whose error, times the weight (the
share that the term has in the result), is below 2**-28.5 for float and 2**-58 for double; then rounded to the type.
Needs mpmath.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

import mpmath as mp

mp.mp.dps = 60
TOLERANCES = {"FLOAT": mp.mpf(2) ** -28.5, "DOUBLE": mp.mpf(2) ** -58}


class Fit(NamedTuple):
    """A function of t on an interval. `weight` is the largest share of an error of it in the final result."""

    name: str
    function: Callable
    low: float
    high: float
    weight: float = 1.0
    types: tuple[str, ...] = ("FLOAT", "DOUBLE")
    center: float = 0.0  # the polynomial is in t - center


def chebyshev(fit: Fit, degree: int) -> list:
    """The coefficients of the polynomial in t - center, lowest power first."""
    low, high = mp.mpf(fit.low) - fit.center, mp.mpf(fit.high) - fit.center
    middle, half = (low + high) / 2, (high - low) / 2
    angles = [mp.pi * (k + mp.mpf(1) / 2) / (degree + 1) for k in range(degree + 1)]
    values = [fit.function(middle + half * mp.cos(a) + fit.center) for a in angles]
    sums = [mp.fsum(v * mp.cos(j * a) for v, a in zip(values, angles, strict=True)) for j in range(degree + 1)]
    series = [2 * total / (degree + 1) for total in sums]
    series[0] /= 2
    return _to_powers(series, middle, half)


def _to_powers(series: list, middle, half) -> list:
    """From Chebyshev's polynomials in u = (t - middle) / half to powers of t."""
    u = [-middle / half, 1 / half]
    before, current = [mp.mpf(1)], u
    total = [series[0]]
    for coefficient in series[1:]:
        total = _add(total, [coefficient * c for c in current])
        before, current = current, _add([2 * c for c in _multiply(u, current)], [-c for c in before])
    return total


def _add(a: list, b: list) -> list:
    return [(a[i] if i < len(a) else 0) + (b[i] if i < len(b) else 0) for i in range(max(len(a), len(b)))]


def _multiply(a: list, b: list) -> list:
    result = [mp.mpf(0)] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            result[i + j] += x * y
    return result


def fitted(fit: Fit, type: str) -> list[float]:
    low, high = mp.mpf(fit.low), mp.mpf(fit.high)
    points = [low + (high - low) * k / 60 for k in range(61)]
    values = [fit.function(p) for p in points]
    scale = fit.weight if fit.weight != 1.0 else 1 / max(abs(v) for v in values)
    for degree in range(2, 40):
        powers = chebyshev(fit, degree)
        error = max(abs(mp.polyval(powers[::-1], p - fit.center) - v) for p, v in zip(points, values, strict=True))
        if error * scale < TOLERANCES[type]:
            return [to_type(c, type) for c in powers]
    raise ValueError(f"{fit.name}: no degree up to 39 is enough")


def to_type(value, type: str) -> float:
    number = float(value)
    return struct.unpack("f", struct.pack("f", number))[0] if type == "FLOAT" else number


def _odd(function: Callable) -> Callable:
    """(f(x) - x) / x**3 as a function of t = x**2."""
    limit = mp.diff(lambda x: function(x), 0, 3) / 6

    def rest(t):
        x = mp.sqrt(t)
        return (function(x) - x) / x**3 if abs(t) > mp.mpf(10) ** -12 else limit

    return rest


def _log_rest(z):
    """(log((1 + s) / (1 - s)) - 2 s - 2/3 s**3) / s**5 with z = s**2: the sum of 2 z**k / (2 k + 5)."""
    return mp.nsum(lambda k: 2 * mp.mpf(z) ** int(k) / (2 * k + 5), [0, mp.inf]) if z else mp.mpf(2) / 5


def _cosine_rest(t):
    """(cos(x) - 1 + x**2 / 2) / x**4 as a function of t = x**2."""
    return (mp.cos(mp.sqrt(t)) - 1 + t / 2) / t**2 if abs(t) > mp.mpf(10) ** -10 else mp.mpf(1) / 24 - t / 720


def erfcx(x):
    return mp.exp(x * x) * mp.erfc(x)


def _erfcx_scaled(t):
    """erfcx(x) (1 + 2 x) with t = (x - 4) / (x + 4); towards infinity 2 / sqrt(pi)."""
    if t > 1 - mp.mpf(10) ** -10:
        return 2 / mp.sqrt(mp.pi)
    x = 4 * (1 + t) / (1 - t)
    if x > 60:
        series = mp.fsum((-1) ** k * mp.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(25))
        return series / (x * mp.sqrt(mp.pi)) * (1 + 2 * x)
    with mp.workdps(2000 if x > 20 else 400):
        return +(erfcx(mp.mpf(x)) * (1 + 2 * x))


FITS = [
    Fit("TANH", _odd(mp.tanh), 0, 0.625**2, 0.625**2),
    Fit("SINH", _odd(mp.sinh), 0, 1, 1.0),
    Fit("ATAN", _odd(mp.atan), 0, 0.4143**2, 0.4143**2),
    Fit("ASIN", _odd(mp.asin), 0, 0.25, 0.25),
    Fit("LOG", _log_rest, 0, 0.02945, 0.02945**2 * 2**9),  # for pow, 9 bits more
    Fit("SIN", _odd(mp.sin), 0, 0.618, 0.618),
    Fit("COS", _cosine_rest, 0, 0.618, 0.618**2),
    Fit("CBRT", mp.cbrt, 1, 2, 2.0**-16, ("FLOAT",)),
    Fit("ERFCX", _erfcx_scaled, -1, 1, 0.5),
]


def main() -> None:
    print('"""Coefficients of polynomials, lowest power first, by type; made by scripts/fit_math.py."""\n')
    for fit in FITS:
        print(f"{fit.name} = {{")
        for type in fit.types:
            print(f'    "{type.lower()}": (')
            print("".join(f"        {c!r},\n" for c in fitted(fit, type)) + "    ),")
        print("}")


if __name__ == "__main__":
    main()
