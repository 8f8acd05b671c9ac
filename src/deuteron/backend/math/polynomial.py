"""What the expansions of mathematical functions share: constants in the type of a value, fused polynomials, float bits.

    evaluate(b, x, (1.0, 0.5, 0.25))        1 + x * (0.5 + x * 0.25)
    f = Float.of(x)                         FLOAT or DOUBLE: what is different between the two

The coefficients that the other modules pass here are minimax fits (Remez's algorithm in 40 digits, error
weighted by the term's share in the result), rounded to the type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const, element, like


@dataclass(frozen=True)
class Float:
    """A floating type: its integer type, mantissa bits, exponent bias, and 1.5 * 2**mantissa_bits.

    Adding that last number to one of smaller magnitude rounds it to a whole number, which then stands in
    the low bits.
    """

    integer: str
    mantissa_bits: int
    bias: int

    @staticmethod
    def of(x: Value) -> Float:
        return DOUBLE if element(x.type) == "double" else FLOAT

    @property
    def rounder(self) -> float:
        return 1.5 * 2.0**self.mantissa_bits

    @property
    def rounder_bits(self) -> int:
        return (self.bias + self.mantissa_bits << self.mantissa_bits) + (1 << (self.mantissa_bits - 1))

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)


FLOAT = Float("i32", 23, 127)
DOUBLE = Float("i64", 52, 1023)


def number(x: Value, value: float) -> Value:
    """A constant of the type of x."""
    return const(x.type, value)


def fused(b: Builder, a: Value, x: Value, c: Value) -> Value:
    """a * x + c in one rounding where the CPU has such an instruction, else in two; never a call of libm."""
    return b.intrinsic("llvm.fmuladd", a.type, a, x, c)


def evaluate(b: Builder, x: Value, coefficients: Sequence[float]) -> Value:
    """The polynomial with these coefficients, lowest power first."""
    result = number(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = fused(b, result, x, number(x, coefficient))
    return result


def bits_of(b: Builder, x: Value) -> Value:
    return b.bitcast(x, like(x.type, Float.of(x).integer))


def at_most(b: Builder, x: Value, limit: float) -> Value:
    """min(x, limit), NaN where x is."""
    bound = number(x, limit)
    return b.select(b.fcmp("olt", bound, x), bound, x)


def at_least(b: Builder, x: Value, limit: float) -> Value:
    """max(x, limit), NaN where x is."""
    bound = number(x, limit)
    return b.select(b.fcmp("ogt", bound, x), bound, x)
