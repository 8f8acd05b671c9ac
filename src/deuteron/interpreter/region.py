"""Regions on scalars, as functions of arrays: of reductions, scans and maps.

What is straight runs on whole arrays at once; what has control flow, makes tiles, or reads memory, for one element at a
time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import Block, Operation

from deuteron.interpreter.needed import needed_ops
from deuteron.interpreter.values import dtype_of
from deuteron.ir.effects import is_pure
from deuteron.ir.types import is_tile

Tiles = list[np.ndarray]


def function_of(ctx, block: Block) -> Callable[[Sequence[np.ndarray]], Tiles]:
    """The region as a function of arrays of one shape, which gives arrays of that shape."""
    dtypes = [dtype_of(operand.type) for operand in block.last_op.operands]

    def run(tiles: Sequence[np.ndarray]) -> Tiles:
        results = ctx.run_block(block, tiles)
        return [np.broadcast_to(np.asarray(r, d), np.shape(tiles[0])) for r, d in zip(results, dtypes, strict=True)]

    def run_elements(tiles: Sequence[np.ndarray]) -> Tiles:
        results = [np.empty(np.shape(tiles[0]), dtype) for dtype in dtypes]
        for index in np.ndindex(np.shape(tiles[0])):
            values = ctx.run_block(block, [tile[index] for tile in tiles])
            for result, value in zip(results, values, strict=True):
                result[index] = value
        return results

    return run if all(map(_is_elementwise, needed_ops(block))) else run_elements


def _is_elementwise(op: Operation) -> bool:
    return not op.regions and is_pure(op) and not any(is_tile(value.type) for value in (*op.results, *op.operands))
