"""Loads of tiles that are scanned: along a dimension in which their elements are no neighbours in memory, or of
several types.

    a = tl.load(p + i[:, None] * n + j[None, :])         32 x 64 halves, four warps
    tl.associative_scan(a, 0, f)

    in columns      each thread has 8 rows of 2 columns, a warp all columns: warps exchange 2 totals of each thread
    coalesced       2 rows of 8 columns: 4 lanes and all warps exchange the totals of 8 columns, twice

Narrower accesses leave more rows to a thread, which scans them without asking others. A word of 32 bits is loaded at
once, so that the lanes of a warp still read whole sectors. What is computed of the loads, the scan and what is stored
of it are in this layout as well (homes.py, stores_in_place.py): a linear recurrence has 2.7 times the speed of the
coalesced layout on an H200.

    x, flags = tl.load(p + i), tl.load(q + i)            4096 of fp32 and of bytes, 256 threads
    tl.associative_scan((x, flags), 0, f)

    as fp32         each thread has 4 neighbours in 4 places: lanes exchange 4 totals, 600 instructions
    as bytes        16 neighbours: one total, 320; numbers are loaded 16 bytes at a time that are 64 apart

So many neighbours as the narrowest type has in 16 bytes, where all accesses have 16 and the function takes more than
an instruction for each operand: for sums of one number lanes exchange less than it takes to order what is stored again.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import Operation, SSAValue

from deuteron.analysis.addresses.access_vectors import MAX_BYTES
from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.tt.reduce import ScanOp
from deuteron.ir.ttg.inference import is_elementwise, is_flexible
from deuteron.ir.types import byte_width_of, is_tile, shape_of
from deuteron.layout.distributed import default_blocked, in_columns
from deuteron.layout.linear import LinearLayout
from deuteron.machine.gpu import REGISTER_BYTES, GPUConfig
from deuteron.passes.gpu.layouts.anchors import contiguous_order, num_neighbours
from deuteron.passes.gpu.rings.buffered_loads import fed_to_dots

MOST_BYTES = 64  # of one load that a thread has side by side: lanes of a warp touch each sector twice


def scanned_loads(func: FuncOp, info: AxisInfoAnalysis, config: GPUConfig) -> dict[LoadOp, LinearLayout]:
    """The layouts that such loads are to have: one for all that a scan takes."""
    found: dict[LoadOp, LinearLayout] = {}
    scans = nested_ops(func, ScanOp)
    fed = fed_to_dots(func) if scans else set()
    for scan in scans:
        loads = [load for load in loaded_in(scan.srcs) if load not in found and load.result not in fed]
        layout = _layout(scan, loads, info, config) if loads else None
        if layout is not None:
            found.update(dict.fromkeys(loads, layout))
    return found


def loaded_in(values: Sequence[SSAValue]) -> list[LoadOp]:
    """The loads of which elementwise ops make some values."""
    seen: set[SSAValue] = set()
    pending, loads = list(values), []
    while pending:
        value = pending.pop()
        if value in seen or not is_tile(value.type):
            continue
        seen.add(value)
        op = value.owner
        if isinstance(op, LoadOp):
            loads.append(op)
        elif isinstance(op, Operation) and is_flexible(op) and is_elementwise(op):
            pending += op.operands
    return loads


def _layout(scan: ScanOp, loads: list[LoadOp], info: AxisInfoAnalysis, config: GPUConfig) -> LinearLayout | None:
    """None where neighbours in memory are not neighbours in the same dimension for all of them."""
    shape, axis = shape_of(loads[0].result.type), scan.axis.value.data
    fast, *others = {contiguous_order(info.of(load.ptr), shape)[0] for load in loads}
    if others or any(info.of(load.ptr).contiguity[fast] == 1 for load in loads):
        return None
    if fast == axis:
        return _of_narrowest(scan, loads, info, config)
    word = max(1, *(REGISTER_BYTES // byte_width_of(load.result.type) for load in loads))
    widest = min(num_neighbours(load.ptr, fast, info) for load in loads)
    vector = min(max(shape[fast] // config.machine.warp_size, word), widest, shape[fast])
    return in_columns(shape, config.num_warps, axis, fast, vector, config.machine.warp_size)


def _of_narrowest(scan: ScanOp, loads: list[LoadOp], info: AxisInfoAnalysis, config: GPUConfig) -> LinearLayout | None:
    """As many neighbours in each thread as the narrowest type has in an access."""
    shape, axis = shape_of(loads[0].result.type), scan.axis.value.data
    widths = [byte_width_of(load.result.type) for load in loads]
    are_whole = all(
        num_neighbours(load.ptr, axis, info) * width == MAX_BYTES for load, width in zip(loads, widths, strict=True)
    )
    if not are_whole or min(widths) == max(widths) or len(scan.combine.block.ops) - 1 <= len(scan.srcs):
        return None
    per_thread = max(prod(shape) // config.num_threads, 1)
    vector = min(MAX_BYTES // min(widths), MOST_BYTES // max(widths), per_thread)
    order = contiguous_order(info.of(loads[0].ptr), shape)
    return default_blocked(shape, config.num_warps, order, vector, config.machine.warp_size)
