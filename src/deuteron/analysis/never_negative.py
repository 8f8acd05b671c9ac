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

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from deuteron.ir.arith import SelectOp, constant_value
from deuteron.ir.casts import UIToFPOp
from deuteron.ir.forwarding import forwarded_from
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
    return isinstance(value.owner, (*FROM_ANY, *FROM_OPERANDS, SelectOp)) or bool(forwarded_from(value))


def _made_of(value: SSAValue) -> Sequence[SSAValue]:
    op = value.owner
    if isinstance(op, SelectOp):
        return op.operands[1:]
    return op.operands if isinstance(op, FROM_OPERANDS) else forwarded_from(value)
