"""Rule for tt.map_elementwise: neighbours in row-major order come together, the last again where they are too few."""

from __future__ import annotations

import numpy as np

from deuteron.interpreter.region import function_of
from deuteron.ir.rule_table import RuleTable
from deuteron.ir.tt.map_elementwise import MapElementwiseOp

RULES = RuleTable()


@RULES.on(MapElementwiseOp)
def map_elementwise(ctx, op, *srcs):
    pack, shape, size = op.pack.value.data, srcs[0].shape, srcs[0].size
    columns = [column for src in srcs for column in packed(src, pack)]
    results = function_of(ctx, op.scalar_op.block)(columns)
    grouped = [np.stack(results[begin : begin + pack], axis=-1) for begin in range(0, len(results), pack)]
    return tuple(group.reshape(-1)[:size].reshape(shape) for group in grouped)


def packed(src: np.ndarray, pack: int) -> list[np.ndarray]:
    """The elements in groups of `pack`: an array of the first of each group, one of the second ..."""
    flat = src.reshape(-1)
    padded = np.append(flat, np.repeat(flat[-1:], -flat.size % pack))
    return list(padded.reshape(-1, pack).T)
