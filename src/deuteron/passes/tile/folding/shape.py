"""Folds of shape ops: whatever reshapes one scalar everywhere is that scalar everywhere; what changes nothing goes.

broadcast(expand_dims(splat(x)))  ->  splat(x)            trans(trans(x, a), b)  ->  trans(x, b after a)
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from deuteron.ir.arith import constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.rule_table import RuleTable
from deuteron.ir.tt.shape import (
    BroadcastOp,
    ExpandDimsOp,
    ReshapeOp,
    SplatOp,
    TransOp,
    UnsplatOp,
)
from deuteron.ir.types import shape_of

FOLDS = RuleTable()

Folded = Sequence[SSAValue] | None


@FOLDS.on(SplatOp)
def fold_splat(op: SplatOp) -> Folded:
    return _constant_everywhere(op)


@FOLDS.on(UnsplatOp)
def fold_unsplat(op: UnsplatOp) -> Folded:
    source = op.src.owner
    return [source.src] if isinstance(source, SplatOp) else _constant_everywhere(op)


@FOLDS.on(BroadcastOp)
def fold_broadcast(op: BroadcastOp) -> Folded:
    return _fold_shape_change(op)


@FOLDS.on(ExpandDimsOp)
def fold_expand_dims(op: ExpandDimsOp) -> Folded:
    return _fold_shape_change(op)


@FOLDS.on(ReshapeOp)
def fold_reshape(op: ReshapeOp) -> Folded:
    folded = _fold_shape_change(op)
    source = op.src.owner
    if folded is not None or not isinstance(source, ReshapeOp):
        return folded
    is_ordered = op.allow_reorder is None and source.allow_reorder is None
    return [Builder.before(op).value(ReshapeOp(source.src, shape_of(op.result.type)))] if is_ordered else None


@FOLDS.on(TransOp)
def fold_trans(op: TransOp) -> Folded:
    if op.permutation == tuple(range(len(op.permutation))):
        return [op.src]
    source = op.src.owner
    if isinstance(source, TransOp):
        return [Builder.before(op).value(TransOp(source.src, [source.permutation[axis] for axis in op.permutation]))]
    return _one_scalar_everywhere(op)


def _fold_shape_change(op: Operation) -> Folded:
    return [op.operands[0]] if op.operands[0].type == op.results[0].type else _one_scalar_everywhere(op)


def _one_scalar_everywhere(op: Operation) -> Folded:
    """A splat of the result's shape, if the operand is one scalar everywhere."""
    source = op.operands[0].owner
    if isinstance(source, SplatOp):
        return [Builder.before(op).value(SplatOp(source.src, shape_of(op.results[0].type)))]
    return _constant_everywhere(op)


def _constant_everywhere(op: Operation) -> Folded:
    number = constant_value(op.operands[0])
    if number is None or number != number:
        return None
    return [Builder.before(op).constant(number, op.results[0].type)]
