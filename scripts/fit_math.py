"""Computes the coefficients that `backend/math/coefficients.py` holds: `python scripts/fit_math.py > coefficients.py`.

    Fit("ATAN", lambda t: ..., 0, 0.172, weight=0.172)        a polynomial in t for t from 0 to 0.172

Each is the interpolation at Chebyshev's nodes in 60 digits, of the lowest degree whose error, times the weight (the
share that the term has in the result), is below 2**-28.5 for float and 2**-58 for double; then rounded to the type.
Needs mpmath.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from typing import NamedTuple

try:
    import mpmath as mp
except ImportError:
    sys.exit("this needs mpmath: pip install mpmath")

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
    tolerance = TOLERANCES[type] * (2 if fit.types == ONLY_DOUBLE else 1)
    for degree in range(2 if type == "FLOAT" else 6, 40):
        powers = chebyshev(fit, degree)
        error = max(abs(mp.polyval(powers[::-1], p - fit.center) - v) for p, v in zip(points, values, strict=True))
        if error * scale < tolerance:
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


def _log1p_rest(t):
    """(log(1 + t) - t + t**2 / 2) / t**3."""
    return (mp.log1p(t) - t + t * t / 2) / t**3 if abs(t) > mp.mpf(10) ** -12 else mp.mpf(1) / 3 - t / 4


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


def _inverse_of(w):
    """x with w = -log((1 - x) (1 + x)), and erfinv(x)."""
    x = mp.sqrt(-mp.expm1(-w))
    return x, mp.erfinv(x) if w < 30 else _erfcinv(-mp.expm1(mp.log(-mp.expm1(-w)) / 2))


def _erfcinv(x):
    """For a small x, by Newton's steps on the logarithm of erfc."""
    y = mp.sqrt(-mp.log(x))
    for _ in range(12):
        y += (mp.log(mp.erfc(y)) - mp.log(x)) * mp.erfc(y) * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
    return y


def _central_erfinv(w):
    if w == 0:
        return mp.sqrt(mp.pi) / 2
    x, y = _inverse_of(w)
    return y / x


def _tail_erfinv(root):
    """As a function of the root of w."""
    with mp.workdps(400):
        return +_inverse_of(mp.mpf(root) ** 2)[1]


def _far_erfinv(u):
    """erfcinv(x) / root, with u = 1 / root."""
    with mp.workdps(400):
        root = 1 / mp.mpf(u)
        x = 1 - mp.sqrt(1 - mp.exp(-root * root))
        return +(_erfcinv(x) / root)


def _stirling(t):
    """What Stirling's formula lacks, times x, with t = x**-2."""
    if t < 1e-9:
        return mp.mpf(1) / 12 - t / 360
    x = 1 / mp.sqrt(t)
    return (mp.loggamma(x) - ((x - mp.mpf(1) / 2) * mp.log(x) - x + mp.log(2 * mp.pi) / 2)) * x


def _without_zero(function: Callable, *zeros) -> Callable:
    def rest(x):
        if any(abs(x - z) < mp.mpf(10) ** -25 for z in zeros):
            x += mp.mpf(10) ** -20
        return function(x) / mp.fprod(x - z for z in zeros)

    return rest


def _of_square(function: Callable, limit) -> Callable:
    return lambda t: function(mp.sqrt(t)) if t > 1e-15 else limit


def _hankel(order: int, part: int) -> Callable:
    """P or x Q of Hankel's expansion, with t = x**-2."""
    first = [mp.mpf(1), mp.mpf(4 * order * order - 1) / 8][part]

    def value(t):
        if t < 1e-8:
            return first
        x = 1 / mp.sqrt(t)
        angle = x - mp.pi * (2 * order + 1) / 4
        j, y, scale = mp.besselj(order, x), mp.bessely(order, x), mp.sqrt(mp.pi * x / 2)
        if part == 0:
            return scale * (j * mp.cos(angle) + y * mp.sin(angle))
        return x * scale * (y * mp.cos(angle) - j * mp.sin(angle))

    return value


def _y_rest(order: int) -> Callable:
    """What is left of Y0 without 2/pi J0 log, of Y1 without 2/pi (J1 log - 1/x), over x; of t = x**2."""

    def value(t):
        x = mp.sqrt(max(t, mp.mpf("1e-30")))
        rest = mp.bessely(order, x) - 2 / mp.pi * mp.besselj(order, x) * mp.log(x)
        return rest if order == 0 else (rest + 2 / (mp.pi * x)) / x

    return value


def _i_scaled(order: int) -> Callable:
    """I(x) sqrt(x) / e**x, with u = 1 / x."""
    return lambda u: mp.besseli(order, 1 / u) * mp.sqrt(1 / u) * mp.exp(-1 / u) if u > 1e-5 else 1 / mp.sqrt(2 * mp.pi)


J_ZEROS = [[mp.besseljzero(order, k) for k in (1, 2)] for order in (0, 1)]
Y_ZEROS = [[mp.besselyzero(order, k) for k in (1, 2, 3)] for order in (0, 1)]
ONLY_DOUBLE = ("DOUBLE",)


