"""Pairs of floats of four and six bits, which have neither infinities nor a NaN.

cvt.rn.satfinite.e2m1x2.f32 b, x, y;      x = 2.6, y = -9.0:  0x5f      3 above -6, in a byte
cvt.rn.f16x2.e2m1x2 r, b;                 0x5f:  -6 in the lower half of r, 3 in the upper one
cvt.rn.satfinite.e3m2x2.f32 h, x, y;      x = 2.6, y = -9.0:  0x1138    2.5 above -8, in a byte each

As bits of an f16 a code says 2^(bias - 15) times as much, subnormal or not: so it comes from there and goes there.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from deuteron.interpreter.assembly.predicates import compare
from deuteron.interpreter.assembly.registers import Registers
from deuteron.ir.types import f16, f32, i16, i32


@dataclass(frozen=True)
class SmallFloat:
    """`place_bits`: how many bits of a register a code of `bits` takes."""

    bits: int
    mantissa_bits: int
    bias: int
    largest: float
    place_bits: int

    @property
    def shift(self) -> int:
        """From the lowest bit of a code to that of an f16's mantissa."""
        return 10 - self.mantissa_bits

    @property
    def sign(self) -> int:
        return 1 << self.bits - 1


SMALL_FLOATS = {
    "e2m1x2": SmallFloat(bits=4, mantissa_bits=1, bias=1, largest=6.0, place_bits=4),
    "e2m3x2": SmallFloat(bits=6, mantissa_bits=3, bias=1, largest=7.5, place_bits=8),
    "e3m2x2": SmallFloat(bits=6, mantissa_bits=2, bias=3, largest=28.0, place_bits=8),
}


def encoded(r: Registers, x: SSAValue, format: SmallFloat) -> SSAValue:
    """The code of a float32 as an i32; what is too large is the largest, and so is NaN, without its sign."""
    bits = r.bits(x, i32)
    magnitude = r.bits(r.op(arith.AndIOp, bits, r.constant(0x7FFFFFFF, i32)), f32)
    rounded = _rounded(r, r.op(arith.MinnumfOp, magnitude, r.constant(format.largest, f32)), format)
    small = r.op(arith.MulfOp, rounded, r.constant(2.0 ** (format.bias - 15), f32))
    wide = r.resized(r.bits(r.cast(arith.TruncFOp, small, f16), i16), 32)
    code = r.op(arith.ShRUIOp, wide, r.constant(format.shift, i32))
    is_negative = compare(r, "lt", bits, r.constant(0, i32), "s32")
    signed = r.op(arith.OrIOp, code, r.constant(format.sign, i32))
    is_nan = compare(r, "nan", x, x, "f32")
    return r.select(is_nan, code, r.select(is_negative, signed, code))


def _rounded(r: Registers, magnitude: SSAValue, format: SmallFloat) -> SSAValue:
    """To a multiple of the last place, ties to even: as a sum is rounded whose last place is that one."""
    power = r.bits(r.op(arith.AndIOp, r.bits(magnitude, i32), r.constant(0x7F800000, i32)), f32)
    power = r.op(arith.MaxnumfOp, power, r.constant(2.0 ** (1 - format.bias), f32))
    large = r.op(arith.MulfOp, power, r.constant(1.5 * 2.0 ** (23 - format.mantissa_bits), f32))
    return r.op(arith.SubfOp, r.op(arith.AddfOp, magnitude, large), large)


def decoded(r: Registers, code: SSAValue, format: SmallFloat) -> SSAValue:
    """The f16 of the lowest bits of an i32."""
    magnitude = r.op(arith.AndIOp, code, r.constant(format.sign - 1, i32))
    small = r.resized(r.op(arith.ShLIOp, magnitude, r.constant(format.shift, i32)), 16)
    wide = r.cast(arith.ExtFOp, r.bits(small, f16), f32)
    value = r.op(arith.MulfOp, wide, r.constant(2.0 ** (15 - format.bias), f32))
    sign = r.op(arith.AndIOp, code, r.constant(format.sign, i32))
    sign = r.op(arith.ShLIOp, sign, r.constant(32 - format.bits, i32))
    return r.cast(arith.TruncFOp, r.bits(r.op(arith.OrIOp, r.bits(value, i32), sign), f32), f16)
