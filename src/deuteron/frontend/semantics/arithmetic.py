"""Arithmetic: `+ - * / // %`, unary `-`, pointer arithmetic, minimum, maximum, clamp.

    x + y        promoted (promote.py), broadcast (broadcast.py), then arith.addf or arith.addi
    ptr + n      tt.addptr; unsigned offsets narrower than 64 bits are widened first, since addptr takes them as signed
    n / m        of integers: both to fp32
    n // m       of integers only: towards zero, as in C
    f % g        C's fmod; integers: the remainder of `//`

Integers wrap; in debugging it is asserted that they do not. Operands that are both numbers are computed by Python
before they come here.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from xdsl.dialects.arith import (
    AddfOp,
    AddiOp,
    AndIOp,
    DivfOp,
    DivSIOp,
    DivUIOp,
    MaximumfOp,
    MaxnumfOp,
    MaxSIOp,
    MaxUIOp,
    MinimumfOp,
    MinnumfOp,
    MinSIOp,
    MinUIOp,
    MulfOp,
    MuliOp,
    NegfOp,
    RemSIOp,
    RemUIOp,
    SubfOp,
    SubiOp,
)
from xdsl.ir import Operation

from deuteron import language as tl
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.broadcast import broadcast_operands
from deuteron.frontend.semantics.constant import as_tensor, number
from deuteron.frontend.semantics.convert import convert
from deuteron.frontend.semantics.operands import (
    arithmetic_operands,
    check_operand,
    is_pointer,
    reject_fp8,
    ternary_operands,
)
from deuteron.frontend.semantics.types import tensor
from deuteron.frontend.values import Tensor, Value, describe, is_runtime
from deuteron.ir.arith import CmpIOp
from deuteron.ir.casts import RemFOp
from deuteron.ir.tt.convert import ClampFOp
from deuteron.ir.tt.convert import PropagateNan as IRPropagateNan
from deuteron.ir.tt.debug import AssertOp
from deuteron.ir.tt.memory import AddPtrOp
from deuteron.language.arithmetic import PropagateNan
from deuteron.language.types import float32, int64


def add(ctx: Context, x: Value, y: Value, sanitize_overflow: bool = True) -> Tensor:
    if is_pointer(x) or is_pointer(y):
        return _add_pointer(ctx, x, y)
    return _binary(ctx, "+", x, y, AddfOp, AddiOp, sanitize_overflow)


def sub(ctx: Context, x: Value, y: Value, sanitize_overflow: bool = True) -> Tensor:
    if is_pointer(x) and not is_pointer(y):
        return _add_pointer(ctx, x, neg(ctx, y) if isinstance(y, Tensor) else -y)
    return _binary(ctx, "-", x, y, SubfOp, SubiOp, sanitize_overflow)


def mul(ctx: Context, x: Value, y: Value, sanitize_overflow: bool = True) -> Tensor:
    return _binary(ctx, "*", x, y, MulfOp, MuliOp, sanitize_overflow)


def truediv(ctx: Context, x: Value, y: Value) -> Tensor:
    x, y = arithmetic_operands(ctx, "/", x, y, is_division=True)
    if x.dtype.is_int():
        x, y = convert(ctx, x, float32), convert(ctx, y, float32)
    return tensor(ctx, DivfOp(x.handle, y.handle), x.type)


def floordiv(ctx: Context, x: Value, y: Value) -> Tensor:
    x, y = arithmetic_operands(ctx, "//", x, y, is_division=True)
    if x.dtype.is_floating():
        raise ctx.error(f"// is for integers, got {x.dtype} after promotion. Use / and tl.floor for floats.")
    op = DivSIOp if x.dtype.is_int_signed() else DivUIOp
    return tensor(ctx, op(x.handle, y.handle), x.type)


def mod(ctx: Context, x: Value, y: Value) -> Tensor:
    x, y = arithmetic_operands(ctx, "%", x, y, is_division=True)
    return tensor(ctx, _by_kind(x, RemFOp, RemSIOp, RemUIOp)(x.handle, y.handle), x.type)


def pow(ctx: Context, x: Value, y: Value) -> Tensor:
    raise ctx.error(
        f"** of {describe(x)} and {describe(y)} is not in the language. Multiply, or use tl.exp2(y * tl.log2(x))."
    )


def neg(ctx: Context, x: Tensor) -> Tensor:
    check_operand(ctx, "unary -", x)
    reject_fp8(ctx, "unary -", x)
    if x.dtype.is_floating():
        return tensor(ctx, NegfOp(x.handle), x.type)
    zero = number(ctx, 0, x.dtype, x.shape)
    return tensor(ctx, SubiOp(zero.handle, x.handle), x.type)


def pos(ctx: Context, x: Tensor) -> Tensor:
    check_operand(ctx, "unary +", x)
    return x


def minimum(ctx: Context, x: Value, y: Value, propagate_nan: PropagateNan = PropagateNan.NONE) -> Tensor:
    float_op = MinimumfOp if _keeps_nan(ctx, propagate_nan) else MinnumfOp
    return _choose(ctx, "tl.minimum", x, y, float_op, MinSIOp, MinUIOp)


def maximum(ctx: Context, x: Value, y: Value, propagate_nan: PropagateNan = PropagateNan.NONE) -> Tensor:
    float_op = MaximumfOp if _keeps_nan(ctx, propagate_nan) else MaxnumfOp
    return _choose(ctx, "tl.maximum", x, y, float_op, MaxSIOp, MaxUIOp)


def clamp(ctx: Context, x: Value, min: Value, max: Value, propagate_nan: PropagateNan = PropagateNan.NONE) -> Tensor:
    mode = IRPropagateNan.ALL if _keeps_nan(ctx, propagate_nan) else IRPropagateNan.NONE
    x, min, max = ternary_operands(ctx, "tl.clamp", x, min, max)
    reject_fp8(ctx, "tl.clamp", x)
    if x.dtype.is_floating():
        return tensor(ctx, ClampFOp(x.handle, min.handle, max.handle, mode), x.type)
    return minimum(ctx, maximum(ctx, x, min), max)


def builtin_min(ctx: Context, *values: Value) -> Value:
    return _fold_values(ctx, "min", minimum, values)


def builtin_max(ctx: Context, *values: Value) -> Value:
    return _fold_values(ctx, "max", maximum, values)


def _fold_values(ctx: Context, name: str, function: Callable[..., Tensor], values: tuple[Value, ...]) -> Value:
    """Python's min and max: of numbers that are known, now, where there is one answer."""
    if not is_runtime(values):
        return _known_extreme(ctx, name, values)
    if len(values) == 1 and isinstance(values[0], tuple):
        values = values[0]
    if len(values) < 2:
        raise ctx.error(f"{name}() of one tensor is ambiguous. Use tl.{name}(x, axis) for the {name} of its elements.")
    first, *others = values
    for other in others:
        first = function(ctx, first, other)
    return first


