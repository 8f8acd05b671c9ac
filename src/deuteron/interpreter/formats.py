"""Narrow float formats: rounding to them, and their bit patterns. Arrays of them are held as float32.

bf16 is the upper half of a float32. fp8 e4m3fn has no infinity and one NaN, e5m2 is IEEE-like; both saturate: what is
too large, infinity included, becomes the largest finite value, as `cvt.rn.satfinite` does.

    round_to_bf16(np.float32(1.00390625))   -> 1.0        half-way, to even
    FORMATS[f8e4m3].round(np.float32(500))  -> 448.0
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from xdsl.ir import Attribute

from deuteron.ir.types import bf16, f8e4m3, f8e5m2, f16, f32


@dataclass(frozen=True)
class FloatFormat:
    """A binary float format narrower than float64; `min_exponent` is that of the smallest normal number."""

    exponent_bits: int
    mantissa_bits: int
    min_exponent: int
    max_value: float
    saturates: bool = False

    def round(self, x: np.ndarray, toward_zero: bool = False) -> np.ndarray:
        """The nearest value of the format (ties to even), or the next one towards zero; float64."""
        wide = np.asarray(x, np.float64)
        exponent = np.maximum(np.frexp(wide)[1] - 1, self.min_exponent)
        quantum = np.ldexp(1.0, exponent - self.mantissa_bits)
        rounded = (np.trunc if toward_zero else np.rint)(wide / quantum) * quantum
        if self.saturates:
            return np.clip(rounded, -self.max_value, self.max_value)
        overflow = np.copysign(self.max_value if toward_zero else np.inf, wide)
        is_too_large = (np.abs(rounded) > self.max_value) & np.isfinite(wide)
        return np.where(is_too_large, overflow, rounded)

    @cached_property
    def magnitudes(self) -> np.ndarray:
        """The value of every bit pattern without a sign, in order: finite, then infinity where there is one."""
        codes = np.arange(1 << (self.exponent_bits + self.mantissa_bits))
        exponent, fraction = codes >> self.mantissa_bits, codes & ((1 << self.mantissa_bits) - 1)
        significand = fraction / (1 << self.mantissa_bits) + (exponent > 0)
        values = np.ldexp(significand, np.maximum(exponent, 1) - 1 + self.min_exponent)
        finite = values[values <= self.max_value]
        return finite if len(finite) == len(codes) - 1 else np.append(finite, np.inf)

    @cached_property
    def decoded(self) -> np.ndarray:
        """The float32 value of each of the 256 bit patterns of an 8-bit format."""
        positive = np.full(128, np.nan, np.float32)
        positive[: len(self.magnitudes)] = self.magnitudes
        return np.concatenate([positive, -positive])

    def encode(self, x: np.ndarray) -> np.ndarray:
        """The bit patterns, uint8, of values of an 8-bit format."""
        code = np.searchsorted(self.magnitudes, np.abs(x))
        code = np.where(np.isnan(x), 127, code)
        return (code | np.signbit(x).astype(np.int64) << 7).astype(np.uint8)


FORMATS: dict[Attribute, FloatFormat] = {
    f8e4m3: FloatFormat(4, 3, -6, 448.0, saturates=True),
    f8e5m2: FloatFormat(5, 2, -14, 57344.0, saturates=True),
    f16: FloatFormat(5, 10, -14, 65504.0),
    bf16: FloatFormat(8, 7, -126, float.fromhex("0x1.fep127")),
    f32: FloatFormat(8, 23, -126, float.fromhex("0x1.fffffep127")),
}


def round_to_bf16(x: np.ndarray) -> np.ndarray:
    """float32 or float64 rounded once to the nearest bfloat16, ties to even, held as float32."""
    if x.dtype != np.float32:
        x = narrow_to_odd(x)
    bits = np.asarray(x).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) & np.uint32(0xFFFF0000)
    quiet_nan = (bits | np.uint32(0x00400000)) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(x), quiet_nan, rounded).view(np.float32)


def narrow_to_odd(x: np.ndarray) -> np.ndarray:
    """float64 to float32, rounded to odd: rounding the result to fewer bits is then as rounding `x` once."""
    nearest = np.asarray(x, np.float32)
    return round_to_odd(nearest, np.asarray(x, np.float64) - nearest)


def round_to_odd(nearest: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Of the two neighbours of an exact value `nearest + error`, the one with an odd significand."""
    bits = np.asarray(nearest).view(np.uint32 if nearest.dtype == np.float32 else np.uint64)
    is_inexact_even = (error != 0) & ~np.isnan(error) & (bits & bits.dtype.type(1) == 0)
    towards = np.copysign(np.inf, error).astype(nearest.dtype)
    return np.where(is_inexact_even, np.nextafter(nearest, towards), nearest)
