"""The numbers of 8-bit float types, and rounding to them by looking at all of them. Imports nothing of Deuteron."""

from __future__ import annotations

import numpy as np


def values(declared) -> np.ndarray:
    """What each of the 256 codes stands for, as the declaration says, one by one."""
    return np.array([value(declared, code) for code in range(256)], np.float32)


def value(declared, code: int) -> float:
    magnitude, sign = code & 127, -1.0 if code & 128 else 1.0
    exponent, fraction = divmod(magnitude, 1 << declared.mantissa_bits)
    if code == declared.sign_code and not declared.has_minus_zero:
        return np.nan
    if magnitude >= declared.end_code:
        is_infinite = declared.has_infinity and magnitude == declared.end_code
        return sign * np.inf if is_infinite else np.nan
    significand = fraction / (1 << declared.mantissa_bits) + (exponent > 0)
    return sign * significand * 2.0 ** (max(exponent, 1) - declared.bias)


def nearest(declared, x: np.ndarray) -> np.ndarray:
    """Of the numbers that conversions give: ties to the even code; what is too large becomes the largest, or is not
    finite.
    """
    finite = values(declared)[: declared.largest_code + 1].astype(np.float64)
    above = np.clip(np.searchsorted(finite, np.abs(x)), 1, len(finite) - 1)
    low, high = finite[above - 1], finite[above]
    middle = (low + high) / 2
    is_high = (np.abs(x) > middle) | ((np.abs(x) == middle) & (above % 2 == 0))
    magnitude = np.where(is_high, high, low)
    if not declared.saturates:
        overflow = finite[-1] + (finite[-1] - finite[-2]) / 2
        magnitude = np.where(np.abs(x) >= overflow, np.inf if declared.has_infinity else np.nan, magnitude)
    return _special(declared, x, magnitude)


def toward_zero(declared, x: np.ndarray) -> np.ndarray:
    """The largest of those numbers that is not beyond x, which is finite."""
    finite = values(declared)[: declared.largest_code + 1]
    return _special(declared, x, finite[np.searchsorted(finite, np.abs(x), side="right") - 1])


def _special(declared, x: np.ndarray, magnitude: np.ndarray) -> np.ndarray:
    """With the sign of x, if it is not that of a zero which has none; NaN, or the largest where there is none."""
    nan = np.nan if declared.has_nan else declared.max_value
    signed = np.copysign(np.where(np.isnan(x), nan, magnitude), x)
    return signed if declared.has_minus_zero else signed + 0.0
