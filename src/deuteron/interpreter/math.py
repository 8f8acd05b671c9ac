"""Rules for `math` and for the elementwise ops of `tt` that are no conversions.

Up to f32 a function is computed in float64 and rounded once, so that the interpreter is the more exact one in every
comparison; in f64 it is NumPy's or the C library's function. fma rounds once.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from xdsl.dialects import math as math_dialect

from deuteron.interpreter.arithmetic import multiply_high_unsigned, unsigned
from deuteron.interpreter.numerics.extrema import larger, smaller
from deuteron.interpreter.numerics.fused import fused_multiply_add, multiply_add_to_odd
from deuteron.interpreter.values import as_dtype, as_unsigned, round_float
from deuteron.ir.rule_table import Rule, RuleTable
from deuteron.ir.tt.convert import ClampFOp, MulHiUIOp, PreciseDivFOp, PreciseSqrtOp, PropagateNan

RULES = RuleTable()


def _wide_rule(compute: Callable) -> Rule:
    """A rule that computes in float64 and rounds once."""

    def rule(ctx, op, *operands):
        wide = [np.asarray(operand, np.float64) for operand in operands]
        return round_float(compute(*wide), op.results[0].type)

    return rule


def _erf(x: np.ndarray) -> np.ndarray:
    return np.asarray(_erf_elements(x), np.float64)


_erf_elements = np.frompyfunc(math.erf, 1, 1)


def round_half_away(x: np.ndarray) -> np.ndarray:
    whole = np.trunc(x)
    return np.copysign(whole + np.where(np.abs(x - whole) >= 0.5, np.copysign(1.0, x), 0.0), x)


@RULES.on(math_dialect.FmaOp)
def fma(ctx, op, a, b, c):
    if a.dtype == np.float64:
        return fused_multiply_add(a, b, c)
    return _wide_rule(multiply_add_to_odd)(ctx, op, a, b, c)


@RULES.on(math_dialect.AbsIOp)
def absi(ctx, op, x):
    """The absolute value of INT_MIN is INT_MIN."""
    return np.abs(x)


@RULES.on(math_dialect.CtPopOp)
def ctpop(ctx, op, x):
    return as_dtype(count_ones(as_unsigned(x)), x.dtype)


@RULES.on(math_dialect.AbsFOp)
def absf(ctx, op, x):
    """Exact, so an infinity stays one where rounding saturates."""
    return np.abs(x)


@RULES.on(math_dialect.CountLeadingZerosOp)
def ctlz(ctx, op, x):
    return leading_zeros(x)


@RULES.on(math_dialect.CountTrailingZerosOp)
def cttz(ctx, op, x):
    return trailing_zeros(x)


def leading_zeros(x: np.ndarray) -> np.ndarray:
    """Of 0: the width."""
    bits = as_unsigned(x)
    width = 1 if x.dtype.kind == "b" else 8 * x.dtype.itemsize
    for shift in (1, 2, 4, 8, 16, 32):
        bits = bits | np.right_shift(bits, bits.dtype.type(shift))
    return as_dtype(bits.dtype.type(width) - count_ones(bits), x.dtype)


def trailing_zeros(x: np.ndarray) -> np.ndarray:
    """Of 0: the width."""
    if x.dtype.kind == "b":
        return ~x
    bits = as_unsigned(x)
    one = bits.dtype.type(1)
    return as_dtype(count_ones(~bits & (bits - one)), x.dtype)


def count_ones(bits: np.ndarray) -> np.ndarray:
    """Bits that are set, for each unsigned integer."""
    octets = np.ascontiguousarray(bits)[..., None].view(np.uint8)
    return np.unpackbits(octets, axis=-1).sum(-1, dtype=bits.dtype).reshape(np.shape(bits))


@RULES.on(math_dialect.FPowIOp)
def fpowi(ctx, op, x, exponent):
    return _wide_rule(np.power)(ctx, op, x, exponent)


@RULES.on(math_dialect.IPowIOp)
def ipowi(ctx, op, x, exponent):
    """Wraps; a negative exponent gives 0, except for 1 and -1."""
    result = np.ones_like(x)
    base, rest = x, np.maximum(exponent, 0)
    while rest.any():
        result = np.where(rest & 1, result * base, result)
        base, rest = base * base, rest >> 1
    inverse = np.where(x == 1, 1, np.where(x == -1, np.where(exponent & 1, -1, 1), 0)).astype(x.dtype)
    return np.where(exponent < 0, inverse, result)


@RULES.on(ClampFOp)
def clampf(ctx, op, x, low, high):
    """A NaN gives the lower bound, or stays where propagateNan says so."""
    if op.propagate_nan.value.data == PropagateNan.ALL:
        return np.minimum(np.maximum(x, low), high)
    return smaller(larger(x, low), high)


@RULES.on(MulHiUIOp)
def mulhiui(ctx, op, x, y):
    return unsigned(multiply_high_unsigned)(x, y)


_WIDE: dict[type, Callable] = {
    math_dialect.AcosOp: np.arccos,
    math_dialect.AcoshOp: np.arccosh,
    math_dialect.AsinOp: np.arcsin,
    math_dialect.AsinhOp: np.arcsinh,
    math_dialect.AtanOp: np.arctan,
    math_dialect.Atan2Op: np.arctan2,
    math_dialect.AtanhOp: np.arctanh,
    math_dialect.CbrtOp: np.cbrt,
    math_dialect.CeilOp: np.ceil,
    math_dialect.CopySignOp: np.copysign,
    math_dialect.CosOp: np.cos,
    math_dialect.CoshOp: np.cosh,
    math_dialect.ErfOp: _erf,
    math_dialect.Exp2Op: np.exp2,
    math_dialect.ExpM1Op: np.expm1,
    math_dialect.ExpOp: np.exp,
    math_dialect.FloorOp: np.floor,
    math_dialect.Log10Op: np.log10,
    math_dialect.Log1pOp: np.log1p,
    math_dialect.Log2Op: np.log2,
    math_dialect.LogOp: np.log,
    math_dialect.PowFOp: np.power,
    math_dialect.RoundEvenOp: np.rint,
    math_dialect.RoundOp: round_half_away,
    math_dialect.RsqrtOp: lambda x: 1.0 / np.sqrt(x),
    math_dialect.SinOp: np.sin,
    math_dialect.SinhOp: np.sinh,
    math_dialect.SqrtOp: np.sqrt,
    math_dialect.TanOp: np.tan,
    math_dialect.TanhOp: np.tanh,
    math_dialect.TruncOp: np.trunc,
    PreciseDivFOp: np.divide,
    PreciseSqrtOp: np.sqrt,
}

RULES.add({op_class: _wide_rule(compute) for op_class, compute in _WIDE.items()})
