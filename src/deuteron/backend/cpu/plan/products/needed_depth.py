"""Finds how deep a product is: where both operands are loaded under masks with a limit along k, and are 0 beyond it.

    a = tl.load(..., mask=ks[None, :] < K - k, other=0)         K = 1,000, of which 40 are left for the last 64
    b = tl.load(..., mask=ks[:, None] < K - k, other=0)         heads of 80 in tiles of 128
    acc = tl.dot(a, b, acc)                                     40, or 80, products to a sum

0 * 0 changes no sum. Where only one operand is 0 the other may be infinite, so that the product is computed. A limit is
computed at the product, of what is known there, as those of its stores are (`needed_sums.py`).
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from deuteron.backend.cpu.plan import ops
from deuteron.backend.cpu.plan.indices import Index, identity_index
from deuteron.backend.cpu.plan.items import dots_of
from deuteron.backend.cpu.plan.needed import known_limits
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.vectors.limits import limits_of
from deuteron.backend.cpu.plan.vectors.mask_limits import Limit
from deuteron.ir import casts
from deuteron.ir.arith import constant_value
from deuteron.ir.tt.convert import FpToFpOp
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.types import shape_of

_KEEP_ZERO = (arith.ExtFOp, arith.TruncFOp, FpToFpOp, casts.SIToFPOp, casts.UIToFPOp, casts.ExtSIOp, casts.ExtUIOp)


def find_needed_depth(plan: Plan) -> None:
    """Give products the limits of both operands; beyond the lowest of each there are zeros."""
    for item in dots_of(plan.body):
        if len(shape_of(item.op.result.type)) == 2:
            limits = _zeros_from(plan, item.op, item.op.a, 1), _zeros_from(plan, item.op, item.op.b, 0)
            item.needed_depth = limits if all(limits) else ()


def _zeros_from(plan: Plan, dot: DotOp, operand: SSAValue, axis: int) -> tuple[Limit, ...]:
    """The limits along an axis from which on an operand is 0."""
    loaded = _loaded(operand)
    if loaded is None:
        return ()
    load, index = loaded
    if load.mask is None or load.other is None or constant_value(load.other) != 0:
        return ()
    return known_limits(plan, dot, limits_of(plan, load.mask, index, (axis, 1 - axis)))


def _loaded(operand: SSAValue) -> tuple[LoadOp, Index] | None:
    """What an operand is loaded by, and at which index: it is 0 where what is loaded is."""
    value, index = operand, identity_index(shape_of(operand.type))
    while isinstance(op := value.owner, Operation):
        if isinstance(op, LoadOp):
            return op, index
        if not isinstance(op, _KEEP_ZERO) and (not ops.declared(op).forwards or ops.declared(op).is_view(op)):
            return None
        ((value, index),) = ops.declared(op).operands_at(op, index)
    return None
