"""Rounding that NumPy does not have: fused multiply-add, directed rounding, bf16, tf32 and fp8.

    fma(a, b, c)                  one rounding, float32 or float64
    to_bf16(x)                    float32 to bits of bfloat16, ties to even
    encode_fp8(x, "e4m3")         float32 to bits, saturating

One rounding is by way of *rounding to odd*: `interpreter/numerics/fused.py`.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from deuteron.interpreter.numerics.fused import fused_multiply_add, multiply_add_to_odd


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c of float32 or float64 with one rounding."""
    if np.asarray(a).dtype == np.float64:
        return fused_multiply_add(np.asarray(a), b, c)
    total = np.multiply(a, b, dtype=np.float64) + np.asarray(c, np.float64)
    # Rounding twice differs from rounding once only where the first result is half-way between two float32.
    half_way = (total.view(np.uint64) & np.uint64(0x1FFFFFFF)) == np.uint64(0x10000000)
    if half_way.any() or (np.abs(total) < 1.2e-38).any():
        return fused_multiply_add(a, b, c)
    return total.astype(np.float32)


def fma_to_odd(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c of values of at most 26 bits as float64 rounded to odd, for rounding to a narrow format."""
    return multiply_add_to_odd(*(np.asarray(x, np.float64) for x in (a, b, c)))


def directed(exact: np.ndarray, type: type, mode: str) -> np.ndarray:
    """float64 rounded to a narrower type, `mode` one of rn rz rm rp."""
    nearest = exact.astype(type)
    if mode == "rn":
        return nearest
    back = nearest.astype(np.float64)
    up = type(np.inf)
    if mode == "rz":
        return np.where(np.abs(back) > np.abs(exact), np.nextafter(nearest, type(0)), nearest)
    if mode == "rm":
        return np.where(back > exact, np.nextafter(nearest, -up), nearest)
    return np.where(back < exact, np.nextafter(nearest, up), nearest)


def flush(x: np.ndarray) -> np.ndarray:
    """Subnormal numbers of the type to zeros of their sign."""
    zero = np.zeros_like(x, x.dtype)
    return np.where(np.abs(x) < np.finfo(x.dtype).smallest_normal, np.copysign(zero, x), x)


def from_bf16(bits: np.ndarray) -> np.ndarray:
    return (np.asarray(bits).astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_bf16(x: np.ndarray, mode: str = "rn") -> np.ndarray:
    """float32 to bits of bfloat16, `mode` rn or rz; every NaN becomes 0x7fff."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    if mode == "rn":
        bits = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    return np.where(np.isnan(x), np.uint16(0x7FFF), (bits >> np.uint32(16)).astype(np.uint16))


def odd_float32(exact: np.ndarray) -> np.ndarray:
    """float64 to float32 rounded to odd."""
    truncated = directed(exact, np.float32, "rz")
    inexact = (truncated.astype(np.float64) != exact) & np.isfinite(exact)
    return (truncated.view(np.uint32) | inexact.astype(np.uint32)).view(np.float32)


def to_tf32(x: np.ndarray, mode: str) -> np.ndarray:
    """float32 to bits of tf32 (the low 13 bits zero), `mode` one of rna rn rz."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    extra = {"rna": np.uint32(0x1000), "rz": np.uint32(0)}.get(
        mode, np.uint32(0xFFF) + (bits >> np.uint32(13) & np.uint32(1))
    )
    rounded = bits + extra & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(x), rounded, np.where(np.isnan(x), np.uint32(0x7FFFFFFF), bits))


# Floats of eight, six and four bits: exponent and mantissa bits, bias, the largest number.
_SMALL = {
    "e4m3": (4, 3, 7, 448.0),
    "e5m2": (5, 2, 15, 57344.0),
    "e2m3": (2, 3, 1, 7.5),
    "e3m2": (3, 2, 3, 28.0),
    "e2m1": (2, 1, 1, 6.0),
}
_WITH_NAN = ("e4m3", "e5m2")


@cache
def small_values(format: str) -> np.ndarray:
    """The float32 value of each bit pattern, of which there are 256, 64 or 16."""
    exponent_bits, mantissa_bits, bias, largest = _SMALL[format]
    codes = np.arange(1 << exponent_bits + mantissa_bits)
    exponent, fraction = codes >> mantissa_bits, codes & (1 << mantissa_bits) - 1
    significand = fraction / (1 << mantissa_bits) + (exponent > 0)
    values = np.ldexp(significand, np.maximum(exponent, 1) - bias)
    values[values > largest] = np.nan
    if format == "e5m2":
        values[0x7C] = np.inf
    return np.concatenate([values, -values]).astype(np.float32)


def decode_small(bits: np.ndarray, format: str) -> np.ndarray:
    values = small_values(format)
    return values[bits & len(values) - 1]


def encode_small(x: np.ndarray, format: str) -> np.ndarray:
    """Nearest value, ties to even; what is too large (infinity included) becomes the largest finite.

    NaN becomes 0x7f with its sign, or the largest number where there is none.
    """
    values = small_values(format)
    half = len(values) // 2
    finite = values[:half][np.isfinite(values[:half])].astype(np.float64)
    magnitude = np.minimum(np.abs(np.asarray(x, np.float64)), finite[-1])
    above = np.clip(np.searchsorted(finite, magnitude), 1, len(finite) - 1)
    low, high = finite[above - 1], finite[above]
    twice = 2 * magnitude - (low + high)
    takes_high = (twice > 0) | ((twice == 0) & (above % 2 == 0))
    code = np.where(np.isnan(x), half - 1, np.where(takes_high, above, above - 1))
    has_sign = np.signbit(x) & ~(np.isnan(x) & (format not in _WITH_NAN))
    return (code + np.where(has_sign, half, 0)).astype(np.uint8)
