"""Loads of small matrices whose rows and columns are reduced: each thread has whole ones, and asks no other.

    x = tl.load(p + b[:, None, None] * 16 + i[None, :, None] * 4 + i[None, None, :])         128 x 4 x 4, four warps
    for _ in range(20):
        x /= tl.sum(x, 2)[:, :, None]
        x /= tl.sum(x, 1)[:, None, :]

    coalesced    each thread has one row of four matrices: lanes exchange 4 columns of each in 2 steps, and all four
                 lanes invert the same 4 sums
    whole        each thread has one matrix

A matrix takes up to 64 bytes, so that lanes of a warp touch each sector twice. What is carried by loops is what enters
them and what an iteration makes. If there are fewer matrices than threads they are loaded as others are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from math import prod

from xdsl.ir import Operation, SSAValue

from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.ir.forwarding import forwarded_from
from deuteron.ir.nested import nested_ops
from deuteron.ir.reached import reached
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.tt.reduce import ReduceOp
from deuteron.ir.ttg.inference import is_elementwise, is_flexible
from deuteron.ir.types import byte_width_of, is_tile, shape_of
from deuteron.layout.distributed import in_threads
from deuteron.layout.linear import LinearLayout
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.layouts.anchors import contiguous_order
from deuteron.passes.gpu.layouts.scanned_loads import MOST_BYTES


def reduced_loads(func: FuncOp, info: AxisInfoAnalysis, config: GPUConfig) -> dict[LoadOp, LinearLayout]:
    """The layouts that such loads are to have."""
    axes: dict[LoadOp, set[int]] = defaultdict(set)
    for reduction in nested_ops(func, ReduceOp):
        for value in reached(reduction.srcs, _made_from):
            if isinstance(value.owner, LoadOp) and is_tile(value.type):
                axes[value.owner].add(reduction.axis.value.data)
    return {
        load: in_threads(shape_of(load.result.type), config.num_warps, found, order, config.machine.warp_size)
        for load, found in axes.items()
        if len(found) > 1
        and (order := contiguous_order(info.of(load.ptr), shape_of(load.result.type)))[0] in found
        and _fits(load, found, config)
    }


def _made_from(value: SSAValue) -> Sequence[SSAValue]:
    """What an elementwise op takes, or what a loop or branch forwards."""
    op = value.owner
    if isinstance(op, Operation) and is_flexible(op) and is_elementwise(op):
        return op.operands
    return forwarded_from(value)


def _fits(load: LoadOp, axes: Collection[int], config: GPUConfig) -> bool:
    shape = shape_of(load.result.type)
    held = prod(shape[axis] for axis in axes)
    return held * byte_width_of(load.result.type) <= MOST_BYTES and prod(shape) >= held * config.num_threads
