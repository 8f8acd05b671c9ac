"""Every element type, declared once: the tables of all stages are made of these declarations.

    FloatType("fp8e5", "float8e5", "float8_e5m2", "f8E5M2", exponent_bits=5, mantissa_bits=2, bias=15, saturates=True)

    dtype of the language    dtype("fp8e5")        its name in the language is `float8e5`
    type of tile IR          f8E5M2
    arrays, signatures       ml_dtypes.float8_e5m2 -> "*fp8e5"
    conversions              bits, bias, what is infinite, NaN or too large

What depends on instructions for a type (products, conversions of a GPU) is not here but with the machine. How to add a
type: docs/add-an-op.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum


class Specials(Enum):
    """Which codes of a float type are no finite numbers. The names are MLIR's."""

    IEEE = "an exponent of all ones: infinity, and NaN where the mantissa is not 0"
    FN = "all ones are NaN, nothing is infinite"
    FNUZ = "the code of minus zero is NaN: there is no minus zero, and nothing is infinite"
    NONE = "none"


@dataclass(frozen=True)
class IntegerType:
    """An integer; one of a single bit is a bool, which takes a byte in memory."""

    bits: int
    is_signed: bool

    @property
    def signature(self) -> str:
        """In signatures: `i32`, `u8`, `i1`."""
        return f"{'i' if self.is_signed or self.bits == 1 else 'u'}{self.bits}"

    def has(self, number: int) -> bool:
        """Whether a number is one of the type's."""
        lowest = -(1 << self.bits - 1) if self.is_signed and self.bits > 1 else 0
        return lowest <= number < lowest + (1 << self.bits)

    @property
    def name(self) -> str:
        """In the language: `int32`, `uint8`, `int1`."""
        return f"int{self.bits}" if self.is_signed or self.bits == 1 else f"uint{self.bits}"

    @property
    def dtype_name(self) -> str:
        """What `dtype` calls it."""
        return self.name

    @property
    def array_name(self) -> str:
        """In NumPy and torch."""
        return "bool" if self.bits == 1 else self.name


