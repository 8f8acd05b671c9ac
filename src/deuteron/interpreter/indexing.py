"""Rules for tt.gather and tt.histogram."""

from __future__ import annotations

import numpy as np

from deuteron.errors import MemoryAccessError
from deuteron.ir.rule_table import RuleTable
from deuteron.ir.tt.indexing import GatherOp, HistogramOp
from deuteron.ir.types import shape_of

RULES = RuleTable()


@RULES.on(GatherOp)
def gather(ctx, op, src, indices):
    axis = op.axis.value.data
    extent = src.shape[axis]
    outside = (indices < 0) | (indices >= extent)
    if outside.any():
        place = tuple(int(coordinate) for coordinate in np.argwhere(outside)[0])
        raise MemoryAccessError(
            f"tl.gather: the index at {list(place)} is {indices[place]}, and axis {axis} of the tile has {extent} "
            "elements. Elsewhere it would give any of them: clamp or mask it."
        )
    return np.take_along_axis(src, indices.astype(np.int64), axis)


@RULES.on(HistogramOp)
def histogram(ctx, op, src, mask=None):
    (num_bins,) = shape_of(op.result.type)
    counted = (src >= 0) & (src < num_bins)
    if mask is not None:
        counted = counted & mask
    return np.bincount(src[counted].astype(np.int64), minlength=num_bins).astype(np.int32)
