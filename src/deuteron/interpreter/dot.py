"""The rules for `tt.dot`, a @ b + c, and for `tt.dot_scaled`.

Floats are multiplied and summed in float64 and rounded once to the type of c, whatever `inputPrecision` says: operands
are taken exactly, so that tf32 is an approximation of this. Integers wrap.

A scaled operand is what its number times its scale gives in bf16, or in fp32 where an operand is fp16: exact but where
that is out of range.
"""

from __future__ import annotations

import numpy as np

from deuteron.interpreter.values import round_float
from deuteron.ir.rule_table import RuleTable
from deuteron.ir.tt.dot import DotOp, DotScaledOp, ScaledFormat, ScaledOperand
from deuteron.ir.types import bf16, bit_width_of, element_type_of, f32, i8, is_float

RULES = RuleTable()


@RULES.on(DotOp)
def dot(ctx, op, a, b, c):
    type = op.results[0].type
    if is_float(type):
        total = np.matmul(np.asarray(a, np.float64), np.asarray(b, np.float64)) + np.asarray(c, np.float64)
        return round_float(total, type)
    return c + _integer_product(a, b, bit_width_of(op.operands[0].type)).astype(c.dtype)


def _integer_product(a: np.ndarray, b: np.ndarray, bits: int) -> np.ndarray:
    """Sums of 8-bit products are exact in float64, where NumPy multiplies matrices fast."""
    if bits == 8:
        return np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64)
    return np.matmul(a.astype(np.int64), b.astype(np.int64))


# What the eight codes of e2m1 stand for; a fourth bit is the sign.
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float64)


@RULES.on(DotScaledOp)
def dot_scaled(ctx, op, a, b, c, *scales):
    total = np.matmul(*scaled_operands(op, a, b, *scales)) + np.asarray(c, np.float64)
    return round_float(total, op.results[0].type)


def scaled_operands(op: DotScaledOp, a: np.ndarray, b: np.ndarray, *scales: np.ndarray) -> list[np.ndarray]:
    """The numbers of both operands times their scales, as float64; `scales` are those that there are."""
    given, is_fast = iter(scales), bool(op.fast_math.value.data)
    type = f32 if ScaledFormat.FP16 in (op.lhs.format, op.rhs.format) else bf16
    found = []
    for operand, value in ((op.lhs, a), (op.rhs, b)):
        scale = next(given) if operand.scale is not None else None
        scaled = _numbers(operand, value) * _scales(operand, scale, is_fast)
        found.append(np.asarray(round_float(scaled, type), np.float64))
    return found


def _numbers(operand: ScaledOperand, value: np.ndarray) -> np.ndarray:
    """The first of two in a byte is the lower half."""
    if operand.packed_axis is None:
        return np.asarray(value, np.float64)
    halves = np.stack([value & 15, value >> 4 & 15], operand.packed_axis + 1).reshape(operand.shape)
    return np.where(halves & 8, -1.0, 1.0) * E2M1[halves & 7]


def _scales(operand: ScaledOperand, scale: np.ndarray | None, fast_math: bool) -> np.ndarray:
    """One for each number; with `fast_math` 255 is an infinity, as in the exponent of a float."""
    if scale is None:
        return np.ones((), np.float64)
    if element_type_of(operand.scale.type) == i8:
        exponents = scale.view(np.uint8).astype(np.int64)
        scale = np.where(exponents == 255, np.inf if fast_math else np.nan, np.ldexp(1.0, exponents - 127))
    wide = np.repeat(np.asarray(scale, np.float64), operand.group, -1)
    return wide if operand.axis == len(operand.shape) - 1 else np.swapaxes(wide, -1, -2)
