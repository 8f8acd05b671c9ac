"""Narrow float formats: rounding to them, and their bit patterns. Arrays of them are held as float32.

bf16 is the upper half of a float32. What is infinite, NaN or minus zero in fp8 is declared (`dtypes.py`). All saturate:
what is too large, infinity included, becomes the largest finite value, as `cvt.rn.satfinite` does.

    round_to_bf16(np.float32(1.00390625))   -> 1.0        half-way, to even
    FORMATS[f8e4m3].round(np.float32(500))  -> 448.0
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.ir import Attribute

from deuteron.cached_property import cached_property
from deuteron.dtypes import FloatType
from deuteron.ir.types import FLOAT_TYPES


@dataclass(frozen=True)
class FloatFormat:
    """What a declared type narrower than float64 does to numbers."""

    type: FloatType

    def round(self, x: np.ndarray, toward_zero: bool = False) -> np.ndarray:
        """The nearest value of the format (ties to even), or the next one towards zero; float64."""
        wide = np.asarray(x, np.float64)
        exponent = np.maximum(np.frexp(wide)[1] - 1, self.type.min_exponent)
        quantum = np.ldexp(1.0, exponent - self.type.mantissa_bits)
        rounded = (np.trunc if toward_zero else np.rint)(wide / quantum) * quantum
        limited = self._saturated(rounded) if self.type.saturates else self._overflowed(rounded, wide, toward_zero)
        if not self.type.has_nan:
            limited = np.where(np.isnan(limited), np.copysign(self.type.max_value, wide), limited)
        return limited if self.type.has_minus_zero else limited + 0.0

    def _saturated(self, rounded: np.ndarray) -> np.ndarray:
        return np.clip(rounded, -self.type.max_value, self.type.max_value)

    def _overflowed(self, rounded: np.ndarray, wide: np.ndarray, toward_zero: bool) -> np.ndarray:
        overflow = np.copysign(self.type.max_value if toward_zero else np.inf, wide)
        is_too_large = (np.abs(rounded) > self.type.max_value) & np.isfinite(wide)
        limited = np.where(is_too_large, overflow, rounded)
        return limited if self.type.has_infinity else np.where(np.isinf(limited), np.nan, limited)

    @cached_property
    def magnitudes(self) -> np.ndarray:
        """The value of every bit pattern without a sign, in order: finite, then infinity where there is one."""
        codes = np.arange(1 << (self.type.exponent_bits + self.type.mantissa_bits))
        exponent, fraction = codes >> self.type.mantissa_bits, codes & ((1 << self.type.mantissa_bits) - 1)
        significand = fraction / (1 << self.type.mantissa_bits) + (exponent > 0)
        values = np.ldexp(significand, np.maximum(exponent, 1) - 1 + self.type.min_exponent)
        finite = values[: self.type.end_code]
        return np.append(finite, np.inf) if self.type.has_infinity else finite

    @cached_property
    def decoded(self) -> np.ndarray:
        """The float32 value of each of the 256 bit patterns of an 8-bit format."""
        positive = np.full(128, np.nan, np.float32)
        positive[: len(self.magnitudes)] = self.magnitudes
        values = np.concatenate([positive, -positive])
        if not self.type.has_minus_zero:
            values[self.type.nan_code] = np.nan
        return values

    def encode(self, x: np.ndarray) -> np.ndarray:
        """The bit patterns, uint8, of values of an 8-bit format; without minus zero it is zero."""
        code = np.searchsorted(self.magnitudes, np.abs(x))
        code = np.where(np.isnan(x), self.type.nan_code, code)
        is_negative = np.signbit(x) & (self.type.has_minus_zero | (code != 0))
        return (code | is_negative.astype(np.int64) << 7).astype(np.uint8)


FORMATS: dict[Attribute, FloatFormat] = {
    type: FloatFormat(declared) for type, declared in FLOAT_TYPES.items() if declared.bits < 64
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
