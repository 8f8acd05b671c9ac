"""`tl.where`: arith.select on a condition, x and y of one shape; a scalar condition selects whole tiles."""

from __future__ import annotations

import warnings

from deuteron import language as tl
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.broadcast import broadcast_operands
from deuteron.frontend.semantics.constant import as_tensor
from deuteron.frontend.semantics.convert import convert
from deuteron.frontend.semantics.operands import is_pointer, promoted_operands
from deuteron.frontend.semantics.types import tensor
from deuteron.frontend.values import Tensor, Value, describe
from deuteron.ir.arith import SelectOp
from deuteron.language.types import int1


def where(ctx: Context, condition: Value, x: Value, y: Value) -> Tensor:
    condition = as_tensor(ctx, condition, "The condition of tl.where")
    if condition.dtype.is_ptr():
        raise ctx.error(f"The condition of tl.where is int1, got {condition.type}. Compare first, as in `x != 0`.")
    if condition.dtype != int1:
        where_zero = f"got {condition.type}, which is true where it is not 0. Compare, as in `x != 0`."
        warnings.warn(f"{ctx.frame.location()}: the condition of tl.where is int1, {where_zero}", stacklevel=2)
    condition = convert(ctx, condition, int1)
    x, y = _choices(ctx, x, y)
    if condition.shape:
        condition, x, y = broadcast_operands(ctx, condition, x, y)
    return tensor(ctx, SelectOp(condition.handle, x.handle, y.handle), x.type)


def _choices(ctx: Context, x: Value, y: Value) -> list[Tensor]:
    if not is_pointer(x) and not is_pointer(y):
        return promoted_operands(ctx, "tl.where", x, y)
    if not (is_pointer(x) and is_pointer(y) and x.dtype == y.dtype):
        raise ctx.error(f"tl.where chooses between pointers of one type, got {describe(x)} and {describe(y)}.")
    return broadcast_operands(ctx, x, y)


RULES = {tl.where: where}