def _known_extreme(ctx: Context, name: str, values: tuple[Value, ...]) -> Value:
    items = values[0] if len(values) == 1 and isinstance(values[0], tuple) else values
    try:
        extreme = {"min": min, "max": max}[name](items)
    except (TypeError, ValueError) as error:
        raise ctx.error(f"{name}() of {describe(tuple(items))}: {error}.") from error
    if _has_nan(items) or extreme == 0 and _has_both_zeros(items):
        raise ctx.error(f"{name}() of {describe(tuple(items))} depends on the order: tl.{name}imum knows NaN and -0.")
    return extreme


def _has_nan(items: tuple[Value, ...]) -> bool:
    return any(isinstance(item, float) and math.isnan(item) for item in items)


def _has_both_zeros(items: tuple[Value, ...]) -> bool:
    """0.0, or 0, and -0.0."""
    return len({math.copysign(1, item) for item in items if item == 0}) == 2


def _keeps_nan(ctx: Context, mode: PropagateNan) -> bool:
    if mode not in (PropagateNan.NONE, PropagateNan.ALL):
        raise ctx.error(f"propagate_nan is tl.PropagateNan.NONE or tl.PropagateNan.ALL, got {describe(mode)}.")
    return mode == PropagateNan.ALL


def _add_pointer(ctx: Context, x: Value, y: Value) -> Tensor:
    pointer, offset = (x, y) if is_pointer(x) else (y, x)
    if is_pointer(offset):
        raise ctx.error(f"Cannot add two pointers, {pointer.type} and {offset.type}. Add an integer offset to one.")
    offset = as_tensor(ctx, offset, "An offset")
    if not offset.dtype.is_int():
        raise ctx.error(f"The offset of a pointer is an integer, got {offset.type}. Convert it with .to(tl.int32).")
    if offset.dtype.is_int_unsigned() and offset.dtype.int_bitwidth < 64:
        offset = convert(ctx, offset, int64)
    pointer, offset = broadcast_operands(ctx, pointer, offset)
    return tensor(ctx, AddPtrOp(pointer.handle, offset.handle), pointer.type)


def _binary(
    ctx: Context,
    symbol: str,
    x: Value,
    y: Value,
    float_op: type[Operation],
    int_op: type[Operation],
    sanitize_overflow: bool,
) -> Tensor:
    x, y = arithmetic_operands(ctx, symbol, x, y)
    if x.dtype.is_floating():
        return tensor(ctx, float_op(x.handle, y.handle), x.type)
    if sanitize_overflow and ctx.checks_overflow:
        _assert_fits(ctx, symbol, x, y, int_op)
    return tensor(ctx, int_op(x.handle, y.handle), x.type)


def _assert_fits(ctx: Context, symbol: str, x: Tensor, y: Tensor, int_op: type[Operation]) -> None:
    """Assert that the result is the same in 64 bits; of operands of 64 bits it is not known."""
    dtype = x.dtype
    if dtype.int_bitwidth in (1, 64):
        return
    wide = ctx.builder.value(int_op(convert(ctx, x, int64).handle, convert(ctx, y, int64).handle))
    within = [
        ctx.builder.value(CmpIOp(wide, number(ctx, limit, int64, x.shape).handle, relation))
        for limit, relation in ((dtype.get_int_min_value(), "sge"), (dtype.get_int_max_value(), "sle"))
    ]
    fits = ctx.builder.value(AndIOp(*within))
    ctx.builder.insert(AssertOp(fits, f"{dtype} overflow in {symbol}"))


def _choose(ctx: Context, name: str, x: Value, y: Value, *ops: type[Operation]) -> Tensor:
    x, y = arithmetic_operands(ctx, name, x, y)
    return tensor(ctx, _by_kind(x, *ops)(x.handle, y.handle), x.type)


def _by_kind(
    x: Tensor, float_op: type[Operation], signed_op: type[Operation], unsigned_op: type[Operation]
) -> type[Operation]:
    if x.dtype.is_floating():
        return float_op
    return signed_op if x.dtype.is_int_signed() else unsigned_op


RULES = {
    operator.add: add,
    operator.sub: sub,
    operator.mul: mul,
    operator.truediv: truediv,
    operator.floordiv: floordiv,
    operator.mod: mod,
    operator.pow: pow,
    operator.neg: neg,
    operator.pos: pos,
    tl.add: add,
    tl.sub: sub,
    tl.mul: mul,
    tl.minimum: minimum,
    tl.maximum: maximum,
    tl.clamp: clamp,
    min: builtin_min,
    max: builtin_max,
}
