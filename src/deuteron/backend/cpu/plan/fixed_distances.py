"""Whether the elements of a tile are as far apart in every iteration of a loop: the loop moves them all alike.

    for k in range(0, K, 32):
        p + rows[:, None] * stride + (k + ks)[None, :]          they are
        p + rows[:, None] * (stride + k)                        they are not: what multiplies rows changes
        p + ((k + ks) % n)[:, None] * stride                    nor here: which of them wraps around changes

Integers of 32 bits or more are taken not to overflow on the way to an address.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.ir import Operation, SSAValue

from deuteron.backend.cpu.plan.ops.elementwise import WIDENING, is_offset
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.ir.arith import constant_value
from deuteron.ir.tt.memory import AddPtrOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, SplatOp
from deuteron.ir.types import is_tile

_SUMS = (arith.AddiOp, arith.SubiOp, AddPtrOp)
_FORWARDING = (BroadcastOp, ExpandDimsOp)


def has_fixed_distances(plan: Plan, value: SSAValue, loop: scf.ForOp) -> bool:
    """Of what is known to be, by construction."""
    pending, seen = [value], {value}
    while pending:
        moved = _moved_alike(plan, pending.pop(), loop)
        if moved is None:
            return False
        pending += [part for part in moved if part not in seen]
        seen.update(moved)
    return True


def _moved_alike(plan: Plan, value: SSAValue, loop: scf.ForOp) -> list[SSAValue] | None:
    """The tiles that have to have fixed distances for a value to have them; None where it is not known to."""
    if not is_tile(value.type) or _is_from_before(value, loop):
        return []
    if value in plan.storage.inductions:
        return [plan.storage.inductions[value].initial]
    op = value.owner
    if not isinstance(op, Operation) or value in plan.places:
        return None
    if isinstance(op, SplatOp):
        return []
    if isinstance(op, (*_SUMS, *_FORWARDING)) or (isinstance(op, WIDENING) and is_offset(op.operands[0])):
        return list(op.operands)
    if isinstance(op, arith.MuliOp):
        return _without_factor(op, loop)
    return None


def _without_factor(op: arith.MuliOp, loop: scf.ForOp) -> list[SSAValue] | None:
    """What is multiplied by one number for all elements and all iterations."""
    for multiplied, factor in (op.operands, reversed(op.operands)):
        if _is_factor(factor, loop):
            return [multiplied]
    return None


def _is_factor(value: SSAValue, loop: scf.ForOp) -> bool:
    if constant_value(value) is not None:
        return True
    while isinstance(value.owner, (SplatOp, *_FORWARDING)):
        value = value.owner.operands[0]
    return not is_tile(value.type) and _is_from_before(value, loop)


def _is_from_before(value: SSAValue, loop: scf.ForOp) -> bool:
    owner = value.owner
    return not loop.is_ancestor(owner if isinstance(owner, Operation) else owner.parent_op())
