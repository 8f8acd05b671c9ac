"""`hypot`, `norm3d`, `norm4d` and their inverses in float64, rounded once but for one case in thousands.

The squares are summed as a pair of numbers, and the root has one step of Newton's: a plain sum of four squares, its
root and a division are off by up to 2.5 units.
"""

from __future__ import annotations

import numpy as np

from deuteron.interpreter.numerics.fused import two_product


def norm(*x: np.ndarray) -> np.ndarray:
    (high, low), exponent, is_infinite = _sum_of_squares(*x)
    root = np.sqrt(high)
    square, rest = two_product(root, root)
    root = root + np.where(high > 0, ((high - square) - rest + low) / (2 * np.where(high > 0, root, 1.0)), 0.0)
    return np.where(is_infinite, np.inf, np.ldexp(root, exponent))


def rnorm(*x: np.ndarray) -> np.ndarray:
    (high, low), exponent, is_infinite = _sum_of_squares(*x)
    y = 1.0 / np.sqrt(high)
    safe = np.where(high > 0, y, 0.0)
    square, rest = two_product(safe, safe)
    product, rest_of_product = two_product(square, high)
    y = y + safe * 0.5 * ((1.0 - product) - rest_of_product - rest * high - square * low)
    return np.where(is_infinite, 0.0, np.ldexp(y, -exponent))


def _sum_of_squares(*x: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray, np.ndarray]:
    """A pair, of the numbers over two to the exponent, which are at most 1; and whether one of them is infinite."""
    sizes = np.abs(np.stack(np.broadcast_arrays(*x)))
    largest = sizes.max(axis=0)
    _, exponent = np.frexp(np.where((largest > 0) & np.isfinite(largest), largest, 1.0))
    scaled = np.ldexp(sizes, -exponent)
    high, low = two_product(scaled, scaled)
    total, rest = np.zeros_like(largest), low.sum(axis=0)
    for square in np.sort(high, axis=0)[::-1]:
        before, total = total, total + square
        rest = rest + (square - (total - before))
    return (total, rest), exponent, np.isinf(sizes).any(axis=0)