def _special(name: str, function: Callable, low: float, high: float, center: float = 0.0) -> Fit:
    return Fit(name, function, low, high, 1.0, ONLY_DOUBLE, center)


def j(order: int) -> Callable:
    return lambda x: mp.besselj(order, x)


def y(order: int) -> Callable:
    return lambda x: mp.bessely(order, x)


def _j0_rest(x):
    return mp.besselj(0, x) / (x * x - J_ZEROS[0][0] ** 2)


SPECIAL = [
    _special("ERFINV_CENTRAL", _central_erfinv, 0, 6.25, 3.125),
    _special("ERFINV_TAIL", _tail_erfinv, 2.5, 4, 3.25),
    _special("ERFINV_FAR", _tail_erfinv, 4, 6.25, 5),
    _special("ERFINV_FARTHEST", _far_erfinv, 1 / 27.4, 0.161, 0.1),
    _special("GAMMA", lambda z: mp.gamma(2 + z), 0, 1, 0.5),
    _special("LGAMMA_ONE", lambda z: mp.loggamma(1 + z) / z if abs(z) > 1e-20 else -mp.euler, -0.5, 0.5),
    _special("LGAMMA_TWO", lambda z: mp.loggamma(2 + z) / z if abs(z) > 1e-20 else 1 - mp.euler, -0.5, 1, 0.25),
    _special("STIRLING", _stirling, 0, 1 / 64),
    _special("J0_NEAR", _of_square(_j0_rest, -1 / J_ZEROS[0][0] ** 2), 0, 10.24, 5.12),
    _special("J0_MIDDLE", _without_zero(j(0), J_ZEROS[0][1]), 3.2, 8, 5.6),
    _special("J1_NEAR", _of_square(lambda x: mp.besselj(1, x) / x, mp.mpf(1) / 2), 0, 10.24, 5.12),
    _special("J1_MIDDLE", _without_zero(j(1), *J_ZEROS[1]), 3.2, 8, 5.6),
    _special("Y0_NEAR", _y_rest(0), 0, 0.49),
    _special("Y0_FIRST", _without_zero(y(0), Y_ZEROS[0][0]), 0.7, 1.2, 0.95),
    _special("Y0_SECOND", y(0), 1.2, 2.2, 1.7),
    _special("Y0_THIRD", _without_zero(y(0), Y_ZEROS[0][1]), 2.2, 5.2, 3.7),
    _special("Y0_FOURTH", _without_zero(y(0), Y_ZEROS[0][2]), 5.2, 8, 6.6),
    _special("Y1_NEAR", _y_rest(1), 0, 1.44),
    _special("Y1_FIRST", _without_zero(y(1), Y_ZEROS[1][0]), 1.2, 3, 2.1),
    _special("Y1_SECOND", _without_zero(y(1), Y_ZEROS[1][1]), 3, 5.6, 4.3),
    _special("Y1_THIRD", y(1), 5.6, 8, 6.8),
    *(_special(f"HANKEL_{'PQ'[part]}{order}", _hankel(order, part), 0, 1 / 64) for order in (0, 1) for part in (0, 1)),
    Fit("I0_NEAR", _of_square(lambda x: mp.besseli(0, x), mp.mpf(1)), 0, 64, 1.01, ONLY_DOUBLE),
    Fit("I1_NEAR", _of_square(lambda x: mp.besseli(1, x) / x, mp.mpf(1) / 2), 0, 64, 2.0, ONLY_DOUBLE),
    _special("I0_FAR", _i_scaled(0), 0, 0.125, 0.0625),
    _special("I1_FAR", _i_scaled(1), 0, 0.125, 0.0625),
]

FITS = [
    Fit("TANH", _odd(mp.tanh), 0, 0.625**2, 0.625**2),
    Fit("SINH", _odd(mp.sinh), 0, 1, 1.0),
    Fit("ATAN", _odd(mp.atan), 0, 0.4143**2, 0.4143**2),
    Fit("ASIN", _odd(mp.asin), 0, 0.25, 0.25),
    Fit("LOG", _log_rest, 0, 0.02945, 0.02945**2 * 2**9),  # for pow, 9 bits more
    Fit("LOG1P", _log1p_rest, -0.25, 0.5, 0.31, ("FLOAT",)),
    Fit("SIN", _odd(mp.sin), 0, 0.618, 0.618),
    Fit("COS", _cosine_rest, 0, 0.618, 0.618**2),
    Fit("CBRT", mp.cbrt, 1, 2, 2.0**-16, ("FLOAT",)),
    Fit("ERFCX", _erfcx_scaled, -1, 1, 0.5),
]


def main(fits: list[Fit]) -> None:
    print('"""Coefficients of polynomials, lowest power first, by type; made by scripts/fit_math.py."""\n')
    for fit in fits:
        print(f"{fit.name} = {{")
        for type in fit.types:
            print(f'    "{type.lower()}": (')
            print("".join(f"        {c!r},\n" for c in fitted(fit, type)) + "    ),")
        print("}")


if __name__ == "__main__":
    main(SPECIAL if "special" in sys.argv else FITS)
