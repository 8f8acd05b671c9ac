"""Floats of four bits: e2m1 has 0, 0.5, 1, 1.5, 2, 3, 4, 6 and a sign.

cvt.rn.satfinite.e2m1x2.f32 b, x, y;      x = 2.6, y = -9.0:  0x5f      3 above -6
cvt.rn.f16x2.e2m1x2 r, b;                 0x5f:  -6 in the lower half of r, 3 in the upper one
"""

from __future__ import annotations

import functools

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from deuteron.interpreter.assembly.integers import compare
from deuteron.interpreter.assembly.registers import Registers
from deuteron.ir.types import f16, f32, i8, i32

# Between two neighbours, and whether a number there goes up: halves go to the even code. NaN is above all of them.
_STEPS = ((0.25, "gtu"), (0.75, "geu"), (1.25, "gtu"), (1.75, "geu"), (2.5, "gtu"), (3.5, "geu"), (5.0, "gtu"))


def to_e2m1(r: Registers, x: SSAValue) -> SSAValue:
    """The code of a float32 as an i8; what is too large is 6, and so is NaN, without its sign."""
    bits = r.bits(x, i32)
    magnitude = r.bits(r.op(arith.AndIOp, bits, r.constant(0x7FFFFFFF, i32)), f32)
    steps = [r.resized(compare(r, how, magnitude, r.constant(at, f32), "f32"), 8) for at, how in _STEPS]
    code = functools.reduce(lambda total, step: r.op(arith.AddiOp, total, step), steps)
    is_negative = compare(r, "lt", bits, r.constant(0, i32), "s32")
    is_nan = compare(r, "nan", x, x, "f32")
    signed = r.op(arith.OrIOp, code, r.constant(8, i8))
    return r.select(is_nan, code, r.select(is_negative, signed, code))


def from_e2m1(r: Registers, code: SSAValue) -> SSAValue:
    """The f16 of the lower four bits of an i8. As bits of an f16 they say 2^-14 times as much, subnormal or not."""
    wide = r.resized(code, 32)
    magnitude = r.op(arith.ShLIOp, r.op(arith.AndIOp, wide, r.constant(7, i32)), r.constant(9, i32))
    small = r.cast(arith.ExtFOp, r.bits(r.resized(magnitude, 16), f16), f32)
    value = r.op(arith.MulfOp, small, r.constant(2.0**14, f32))
    sign = r.op(arith.ShLIOp, r.op(arith.AndIOp, wide, r.constant(8, i32)), r.constant(28, i32))
    return r.cast(arith.TruncFOp, r.bits(r.op(arith.OrIOp, r.bits(value, i32), sign), f32), f16)
