"""Comparisons: `< <= > >= == !=` give int1 of the common shape.

    offsets < n                 arith.cmpi slt, or ult where the common type is unsigned
    x > 0.0                     arith.cmpf ogt: false where one is NaN
    x != y                      arith.cmpf une: true where one is NaN

Bools compare as unsigned, False below True. Pointers do not compare.
"""

from __future__ import annotations

import operator

from deuteron.frontend.context import Context
from deuteron.frontend.semantics.operands import arithmetic_operands
from deuteron.frontend.semantics.types import tensor
from deuteron.frontend.values import Tensor, Value
from deuteron.ir.arith import CmpFOp, CmpIOp
from deuteron.language.types import int1


def lt(ctx: Context, x: Value, y: Value) -> Tensor:
    return _compare(ctx, "<", "lt", x, y)


def le(ctx: Context, x: Value, y: Value) -> Tensor:
    return _compare(ctx, "<=", "le", x, y)


def gt(ctx: Context, x: Value, y: Value) -> Tensor:
    return _compare(ctx, ">", "gt", x, y)


def ge(ctx: Context, x: Value, y: Value) -> Tensor:
    return _compare(ctx, ">=", "ge", x, y)


def eq(ctx: Context, x: Value, y: Value) -> Tensor:
    return _compare(ctx, "==", "eq", x, y)


def ne(ctx: Context, x: Value, y: Value) -> Tensor:
    return _compare(ctx, "!=", "ne", x, y)


def _compare(ctx: Context, symbol: str, relation: str, x: Value, y: Value) -> Tensor:
    x, y = arithmetic_operands(ctx, symbol, x, y)
    if x.dtype.is_floating():
        op = CmpFOp(x.handle, y.handle, ("u" if relation == "ne" else "o") + relation)
    elif relation in ("eq", "ne"):
        op = CmpIOp(x.handle, y.handle, relation)
    else:
        op = CmpIOp(x.handle, y.handle, ("s" if x.dtype.is_int_signed() else "u") + relation)
    return tensor(ctx, op, x.type.with_element_ty(int1))


RULES = {
    operator.lt: lt,
    operator.le: le,
    operator.gt: gt,
    operator.ge: ge,
    operator.eq: eq,
    operator.ne: ne,
}
