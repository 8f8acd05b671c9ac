"""Rules for ops that make tiles and change their shape."""

from __future__ import annotations

import numpy as np

from deuteron.ir.rule_table import RuleTable
from deuteron.ir.tt.shape import (
    BroadcastOp,
    CatOp,
    ExpandDimsOp,
    JoinOp,
    MakeRangeOp,
    ReshapeOp,
    SplatOp,
    SplitOp,
    TransOp,
    UnsplatOp,
)
from deuteron.ir.types import shape_of

RULES = RuleTable()


@RULES.on(MakeRangeOp)
def make_range(ctx, op):
    return np.arange(op.start.value.data, op.end.value.data, dtype=np.int32)


@RULES.on(SplatOp, BroadcastOp)
def broadcast(ctx, op, src):
    return np.broadcast_to(src, shape_of(op.results[0].type))


@RULES.on(UnsplatOp)
def unsplat(ctx, op, src):
    return src.reshape(())


@RULES.on(ExpandDimsOp)
def expand_dims(ctx, op, src):
    return np.expand_dims(src, op.axis.value.data)


@RULES.on(ReshapeOp)
def reshape(ctx, op, src):
    """Row-major, also where `allow_reorder` leaves the order open."""
    return src.reshape(shape_of(op.results[0].type))


@RULES.on(TransOp)
def trans(ctx, op, src):
    return np.transpose(src, op.permutation)


@RULES.on(JoinOp)
def join(ctx, op, lhs, rhs):
    return np.stack([lhs, rhs], axis=-1)


@RULES.on(SplitOp)
def split(ctx, op, src):
    return src[..., 0], src[..., 1]


@RULES.on(CatOp)
def cat(ctx, op, lhs, rhs):
    return np.concatenate([lhs, rhs])
