"""The larger and the smaller of two numbers; of a number and a NaN the number, also where the NaN signals.

`np.fmax` of a few elements is C's `fmax`, which gives NaN for a signalling one, of many it does not.
"""

from __future__ import annotations

import numpy as np


def larger(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.fmax(_quiet(x), _quiet(y))


def smaller(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.fmin(_quiet(x), _quiet(y))


def _quiet(x: np.ndarray) -> np.ndarray:
    """What signals does not any more, as after any arithmetic."""
    return x * x.dtype.type(1)
