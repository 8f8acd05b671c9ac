"""Rules for `tt.reduce` and `tt.scan`: the region runs on whole tiles, one element of each pair in each operand.

A reduction halves the axis again and again, combining neighbours, so that it keeps their order; a scan goes
along the axis step by step. A region that has control flow runs for one pair of elements at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deuteron.interpreter.region import Tiles, function_of
from deuteron.ir.rule_table import RuleTable
from deuteron.ir.tt.reduce import ReduceOp, ScanOp

RULES = RuleTable()


@RULES.on(ReduceOp)
def reduce(ctx, op, *srcs):
    combine = combiner(ctx, op)
    tiles = axis_first(srcs, op.axis.value.data)
    while len(tiles[0]) > 1:
        tiles = combine([t[::2] for t in tiles], [t[1::2] for t in tiles])
    return tuple(tile[0] for tile in tiles)


@RULES.on(ScanOp)
def scan(ctx, op, *srcs):
    combine, axis = combiner(ctx, op), op.axis.value.data
    step = -1 if op.reverse.value.data else 1
    tiles = [tile[::step] for tile in axis_first(srcs, axis)]
    prefixes = [[tile[0] for tile in tiles]]
    for index in range(1, len(tiles[0])):
        prefixes.append(combine(prefixes[-1], [tile[index] for tile in tiles]))
    scanned = [np.stack(prefix)[::step] for prefix in zip(*prefixes, strict=True)]
    return tuple(np.moveaxis(tile, 0, axis) for tile in scanned)


def axis_first(srcs: tuple[np.ndarray, ...], axis: int) -> Tiles:
    return [np.moveaxis(src, axis, 0) for src in srcs]


def combiner(ctx, op: ReduceOp | ScanOp) -> Callable[[Tiles, Tiles], Tiles]:
    """The region as a function of two lists of tiles."""
    run = function_of(ctx, op.combine.block)
    return lambda lhs, rhs: run([*lhs, *rhs])
