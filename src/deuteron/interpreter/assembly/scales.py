"""Pairs of powers of two as the exponents of float32: from 2**-127, which is 0, to 2**127, which is 254; 255 is NaN.

cvt.rp.satfinite.ue8m0x2.f32 h, x, y;      x = 3.0, y = 0.25:  0x817D, the power that is not below it
cvt.rn.bf16x2.ue8m0x2 r, h;                0x817D:  0.25 in the lower half of r, 4 in the upper one

The sign is lost; of what is above the largest, infinity too, `.satfinite` makes the largest, others make NaN of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from deuteron.interpreter.assembly.predicates import compare_integers
from deuteron.interpreter.assembly.registers import Registers
from deuteron.ir.types import f32, i8, i16, i32
from deuteron.ptx.syntax import Operand

SCALES = "ue8m0x2"
_INFINITY, _NAN, _LARGEST = 0x7F800000, 255, 254
_LEAST = 0x00400000  # 2**-127, which has no exponent of its own


def to_scales(r: Registers, modifiers: list[str], source: str, operands: Sequence[Operand]) -> None:
    """Of two floats the first goes to the upper half."""
    r.only(modifiers, "rz", "rp", "satfinite")
    r.only([source], "f32", "bf16x2")
    floats = r.parts(operands[1], source) if source == "bf16x2" else [r.read(o, "f32") for o in operands[2:0:-1]]
    wide = [r.cast(arith.ExtFOp, x, f32) if source == "bf16x2" else x for x in floats]
    codes = [_exponent(r, x, "rp" in modifiers, "satfinite" in modifiers) for x in wide]
    r.write(operands[0], r.joined([r.resized(code, 8) for code in codes]), "b16")


def _exponent(r: Registers, x: SSAValue, is_up: bool, is_finite: bool) -> SSAValue:
    magnitude = r.op(arith.AndIOp, r.bits(x, i32), r.constant(0x7FFFFFFF, i32))
    rounded = r.op(arith.AddiOp, magnitude, r.constant(0x7FFFFF, i32)) if is_up else magnitude
    code = r.op(arith.ShRUIOp, rounded, r.constant(23, i32))
    if is_up:
        is_least = compare_integers(r, "ule", magnitude, r.constant(_LEAST, i32))
        code = r.select(is_least, r.constant(0, i32), code)
    code = r.op(arith.MinUIOp, code, r.constant(_LARGEST if is_finite else _NAN, i32))
    is_nan = compare_integers(r, "ugt", magnitude, r.constant(_INFINITY, i32))
    return r.select(is_nan, r.constant(_NAN, i32), code)


def from_scales(r: Registers, modifiers: list[str], target: str, operands: Sequence[Operand]) -> None:
    r.only([*modifiers, target], "rn", "bf16x2")
    codes = r.split(r.read(operands[1], "b16"), 2)
    r.write(operands[0], r.joined([_power(r, code) for code in codes]), "b32")


def _power(r: Registers, code: SSAValue) -> SSAValue:
    """The bits of a bf16: its mantissa has 7."""
    bits = r.op(arith.ShLIOp, r.resized(code, 16), r.constant(7, i16))
    bits = r.select(compare_integers(r, "eq", code, r.constant(0, i8)), r.constant(_LEAST >> 16, i16), bits)
    return r.select(compare_integers(r, "eq", code, r.constant(-1, i8)), r.constant(0x7FFF, i16), bits)
