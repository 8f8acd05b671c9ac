"""Coefficients of the functions that `backend/cpu/math` (erf, tanh) computes by pieces; needs mpmath.

    python scripts/fit_pieces.py erf        the rows of `_PIECES`, and the largest error of each in ulp of the result

Fits that weigh errors by the ulp of the result, coefficient by coefficient: each is rounded before the next is fitted.
The first one is what the function is at the centre; of the coefficient of t, 1 is taken off.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator

try:
    import mpmath as mp
except ImportError:
    sys.exit("this needs mpmath: pip install mpmath")

POINTS, ROUNDS, DEGREE = 64, 10, 5
CONSTANT = (1.0, -1.0, 0.0, 0.0, 0.0, 0.0)  # where the function is 1


def to_float(value: mp.mpf) -> float:
    return struct.unpack("f", struct.pack("f", float(value)))[0]


def ulp(value: mp.mpf) -> mp.mpf:
    return mp.mpf(2) ** (mp.floor(mp.log(abs(value), 2)) - 23)


def weighted_fit(rows: list[list], wanted: list) -> list:
    """What makes the largest error small: least squares, again and again, with weights that follow the errors."""
    weights = [mp.mpf(1)] * len(rows)
    for _ in range(ROUNDS):
        matrix = mp.matrix([[weight * entry for entry in row] for weight, row in zip(weights, rows, strict=True)])
        right = mp.matrix([weight * value for weight, value in zip(weights, wanted, strict=True)])
        found = mp.lu_solve(matrix.T * matrix, matrix.T * right)
        sums = [sum(a * x for a, x in zip(row, found, strict=True)) for row in rows]
        errors = [abs(total - value) for total, value in zip(sums, wanted, strict=True)]
        weights = [w * mp.sqrt(e / max(errors) + mp.mpf("1e-6")) for w, e in zip(weights, errors, strict=True)]
        weights = [weight / max(weights) for weight in weights]
    return list(found)


def fit(function, centre: mp.mpf, low: mp.mpf, high: mp.mpf) -> tuple[list[float], float]:
    """The coefficients of t from `low` to `high`, of odd powers where the centre is 0, and the largest error."""
    ts = [low + (high - low) * (1 - mp.cos(mp.pi * (2 * k + 1) / (2 * POINTS))) / 2 for k in range(POINTS)]
    values = [function(centre + t) for t in ts]
    scales = [1 / ulp(value) for value in values]
    powers = [power for power in range(1, DEGREE + 1) if centre or power % 2]
    known = {0: mp.mpf(to_float(function(centre)))}
    while free := [power for power in powers if power not in known]:
        rows = [[scale * t**power for power in free] for scale, t in zip(scales, ts, strict=True)]
        rest = [value - sum(c * t**p for p, c in known.items()) for value, t in zip(values, ts, strict=True)]
        first = weighted_fit(rows, [scale * value for scale, value in zip(scales, rest, strict=True)])[0]
        known[free[0]] = 1 + mp.mpf(to_float(first - 1)) if free[0] == 1 else mp.mpf(to_float(first))
    made = [sum(c * t**p for p, c in known.items()) for t in ts]
    error = max(abs(y - value) * scale for y, value, scale in zip(made, values, scales, strict=True))
    return [float(known.get(power, 0) - (power == 1)) for power in range(DEGREE + 1)], float(error)


def erf_pieces() -> Iterator[tuple]:
    step, half = mp.mpf(65) / 512, mp.mpf(65) / 1024 * mp.mpf("1.001")
    for number in range(31):
        low = -half if number else mp.mpf("1e-9")
        yield fit(mp.erf, number * step, low, half)
    yield CONSTANT, 0.0


def tanh_pieces() -> Iterator[tuple]:
    """By the low bits of the exponent, of 1 and what follows, and the two after them; of -4 only the last is used."""
    for exponent in (1, 2, 3, -4, -3, -2, -1, 0):
        for quarter in range(4):
            low, high = (mp.mpf(2) ** exponent * (1 + mp.mpf(quarter + end) / 4) for end in (0, 1))
            yield tanh_piece(exponent, low, high)


def tanh_piece(exponent: int, low: mp.mpf, high: mp.mpf) -> tuple:
    centre = (low + high) / 2
    if exponent == -4:
        coefficients, error = fit(mp.tanh, mp.mpf(0), mp.mpf("1e-9"), mp.mpf(1) / 8)
        return (0.0, *coefficients), error
    if low >= 10:
        return (float(centre), *CONSTANT), 0.0
    coefficients, error = fit(mp.tanh, centre, low - centre, high - centre)
    return (float(centre), *coefficients), error


if __name__ == "__main__":
    mp.mp.dps = 40
    for row, largest in {"erf": erf_pieces, "tanh": tanh_pieces}[sys.argv[1]]():
        print(tuple(float(f"{value:.9g}") for value in row), f"{largest:.2f}")
