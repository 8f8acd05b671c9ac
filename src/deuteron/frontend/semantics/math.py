"""Elementwise functions on `math` ops: exp, log, sqrt ... for fp32 and fp64 only, as in Triton; abs, fma, division.

    tl.exp(x)        math.exp         tl.sqrt_rn(x)    tt.precise_sqrt
    tl.abs(i)        math.absi        tl.div_rn(x, y)  tt.precise_divf
    tl.fma(x, y, z)  math.fma         tl.umulhi(i, j)  tt.mulhiui

Operands are promoted and broadcast as by an operator.
"""

from __future__ import annotations

from xdsl.dialects import math
from xdsl.dialects.arith import DivfOp
from xdsl.ir import Operation

from deuteron import language as tl
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.bitwise import and_
from deuteron.frontend.semantics.constant import as_tensor, number
from deuteron.frontend.semantics.convert import convert_bits
from deuteron.frontend.semantics.operands import arithmetic_operands, ternary_operands
from deuteron.frontend.semantics.types import tensor
from deuteron.frontend.values import Tensor, Value
from deuteron.ir.tt.convert import MulHiUIOp, PreciseDivFOp, PreciseSqrtOp
from deuteron.language.types import dtype, float8e4b15, float32, float64, int32, int64, uint8, uint32, uint64

FLOATS = (float32, float64)
WIDE_INTEGERS = (int32, int64, uint32, uint64)


def exp(ctx: Context, x: Value) -> Tensor:
    return _unary(ctx, "tl.exp", x, math.ExpOp, FLOATS)


def exp2(ctx: Context, x: Value) -> Tensor:
    return _unary(ctx, "tl.exp2", x, math.Exp2Op, FLOATS)


def log(ctx: Context, x: Value) -> Tensor:
    return _unary(ctx, "tl.log", x, math.LogOp, FLOATS)


def log2(ctx: Context, x: Value) -> Tensor:
    return _unary(ctx, "tl.log2", x, math.Log2Op, FLOATS)


def cos(ctx: Context, x: Value) -> Tensor:
    return _unary(ctx, "tl.cos", x, math.CosOp, FLOATS)


def sin(ctx: Context, x: Value) -> Tensor:
    return _unary(ctx, "tl.sin", x, math.SinOp, FLOATS)


def sqrt(ctx: Context, x: Value) -> Tensor:
    return _unary(ctx, "tl.sqrt", x, math.SqrtOp, FLOATS)


def rsqrt(ctx: Context, x: Value) -> Tensor:
    return _unary(ctx, "tl.rsqrt", x, math.RsqrtOp, FLOATS)


def erf(ctx: Context, x: Value) -> Tensor:
    return _unary(ctx, "tl.erf", x, math.ErfOp, FLOATS)


def floor(ctx: Context, x: Value) -> Tensor:
    return _unary(ctx, "tl.floor", x, math.FloorOp, FLOATS)


def ceil(ctx: Context, x: Value) -> Tensor:
    return _unary(ctx, "tl.ceil", x, math.CeilOp, FLOATS)


def sqrt_rn(ctx: Context, x: Value) -> Tensor:
    return _unary(ctx, "tl.sqrt_rn", x, PreciseSqrtOp, (float32,))


def abs_(ctx: Context, x: Value) -> Tensor:
    x = as_tensor(ctx, x, "The argument of tl.abs")
    if x.dtype.is_ptr():
        raise ctx.error(f"tl.abs takes numbers, got {x.type}. Load through the pointer first.")
    if x.dtype.is_int_unsigned():
        return x
    if x.dtype == float8e4b15:
        return _without_sign(ctx, x)
    op = math.AbsFOp(x.handle) if x.dtype.is_floating() else math.AbsIOp(x.handle)
    return tensor(ctx, op, x.type)


def _without_sign(ctx: Context, x: Tensor) -> Tensor:
    """The magnitude of a type that `math` ops do not take, as MLIR does not know it."""
    bits = convert_bits(ctx, x, uint8)
    return convert_bits(ctx, and_(ctx, bits, number(ctx, 0x7F, uint8, x.shape)), x.dtype)


def fdiv(ctx: Context, x: Value, y: Value, ieee_rounding: bool = False, approx: bool = False) -> Tensor:
    if ieee_rounding and approx:
        raise ctx.error("tl.fdiv cannot be both ieee_rounding and approx. Choose one of them.")
    x, y = arithmetic_operands(ctx, "tl.fdiv", x, y, is_division=True)
    if not x.dtype.is_floating():
        raise ctx.error(f"tl.fdiv divides floats, got {x.dtype}. Use / to divide integers as fp32.")
    if approx:
        _check_type(ctx, "tl.fdiv with approx", x, (float32,))
    op = PreciseDivFOp if ieee_rounding else DivfOp
    return tensor(ctx, op(x.handle, y.handle), x.type)


def div_rn(ctx: Context, x: Value, y: Value) -> Tensor:
    x, y = arithmetic_operands(ctx, "tl.div_rn", x, y)
    _check_type(ctx, "tl.div_rn", x, (float32,))
    return tensor(ctx, PreciseDivFOp(x.handle, y.handle), x.type)


def fma(ctx: Context, x: Value, y: Value, z: Value) -> Tensor:
    x, y, z = ternary_operands(ctx, "tl.fma", x, y, z)
    if not x.dtype.is_standard_floating():
        raise ctx.error(f"tl.fma takes floats, got {x.dtype}. Write x * y + z.")
    return tensor(ctx, math.FmaOp(x.handle, y.handle, z.handle), x.type)


def umulhi(ctx: Context, x: Value, y: Value) -> Tensor:
    x, y = arithmetic_operands(ctx, "tl.umulhi", x, y)
    _check_type(ctx, "tl.umulhi", x, WIDE_INTEGERS)
    return tensor(ctx, MulHiUIOp(x.handle, y.handle), x.type)


def _unary(ctx: Context, name: str, x: Value, op: type[Operation], types: tuple[dtype, ...]) -> Tensor:
    x = as_tensor(ctx, x, f"The argument of {name}")
    _check_type(ctx, name, x, types)
    return tensor(ctx, op(x.handle), x.type)


def _check_type(ctx: Context, name: str, x: Tensor, types: tuple[dtype, ...]) -> None:
    if x.dtype not in types:
        accepted = ", ".join(str(type) for type in types)
        way_out = f" Convert it with .to(tl.{types[0].codegen_name()})." if not x.dtype.is_ptr() else ""
        raise ctx.error(f"{name} takes {accepted}, got {x.type}.{way_out}")


RULES = {
    tl.exp: exp,
    tl.exp2: exp2,
    tl.log: log,
    tl.log2: log2,
    tl.cos: cos,
    tl.sin: sin,
    tl.sqrt: sqrt,
    tl.rsqrt: rsqrt,
    tl.erf: erf,
    tl.floor: floor,
    tl.ceil: ceil,
    tl.sqrt_rn: sqrt_rn,
    tl.abs: abs_,
    tl.fdiv: fdiv,
    tl.div_rn: div_rn,
    tl.fma: fma,
    tl.umulhi: umulhi,
    abs: abs_,
}
