"""What an op does besides giving its results.

    is_pure(op)              may be removed if unused, merged with an equal one, and moved within its block
    is_speculatable(op)      may, besides, run where it did not run before: pure, and it cannot trap
    is_removable(op)         may be removed if unused: pure ops, and loads that are not volatile

A loop counts as pure if its body is; a `while` never, for it may not end.
"""

from __future__ import annotations

from functools import cache

from xdsl.dialects import arith, scf
from xdsl.ir import Operation
from xdsl.traits import IsTerminator, Pure

from deuteron.ir.arith import constant_value
from deuteron.ir.tt.descriptor import DescriptorLoadOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.tt.reduce import ReduceOp, ScanOp

_PURE_IF_BODY_IS = (scf.IfOp, scf.ForOp, ReduceOp, ScanOp)
_INTEGER_DIVISIONS = (
    arith.DivSIOp,
    arith.DivUIOp,
    arith.RemSIOp,
    arith.RemUIOp,
    arith.FloorDivSIOp,
    arith.CeilDivSIOp,
    arith.CeilDivUIOp,
)


@cache
def _has_pure_trait(op_class: type[Operation]) -> bool:
    return op_class.has_trait(Pure) or op_class.has_trait(IsTerminator)


def is_pure(op: Operation) -> bool:
    if isinstance(op, _PURE_IF_BODY_IS):
        return _bodies_are(op, is_pure)
    return _has_pure_trait(type(op))


def is_removable(op: Operation) -> bool:
    if isinstance(op, LoadOp):
        return not op.is_volatile.value.data
    if isinstance(op, DescriptorLoadOp):
        return True
    if isinstance(op, _PURE_IF_BODY_IS):
        return _bodies_are(op, is_removable)
    return _has_pure_trait(type(op))


def is_speculatable(op: Operation) -> bool:
    """Integer division by what is not a constant may trap on a CPU."""
    if isinstance(op, _INTEGER_DIVISIONS):
        return constant_value(op.rhs) not in (None, 0, -1)
    if isinstance(op, _PURE_IF_BODY_IS):
        return _bodies_are(op, is_speculatable)
    return _has_pure_trait(type(op))


def _bodies_are(op: Operation, predicate) -> bool:
    return all(predicate(inner) for region in op.regions for block in region.blocks for inner in block.ops)