@dataclass(frozen=True)
class FloatType:
    """A binary float: sign, exponent, mantissa, with subnormals.

    Where conversions to a type saturate, what is too large, infinity included, becomes the largest number that they
    give: that of the last finite code, or of `largest`. A NaN becomes one where the type has it, else the largest.
    """

    signature: str  # in signatures, and what `dtype` calls it
    name: str  # in the language
    array_name: str  # in NumPy, ml_dtypes and torch
    ir_text: str  # in tile IR, as MLIR has it
    exponent_bits: int
    mantissa_bits: int
    bias: int
    specials: Specials = Specials.IEEE
    saturates: bool = False
    dlpack_code: int | None = None  # where DLPack has one for this type alone
    largest: int | None = None  # the code of the largest number that conversions give, where it is not the last one

    @property
    def dtype_name(self) -> str:
        """What `dtype` calls it."""
        return self.signature

    @property
    def bits(self) -> int:
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def min_exponent(self) -> int:
        """That of the smallest normal number."""
        return 1 - self.bias

    @property
    def has_infinity(self) -> bool:
        return self.specials is Specials.IEEE

    @property
    def has_nan(self) -> bool:
        return self.specials is not Specials.NONE

    @property
    def has_minus_zero(self) -> bool:
        return self.specials is not Specials.FNUZ

    @property
    def max_value(self) -> float:
        """The largest finite number that conversions give."""
        exponent, fraction = divmod(self.largest_code, 1 << self.mantissa_bits)
        return math.ldexp(1 + fraction / (1 << self.mantissa_bits), exponent - self.bias)

    def has_all_of(self, other: FloatType) -> bool:
        """Whether every finite number of the other type is one of this type."""
        has_precision = self.mantissa_bits >= other.mantissa_bits
        least, others_least = (type.min_exponent - type.mantissa_bits for type in (self, other))
        return has_precision and least <= others_least and self.max_value >= other.max_value

    def keeps(self, x: float) -> bool:
        """Whether conversions are known to leave a number as it is: of the normal ones, zero and infinity."""
        if x == 0:
            return self.has_minus_zero or math.copysign(1, x) > 0
        if math.isinf(x):
            return self.has_infinity and not self.saturates
        fraction, exponent = math.frexp(x)
        is_in_range = exponent > self.min_exponent and abs(x) <= self.max_value
        return is_in_range and math.ldexp(fraction, self.mantissa_bits + 1).is_integer()

    @property
    def sign_code(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def end_code(self) -> int:
        """The first code after the finite ones without a sign: that of infinity, where there is one."""
        ones = self.sign_code - 1
        if self.specials is Specials.IEEE:
            return ones >> self.mantissa_bits << self.mantissa_bits
        return ones if self.specials is Specials.FN else self.sign_code

    @property
    def largest_code(self) -> int:
        """The code of the largest number that conversions give."""
        return self.end_code - 1 if self.largest is None else self.largest

    @property
    def nan_code(self) -> int:
        """What NaNs become, with their sign: a quiet NaN, of fp8 all ones, as PTX has it; without NaN the largest."""
        if not self.has_nan:
            return self.largest_code
        if self.specials is Specials.FNUZ:
            return self.sign_code
        if self.bits == 8:
            return self.sign_code - 1
        return self.end_code | 1 << (self.mantissa_bits - 1)

    @property
    def as_stored(self) -> FloatType:
        """The type as what is rounded already is stored: every number that it has stays what it is."""
        return replace(self, saturates=self.saturates and not self.has_infinity, largest=None)


FP8E4NV = FloatType("fp8e4nv", "float8e4nv", "float8_e4m3fn", "f8E4M3FN", 4, 3, 7, Specials.FN, True, 10)
FP8E5 = FloatType("fp8e5", "float8e5", "float8_e5m2", "f8E5M2", 5, 2, 15, saturates=True, dlpack_code=12)
FP8E4B8 = FloatType("fp8e4b8", "float8e4b8", "float8_e4m3fnuz", "f8E4M3FNUZ", 4, 3, 8, Specials.FNUZ, True, 11)
FP8E5B16 = FloatType("fp8e5b16", "float8e5b16", "float8_e5m2fnuz", "f8E5M2FNUZ", 5, 2, 16, Specials.FNUZ, True, 13)
# The upper byte of an fp16 but for one bit of the exponent. Conversions give 1.75 at most, although 0x7f is 1.875.
FP8E4B15 = FloatType(
    "fp8e4b15", "float8e4b15", "float8_e4m3b15", "tt.f8E4M3B15", 4, 3, 15, Specials.NONE, True, largest=0x7E
)
FP16 = FloatType("fp16", "float16", "float16", "f16", 5, 10, 15)
BF16 = FloatType("bf16", "bfloat16", "bfloat16", "bf16", 8, 7, 127)
FP32 = FloatType("fp32", "float32", "float32", "f32", 8, 23, 127)
FP64 = FloatType("fp64", "float64", "float64", "f64", 11, 52, 1023)

INTEGERS = (
    IntegerType(1, is_signed=False),
    *(IntegerType(bits, is_signed=True) for bits in (8, 16, 32, 64)),
    *(IntegerType(bits, is_signed=False) for bits in (8, 16, 32, 64)),
)
FLOATS = (FP8E4NV, FP8E5, FP8E4B8, FP8E5B16, FP8E4B15, FP16, BF16, FP32, FP64)

# How numbers of the types of a signature are passed in C; fp8 is not.
C_NAMES = {
    **{type.signature: "bool" if type.bits == 1 else f"{type.name}_t" for type in INTEGERS},
    **{type.signature: "double" if type.bits == 64 else "float" for type in FLOATS if type.bits > 8},
}


def as_signed(number: int, bits: int) -> int:
    """The number whose bits are the lowest of another one: of 200 with 8 bits -56."""
    low = number & (1 << bits) - 1
    return low - (1 << bits) if low >> bits - 1 else low
