"""Rules for `arith`: constants, integer and float arithmetic, comparisons, selects.

Integers wrap. A division by 0 is one by 1: it gives the dividend, and 0 as remainder. INT_MIN / -1 is INT_MIN. A shift
by the width or more gives 0, or the sign.
f16 and bf16 are computed in float32 and rounded once, which is exact for + - * / . Floats follow IEEE 754; maxnumf and
minnumf drop a NaN, maximumf and minimumf keep it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr

from deuteron.interpreter.numerics.extrema import larger, smaller
from deuteron.interpreter.values import as_dtype, as_signed, as_unsigned, dtype_of, round_float, value_of
from deuteron.ir.arith import CmpFOp, CmpIOp, SelectOp
from deuteron.ir.casts import RemFOp
from deuteron.ir.rule_table import Rule, RuleTable
from deuteron.ir.types import shape_of

RULES = RuleTable()


@RULES.on(arith.ConstantOp)
def constant(ctx, op):
    if op not in ctx.constants:
        ctx.constants[op] = _constant_array(op)
    return ctx.constants[op]


def _constant_array(op: arith.ConstantOp) -> np.ndarray:
    attr, type = op.value, op.result.type
    if not isinstance(attr, DenseIntOrFPElementsAttr):
        return value_of(attr.value.data, type)
    if attr.is_splat():
        return np.broadcast_to(value_of(attr.get_values()[0], type), shape_of(type))
    numbers = np.array([value_of(number, type) for number in attr.get_values()], dtype_of(type))
    return numbers.reshape(shape_of(type))


def signed(compute: Callable) -> Callable:
    """A function of signed integers, on values: an i1 is 0 or -1."""

    def on_values(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        if lhs.dtype.kind == "b":
            return as_dtype(compute(as_signed(lhs), as_signed(rhs)), lhs.dtype)
        return compute(lhs, rhs)

    return on_values


def unsigned(compute: Callable) -> Callable:
    """A function of unsigned integers, on values."""

    def on_values(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        return as_dtype(compute(as_unsigned(lhs), as_unsigned(rhs)), lhs.dtype)

    return on_values


def _rule(on_values: Callable) -> Rule:
    return lambda ctx, op, lhs, rhs: on_values(lhs, rhs)


def _float_rule(compute: Callable) -> Rule:
    """A rule for float arithmetic; NumPy computes f16 in float32 and rounds once."""
    return lambda ctx, op, *operands: round_float(compute(*operands), op.results[0].type)


def _divisor(rhs: np.ndarray) -> np.ndarray:
    return np.where(rhs == 0, rhs.dtype.type(1), rhs)


def divide_signed(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """The quotient, truncated."""
    divisor = np.where(rhs == -1, rhs.dtype.type(1), _divisor(rhs))
    quotient = (lhs - np.fmod(lhs, divisor)) // divisor
    return np.where(rhs == -1, -lhs, np.where(rhs == 0, lhs.dtype.type(0), quotient))


def remainder_signed(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """The remainder of truncated division; it has the sign of the dividend."""
    return lhs - divide_signed(lhs, rhs) * rhs


def divide_floor(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    quotient, remainder = divide_signed(lhs, rhs), remainder_signed(lhs, rhs)
    is_below = (remainder != 0) & ((remainder < 0) != (rhs < 0))
    return quotient - is_below.astype(lhs.dtype)


def divide_ceil(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    quotient, remainder = divide_signed(lhs, rhs), remainder_signed(lhs, rhs)
    is_above = (remainder != 0) & ((remainder < 0) == (rhs < 0))
    return quotient + is_above.astype(lhs.dtype)


def divide_unsigned(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    return np.where(rhs == 0, lhs.dtype.type(0), lhs // _divisor(rhs))


def divide_ceil_unsigned(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    return divide_unsigned(lhs, rhs) + (remainder_unsigned(lhs, rhs) != 0).astype(lhs.dtype)


def remainder_unsigned(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    return lhs - divide_unsigned(lhs, rhs) * rhs


RULES.add(
    {
        arith.AddiOp: _rule(signed(np.add)),
        arith.SubiOp: _rule(signed(np.subtract)),
        arith.MuliOp: _rule(signed(np.multiply)),
        arith.DivSIOp: _rule(signed(divide_signed)),
        arith.DivUIOp: _rule(unsigned(divide_unsigned)),
        arith.FloorDivSIOp: _rule(signed(divide_floor)),
        arith.CeilDivSIOp: _rule(signed(divide_ceil)),
        arith.CeilDivUIOp: _rule(unsigned(divide_ceil_unsigned)),
        arith.RemSIOp: _rule(signed(remainder_signed)),
        arith.RemUIOp: _rule(unsigned(remainder_unsigned)),
        arith.MinSIOp: _rule(signed(np.minimum)),
        arith.MaxSIOp: _rule(signed(np.maximum)),
        arith.MinUIOp: _rule(unsigned(np.minimum)),
        arith.MaxUIOp: _rule(unsigned(np.maximum)),
        arith.AndIOp: _rule(np.bitwise_and),
        arith.OrIOp: _rule(np.bitwise_or),
        arith.XOrIOp: _rule(np.bitwise_xor),
        arith.ShLIOp: _rule(unsigned(np.left_shift)),
        arith.ShRUIOp: _rule(unsigned(np.right_shift)),
        arith.ShRSIOp: _rule(signed(np.right_shift)),
        arith.AddfOp: _float_rule(np.add),
        arith.SubfOp: _float_rule(np.subtract),
        arith.MulfOp: _float_rule(np.multiply),
        arith.DivfOp: _float_rule(np.divide),
        RemFOp: _float_rule(np.fmod),
        arith.NegfOp: _float_rule(np.negative),
        arith.MaximumfOp: _float_rule(np.maximum),
        arith.MinimumfOp: _float_rule(np.minimum),
        arith.MaxnumfOp: _float_rule(larger),
        arith.MinnumfOp: _float_rule(smaller),
    }
)


@RULES.on(arith.AddUIExtendedOp)
def add_extended(ctx, op, lhs, rhs):
    total = as_unsigned(lhs) + as_unsigned(rhs)
    if lhs.dtype.kind == "b":
        return as_dtype(total, lhs.dtype), total > 1
    return as_dtype(total, lhs.dtype), total < as_unsigned(lhs)


@RULES.on(arith.MulUIExtendedOp)
def multiply_extended_unsigned(ctx, op, lhs, rhs):
    return signed(np.multiply)(lhs, rhs), unsigned(multiply_high_unsigned)(lhs, rhs)


@RULES.on(arith.MulSIExtendedOp)
def multiply_extended_signed(ctx, op, lhs, rhs):
    """From the unsigned product: a negative factor counts 2^width too much of the other one."""
    high = unsigned(multiply_high_unsigned)(lhs, rhs)
    zero = lhs.dtype.type(0)
    high = high - np.where(lhs < 0, rhs, zero) - np.where(rhs < 0, lhs, zero)
    return lhs * rhs, high


def multiply_high_unsigned(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """The high half of the product of unsigned integers."""
    bits = 8 * lhs.dtype.itemsize
    if bits < 64:
        return (lhs.astype(np.uint64) * rhs.astype(np.uint64) >> np.uint64(bits)).astype(lhs.dtype)
    low_mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a, b, c, d = lhs >> half, lhs & low_mask, rhs >> half, rhs & low_mask
    middle = a * d + (b * d >> half)
    carried = (middle & low_mask) + b * c
    return a * c + (middle >> half) + (carried >> half)


_COMPARE: dict[str, Callable] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@RULES.on(CmpIOp)
def compare_integers(ctx, op, lhs, rhs):
    predicate = op.predicate_name
    if predicate in ("eq", "ne"):
        return _COMPARE[predicate](lhs, rhs)
    view = as_unsigned if predicate[0] == "u" else as_signed
    return _COMPARE[predicate[1:]](view(lhs), view(rhs))


@RULES.on(CmpFOp)
def compare_floats(ctx, op, lhs, rhs):
    """Ordered predicates are false, unordered ones true, where either side is a NaN."""
    predicate = op.predicate_name
    if predicate in ("false", "true"):
        return np.full(np.broadcast(lhs, rhs).shape, predicate == "true")
    is_unordered = np.isnan(lhs) | np.isnan(rhs)
    if predicate in ("ord", "uno"):
        return is_unordered == (predicate == "uno")
    holds = _COMPARE[predicate[1:]](lhs, rhs)
    return holds & ~is_unordered if predicate[0] == "o" else holds | is_unordered


@RULES.on(SelectOp)
def select(ctx, op, condition, true_value, false_value):
    return np.where(condition, true_value, false_value)
