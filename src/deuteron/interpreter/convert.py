"""Rules for conversions: integers, floats, pointers, bits.

A float out of an integer's range gives the nearest integer of that type, a NaN gives 0 (unspecified in the language; as
PTX `cvt.rzi` does). Narrowing floats rounds to nearest even unless the op says towards zero; fp8 saturates.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith

from deuteron.interpreter.numerics.formats import FORMATS
from deuteron.interpreter.values import (
    as_dtype,
    as_signed,
    as_unsigned,
    dtype_of,
    from_storage,
    round_float,
    storage_dtype_of,
    to_storage,
)
from deuteron.ir.casts import ExtSIOp, ExtUIOp, FPToSIOp, FPToUIOp, SIToFPOp, TruncIOp, UIToFPOp
from deuteron.ir.rule_table import RuleTable
from deuteron.ir.tt.convert import BitcastOp, FpToFpOp, IntToPtrOp, PtrToIntOp, RoundingMode
from deuteron.ir.types import bit_width_of, element_type_of

RULES = RuleTable()


@RULES.on(ExtSIOp)
def extsi(ctx, op, src):
    return as_signed(src).astype(dtype_of(op.results[0].type))


@RULES.on(ExtUIOp)
def extui(ctx, op, src):
    return as_unsigned(src).astype(dtype_of(op.results[0].type))


@RULES.on(TruncIOp)
def trunci(ctx, op, src):
    return as_dtype(src, dtype_of(op.results[0].type))


@RULES.on(SIToFPOp)
def sitofp(ctx, op, src):
    return _integer_to_float(as_signed(src), op.results[0].type)


@RULES.on(UIToFPOp)
def uitofp(ctx, op, src):
    return _integer_to_float(as_unsigned(src), op.results[0].type)


def _integer_to_float(src: np.ndarray, type) -> np.ndarray:
    """By way of float64 for narrow floats: NumPy would round 64-bit integers to f16 twice."""
    if bit_width_of(type) >= 32:
        return src.astype(dtype_of(type))
    return round_float((_without_last_bits(src) if src.dtype.itemsize == 8 else src).astype(np.float64), type)


def _without_last_bits(src: np.ndarray) -> np.ndarray:
    """Integers that float64 has: of large ones the last 11 bits are gone, and one says that there were any."""
    rest = src & src.dtype.type(0x7FF)
    odd = (src - rest) | (rest != 0).astype(src.dtype) << src.dtype.type(11)
    return np.where((src < -(2**53)) | (src > 2**53), odd, src)


@RULES.on(FPToSIOp)
def fptosi(ctx, op, src):
    bits = bit_width_of(op.results[0].type)
    return _saturate(src, -(2 ** (bits - 1)), 2 ** (bits - 1), dtype_of(op.results[0].type))


@RULES.on(FPToUIOp)
def fptoui(ctx, op, src):
    return _saturate(src, 0, 2 ** bit_width_of(op.results[0].type), dtype_of(op.results[0].type))


def _saturate(src: np.ndarray, low: int, end: int, dtype: np.dtype) -> np.ndarray:
    """Towards zero, into low <= result < end. Both bounds are exact in float64, `end - 1` may not be."""
    whole = np.trunc(src.astype(np.float64))
    in_range = (whole >= low) & (whole < end)
    wide = np.where(in_range, whole, 0.0).astype(np.int64 if low else np.uint64)
    wide = np.where(whole < low, wide.dtype.type(low), np.where(whole >= end, wide.dtype.type(end - 1), wide))
    return as_dtype(wide, dtype)


@RULES.on(arith.ExtFOp, arith.TruncFOp)
def convert_float(ctx, op, src):
    """Widening is exact: every value of a narrow format is one of a wider."""
    return round_float(src, op.results[0].type)


@RULES.on(FpToFpOp)
def fp_to_fp(ctx, op, src):
    type = op.results[0].type
    if op.rounding is None or op.rounding.value.data == RoundingMode.RTNE or element_type_of(type) not in FORMATS:
        return round_float(src, type)
    return FORMATS[element_type_of(type)].round(src, toward_zero=True).astype(dtype_of(type))


@RULES.on(BitcastOp, arith.BitcastOp)
def bitcast(ctx, op, src):
    source, result = op.operands[0].type, op.results[0].type
    bits = np.asarray(to_storage(src, source))
    return from_storage(bits.view(storage_dtype_of(result)), result)


@RULES.on(PtrToIntOp, IntToPtrOp)
def keep_address(ctx, op, src):
    return src
