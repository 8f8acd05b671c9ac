"""Floats that are never negative by the ops that give them, as the counts and weights of elements are.

    %mask = arith.cmpi slt, %i, %n
    %one  = arith.uitofp %mask                                   no
    %all  = scf.for ... iter_args(%count = %zeros) {             no: it begins with zeros, and sums of such
              %sum = arith.addf %count, %one                     numbers are no less
              scf.yield %sum }
    %x    = tt.load %p                                           not known

NaN counts as not negative: it is no less than anything. Zero with a sign does: what is divided by it is negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign

from xdsl.dialects import arith, math, scf
from xdsl.ir import BlockArgument, SSAValue

from deuteron.ir.arith import SelectOp, constant_value
from deuteron.ir.casts import UIToFPOp
from deuteron.ir.reached import reached
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, ReshapeOp, SplatOp, TransOp

FROM_ANY = (UIToFPOp, math.AbsFOp, math.ExpOp, math.Exp2Op)
FROM_OPERANDS = (
    *(arith.AddfOp, arith.MulfOp, arith.DivfOp, arith.MinnumfOp, arith.MaxnumfOp, arith.MinimumfOp, arith.MaximumfOp),
    *(arith.ExtFOp, arith.TruncFOp, BroadcastOp, ExpandDimsOp, ReshapeOp, SplatOp, TransOp),
)


def is_never_negative(value: SSAValue) -> bool:
    """Whether no element of a float, or of a tile of floats, can be less than zero."""
    return all(_is_known(one) for one in reached([value], _made_of))


def _is_known(value: SSAValue) -> bool:
    """Whether a value is never negative if what it is made of is not."""
    if isinstance(value.owner, arith.ConstantOp):
        number = constant_value(value)
        return number is not None and copysign(1, number) > 0
    return isinstance(value.owner, (*FROM_ANY, *FROM_OPERANDS, SelectOp, scf.ForOp)) or _is_carried(value)


def _made_of(value: SSAValue) -> Sequence[SSAValue]:
    op = value.owner
    if isinstance(op, SelectOp):
        return op.operands[1:]
    if isinstance(op, FROM_OPERANDS):
        return op.operands
    if isinstance(op, scf.ForOp):
        return _ways_of(op, value.index)
    return _ways_of(op.parent_op(), value.index - 1) if _is_carried(value) else ()


def _is_carried(value: SSAValue) -> bool:
    """Whether a loop carries it."""
    return isinstance(value, BlockArgument) and isinstance(value.owner.parent_op(), scf.ForOp) and value.index > 0


def _ways_of(loop: scf.ForOp, index: int) -> Sequence[SSAValue]:
    """What a loop carries at an index before its first iteration, and after each."""
    return loop.iter_args[index], loop.body.block.last_op.operands[index]
