"""Bit operators and logic: `& | ^ ~ << >>`, `not`, `logical_and`, `logical_or`.

    mask_m[:, None] & mask_n[None, :]     arith.andi on int1
    ~mask                                 arith.xori with all ones
    x >> 3                                arith.shrsi, or shrui where the type of `x` before promotion is unsigned

Floats are an error for bit operators. Logic asks of other values than int1 whether they are not zero, of pointers
whether they are not null.
"""

from __future__ import annotations

import operator

from xdsl.dialects.arith import AndIOp, OrIOp, ShLIOp, ShRSIOp, ShRUIOp, XOrIOp
from xdsl.ir import Operation

from deuteron import language as tl
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.constant import as_tensor, number
from deuteron.frontend.semantics.convert import convert
from deuteron.frontend.semantics.operands import check_operand, promoted_operands
from deuteron.frontend.semantics.promote import promote_operands
from deuteron.frontend.semantics.types import tensor
from deuteron.frontend.values import Tensor, Value, describe
from deuteron.language.types import int1


def and_(ctx: Context, x: Value, y: Value) -> Tensor:
    return _bitwise(ctx, "&", x, y, AndIOp)


def or_(ctx: Context, x: Value, y: Value) -> Tensor:
    return _bitwise(ctx, "|", x, y, OrIOp)


def xor(ctx: Context, x: Value, y: Value) -> Tensor:
    return _bitwise(ctx, "^", x, y, XOrIOp)


def lshift(ctx: Context, x: Value, y: Value) -> Tensor:
    _check_shift(ctx, "<<", x, y)
    return _bitwise(ctx, "<<", x, y, ShLIOp)


def rshift(ctx: Context, x: Value, y: Value) -> Tensor:
    _check_shift(ctx, ">>", x, y)
    # As in Triton the left-hand side decides, or the right-hand one where the left one is a number.
    is_signed = (x if isinstance(x, Tensor) else y).dtype.is_int_signed()
    return _bitwise(ctx, ">>", x, y, ShRSIOp if is_signed else ShRUIOp)


def invert(ctx: Context, x: Tensor) -> Tensor:
    _check_integer(ctx, "~", x)
    ones = number(ctx, x.dtype.get_int_max_value() if x.dtype.is_int_unsigned() else -1, x.dtype, x.shape)
    return tensor(ctx, XOrIOp(x.handle, ones.handle), x.type)


def not_(ctx: Context, x: Tensor) -> Tensor:
    return invert(ctx, _as_bool(ctx, "not", x))


def logical_and(ctx: Context, x: Tensor, other: Value) -> Tensor:
    return and_(ctx, _as_bool(ctx, "and", x), _as_bool(ctx, "and", other))


def logical_or(ctx: Context, x: Tensor, other: Value) -> Tensor:
    return or_(ctx, _as_bool(ctx, "or", x), _as_bool(ctx, "or", other))


def _as_bool(ctx: Context, symbol: str, x: Value) -> Tensor:
    return convert(ctx, as_tensor(ctx, x, f"An operand of `{symbol}`"), int1)


def _bitwise(ctx: Context, symbol: str, x: Value, y: Value, op: type[Operation]) -> Tensor:
    _check_integer(ctx, symbol, x)
    _check_integer(ctx, symbol, y)
    x, y = promoted_operands(ctx, symbol, x, y)
    return tensor(ctx, op(x.handle, y.handle), x.type)


def _check_integer(ctx: Context, symbol: str, operand: Value) -> None:
    check_operand(ctx, symbol, operand)
    is_float = operand.dtype.is_floating() if isinstance(operand, Tensor) else isinstance(operand, float)
    if is_float:
        raise ctx.error(
            f"{symbol} is for integers and bools, got {describe(operand)}. "
            "Take the bits of a float with .to(tl.int32, bitcast=True)."
        )


def _check_shift(ctx: Context, symbol: str, x: Value, y: Value) -> None:
    """A shift by a number is by less than the width; by more it would be undefined."""
    if not isinstance(x, Tensor) or not x.dtype.is_int() or not isinstance(y, int):
        return
    common = promote_operands(ctx, x, y)
    if not 0 <= y < common.int_bitwidth:
        raise ctx.error(
            f"{symbol} of {common} by {y}: a shift is by 0 to {common.int_bitwidth - 1}. Widen the value first."
        )


RULES = {
    operator.and_: and_,
    operator.or_: or_,
    operator.xor: xor,
    operator.lshift: lshift,
    operator.rshift: rshift,
    operator.invert: invert,
    operator.not_: not_,
    tl.tensor.logical_and: logical_and,
    tl.tensor.logical_or: logical_or,
}
