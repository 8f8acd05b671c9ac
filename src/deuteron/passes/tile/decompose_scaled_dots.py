"""Makes of `tt.dot_scaled` a `tt.dot` of operands that are widened and multiplied by their scales.

    %d = "tt.dot_scaled"(%a, %b, %c, %s)               %x = "tt.fp_to_fp"(%a) : ... -> tensor<64x64xbf16>
         : e4m3 with scales, bf16               ->     %t = %s << 7, as bf16, broadcast from 64x2 to 64x64
                                                       %d = "tt.dot"(%x * %t, %b, %c)

What an operand becomes:

    two of fp8 without scales      fp8 as they are
    two of fp16 without scales     fp16
    one of fp16                    both f32, multiplied as tf32, which has all bits of them
    others                         bf16, which has all bits of e2m1, e4m3 and e5m2, and of a number times its scale

The two numbers in a byte of e2m1 are its halves, joined, and moved next to the axis along which they are neighbours.
The bits of a half, shifted into place, are those of a very small bf16 or f32; times a power of two that is the number.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.arith import ExtFOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass

from deuteron.dtypes import FloatType
from deuteron.ir.arith import CmpIOp, SelectOp
from deuteron.ir.builder import Builder
from deuteron.ir.casts import ExtUIOp
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.convert import BitcastOp, FpToFpOp
from deuteron.ir.tt.dot import DotOp, DotScaledOp, InputPrecision, ScaledFormat, ScaledOperand
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, JoinOp, ReshapeOp, TransOp
from deuteron.ir.types import (
    FLOAT_TYPES,
    bf16,
    element_type_of,
    f16,
    f32,
    i8,
    i16,
    i32,
    is_fp8,
    shape_of,
    with_element_type,
)
from deuteron.passes.rewrite import replace

_BITS = {bf16: i16, f32: i32}
E2M1_BIAS, E2M1_MANTISSA_BITS = 1, 1
NAN_SCALE = 255


class DecomposeScaledDots(ModulePass):
    """Multiplies operands by their scales, and the results by `tt.dot`."""

    name = "decompose-scaled-dots"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for dot in nested_ops(op, DotScaledOp):
            b, is_fast = Builder.before(dot), bool(dot.fast_math.value.data)
            types = _types(dot.lhs, dot.rhs)
            operands = [_scaled(b, *each, is_fast) for each in zip((dot.lhs, dot.rhs), types, strict=True)]
            replace(dot, [b.value(DotOp(*operands, dot.c, InputPrecision.TF32))])


def _types(*operands: ScaledOperand) -> list[Attribute]:
    """What each operand becomes."""
    formats, is_plain = [operand.format for operand in operands], all(operand.scale is None for operand in operands)
    if is_plain and set(formats) <= {ScaledFormat.E4M3, ScaledFormat.E5M2}:
        return [element_type_of(operand.value.type) for operand in operands]
    if is_plain and set(formats) == {ScaledFormat.FP16}:
        return [f16, f16]
    return [f32, f32] if ScaledFormat.FP16 in formats else [bf16, bf16]


def _scaled(b: Builder, operand: ScaledOperand, type: Attribute, is_fast: bool) -> SSAValue:
    numbers = _unpacked(b, operand, type) if operand.packed_axis is not None else _as_type(b, operand.value, type)
    if operand.scale is None:
        return numbers
    return b.value(arith.MulfOp(numbers, _scales(b, operand, type, is_fast)))


def _as_type(b: Builder, value: SSAValue, type: Attribute) -> SSAValue:
    if element_type_of(value.type) == type:
        return value
    return b.value(FpToFpOp(value, type) if is_fp8(value.type) else ExtFOp(value, with_element_type(value.type, type)))


def _unpacked(b: Builder, operand: ScaledOperand, type: Attribute) -> SSAValue:
    value, axis, rank = operand.value, operand.packed_axis, len(operand.shape)
    low = b.value(arith.AndIOp(value, b.constant(15, value.type)))
    high = b.value(arith.ShRUIOp(value, b.constant(4, value.type)))
    joined = b.value(JoinOp(_from_e2m1(b, low, type), _from_e2m1(b, high, type)))
    if axis != rank - 1:
        joined = b.value(TransOp(joined, [*range(axis + 1), rank, *range(axis + 1, rank)]))
    return b.value(ReshapeOp(joined, operand.shape))


def _from_e2m1(b: Builder, codes: SSAValue, type: Attribute) -> SSAValue:
    """The numbers that the lower four bits stand for."""
    declared: FloatType = FLOAT_TYPES[type]
    bits = with_element_type(codes.type, _BITS[type])
    wide = b.value(ExtUIOp(codes, bits))

    def moved(mask: int, shift: int) -> SSAValue:
        chosen = b.value(arith.AndIOp(wide, b.constant(mask, bits)))
        return b.value(arith.ShLIOp(chosen, b.constant(shift, bits)))

    magnitude, sign = moved(7, declared.mantissa_bits - E2M1_MANTISSA_BITS), moved(8, declared.bits - 4)
    small = b.value(BitcastOp(b.value(arith.OrIOp(magnitude, sign)), type))
    return b.value(arith.MulfOp(small, b.constant(2.0 ** (declared.bias - E2M1_BIAS), small.type)))


def _scales(b: Builder, operand: ScaledOperand, type: Attribute, is_fast: bool) -> SSAValue:
    """One for each number, in the shape of the operand."""
    scale = operand.scale
    values = _powers_of_two(b, scale, type, is_fast) if element_type_of(scale.type) == i8 else _as_type(b, scale, type)
    *batch, rows, groups = shape_of(scale.type)
    each = b.value(ExpandDimsOp(values, len(batch) + 2))
    spread = b.value(BroadcastOp(each, (*batch, rows, groups, operand.group)))
    wide = b.value(ReshapeOp(spread, (*batch, rows, groups * operand.group)))
    if operand.axis == len(operand.shape) - 1:
        return wide
    return b.value(TransOp(wide, [*range(len(batch)), len(batch) + 1, len(batch)]))


def _powers_of_two(b: Builder, scale: SSAValue, type: Attribute, is_fast: bool) -> SSAValue:
    """The byte is the exponent of a float, but 0 is the subnormal 2 ** -127, and 255 is NaN instead of infinity."""
    declared, bits = FLOAT_TYPES[type], with_element_type(scale.type, _BITS[type])
    exponents = b.value(ExtUIOp(scale, bits))
    codes = b.value(arith.ShLIOp(exponents, b.constant(declared.mantissa_bits, bits)))
    special = {0: 1 << (declared.mantissa_bits - 1), **({} if is_fast else {NAN_SCALE: declared.nan_code})}
    for exponent, code in special.items():
        is_it = b.value(CmpIOp(exponents, b.constant(exponent, bits), "eq"))
        codes = b.value(SelectOp(is_it, b.constant(code, bits), codes))
    return b.value(BitcastOp(codes, type))
