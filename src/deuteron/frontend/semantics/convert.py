"""Conversions: the ops that lead from one element type to another.

    int32 -> int64        arith.extsi          fp32 -> fp16      arith.truncf
    uint8 -> int32        arith.extui          fp16 <-> bf16     tt.fp_to_fp, as with fp8 or rounding towards zero
    int32 -> uint32       nothing              anything -> int1  a comparison with 0
    int64 -> float        arith.sitofp         pointer <-> int   tt.ptr_to_int, tt.int_to_ptr

fp16 and bf16 go to and from integers as Triton takes them there: through fp32 where they are the source.
"""

from __future__ import annotations

from xdsl.dialects.arith import ExtFOp, TruncFOp
from xdsl.ir import Attribute, Operation

from deuteron import language as tl
from deuteron.frontend.advice import type_named
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.constant import as_tensor, number, to_tensor
from deuteron.frontend.semantics.types import ir_type, tensor
from deuteron.frontend.values import Tensor, Value, describe
from deuteron.ir.arith import CmpFOp, CmpIOp
from deuteron.ir.casts import ExtSIOp, ExtUIOp, FPToSIOp, FPToUIOp, SIToFPOp, TruncIOp, UIToFPOp
from deuteron.ir.tt.convert import BitcastOp, FpToFpOp, IntToPtrOp, PtrToIntOp, RoundingMode
from deuteron.language.types import dtype, float32, int64

ROUNDING_MODES = {"rtne": RoundingMode.RTNE, "rtz": RoundingMode.RTZ}


def cast(
    ctx: Context, input: Value, dtype: dtype, fp_downcast_rounding: str | None = None, bitcast: bool = False
) -> Tensor:
    x = as_tensor(ctx, input, "What is converted")
    target = _element_type(ctx, dtype)
    rounding = _rounding_mode(ctx, x.dtype, target, fp_downcast_rounding)
    return convert_bits(ctx, x, target) if bitcast else convert(ctx, x, target, rounding)


def _element_type(ctx: Context, type: Value) -> dtype:
    if not isinstance(type, dtype) or type.is_void():
        raise ctx.error(f"{describe(type)} is no element type. {type_named(type)}")
    return type.scalar


def _rounding_mode(ctx: Context, source: dtype, target: dtype, mode: str | None) -> RoundingMode:
    if mode is None:
        return RoundingMode.RTNE
    if mode not in ROUNDING_MODES:
        raise ctx.error(f"There is no rounding mode {mode!r}. Use 'rtne' (to nearest even) or 'rtz' (towards zero).")
    narrows = source.is_floating() and target.is_floating() and target.itemsize < source.itemsize
    if not narrows and source != target:  # a kernel of many types says it for all of them
        raise ctx.error(
            f"fp_downcast_rounding={mode!r} needs a conversion to a narrower float, got {source} to {target}. Drop it."
        )
    return ROUNDING_MODES[mode]


def convert(ctx: Context, x: Tensor, target: dtype, rounding: RoundingMode = RoundingMode.RTNE) -> Tensor:
    """The values of `x` as another element type."""
    source = x.dtype
    if source == target:
        return x
    if source.is_ptr() or target.is_ptr():
        return _convert_pointer(ctx, x, target)
    if source.is_floating() and target.is_floating():
        return _retyped(ctx, x, target, _float_conversion(x, source, target, rounding))
    if source.is_floating() and source != float32 and source.itemsize < 4:
        return convert(ctx, convert(ctx, x, float32), target)
    if target.is_bool():
        return is_nonzero(ctx, x)
    if source.is_floating():
        cast_op = FPToSIOp if target.is_int_signed() else FPToUIOp
        return _retyped(ctx, x, target, cast_op(x.handle, _with_element(x, target)))
    if target.is_fp8():
        return convert(ctx, convert(ctx, x, float32), target)
    if target.is_floating():
        cast_op = SIToFPOp if source.is_int_signed() else UIToFPOp
        return _retyped(ctx, x, target, cast_op(x.handle, _with_element(x, target)))
    return _convert_integer(ctx, x, target)


def _float_conversion(x: Tensor, source: dtype, target: dtype, rounding: RoundingMode) -> Operation:
    is_widening = source.itemsize < target.itemsize
    if source.is_fp8() or target.is_fp8() or source.itemsize == target.itemsize or rounding == RoundingMode.RTZ:
        return FpToFpOp(x.handle, ir_type(target), None if is_widening else rounding)
    return (ExtFOp if is_widening else TruncFOp)(x.handle, _with_element(x, target))


def _convert_integer(ctx: Context, x: Tensor, target: dtype) -> Tensor:
    source = x.dtype
    if source.int_bitwidth == target.int_bitwidth:
        return Tensor(x.handle, x.type.with_element_ty(target))
    extension = ExtSIOp if source.is_int_signed() else ExtUIOp
    cast_op = extension if source.int_bitwidth < target.int_bitwidth else TruncIOp
    return _retyped(ctx, x, target, cast_op(x.handle, _with_element(x, target)))


def _convert_pointer(ctx: Context, x: Tensor, target: dtype) -> Tensor:
    source = x.dtype
    if source.is_ptr() and target.is_ptr():
        return _retyped(ctx, x, target, BitcastOp(x.handle, ir_type(target)))
    if target.is_ptr() and source.is_int():
        return _retyped(ctx, x, target, IntToPtrOp(convert(ctx, x, int64).handle, ir_type(target)))
    if source.is_ptr() and target.is_int() and target.int_bitwidth in (1, 64):
        address = _retyped(ctx, x, int64, PtrToIntOp(x.handle))
        return convert(ctx, address, target)
    way_out = _OF_POINTERS if source.is_ptr() else _TO_POINTERS
    raise ctx.error(f"Cannot convert {source} to {target}. {way_out}")


def is_nonzero(ctx: Context, x: Tensor) -> Tensor:
    """Whether each number is other than 0, as int1; a NaN is."""
    zero = number(ctx, 0, x.dtype, x.shape)
    op = CmpFOp(x.handle, zero.handle, "une") if x.dtype.is_floating() else CmpIOp(x.handle, zero.handle, "ne")
    return _retyped(ctx, x, tl.int1, op)


_OF_POINTERS = "A pointer converts to tl.int64 and back; load through it for what it points to."
_TO_POINTERS = "The type of what `p` points to is p.dtype.element_ty."


def convert_bits(ctx: Context, x: Tensor, target: dtype) -> Tensor:
    """The bits of `x` as another element type of the same width."""
    source = x.dtype
    if source == target:
        return x
    if source.is_ptr() or target.is_ptr():
        return _convert_pointer(ctx, x, target)
    if source.primitive_bitwidth != target.primitive_bitwidth:
        raise ctx.error(
            f"Cannot bitcast {source} to {target}: {source.primitive_bitwidth} bits are not "
            f"{target.primitive_bitwidth}. Convert the value with .to() without bitcast, or to a type of equal width."
        )
    if source.is_int() and target.is_int():
        return Tensor(x.handle, x.type.with_element_ty(target))
    return _retyped(ctx, x, target, BitcastOp(x.handle, ir_type(target)))


def _with_element(x: Tensor, target: dtype) -> Attribute:
    return ir_type(x.type.with_element_ty(target))


def _retyped(ctx: Context, x: Tensor, target: dtype, op: Operation) -> Tensor:
    return tensor(ctx, op, x.type.with_element_ty(target))


RULES = {tl.cast: cast, tl.to_tensor: to_tensor}
