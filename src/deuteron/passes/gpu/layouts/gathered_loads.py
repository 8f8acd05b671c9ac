"""Loads of single elements of which threads hold neighbours, as they do of what is stored.

    j = min(max(i % 68 - 2, 0), 63) + ...                     i of 1024, four warps: a border that is replicated
    tl.store(out + i, tl.load(x + j))

    an element a lane      8 quotients, limits and addresses of a thread, 8 stores: 288 instructions
    as it is stored        neighbours share what they can: 192, and 2 stores of 16 bytes

Accesses of either are as many, and the first cache serves what the lanes of a warp have left of a sector. On an H200
borders take 0.85 to 0.93 of the time so, bilinear and bicubic enlargements 0.75 to 0.91. Where an element is so far
from the next one that each lane would read a sector of its own, as in pools, it is the lanes that hold neighbours:
maxima of 3 x 3 took 1.54 otherwise. How far is the factor of the coordinate in the address, between two multiples of
what divides; what is no polynomial, as what is computed with fractions, is taken to be near. Of addresses that come
from memory homes.py decides.
"""

from __future__ import annotations

from deuteron.analysis.addresses.access_vectors import MAX_BYTES
from deuteron.analysis.addresses.polynomial import coordinate
from deuteron.analysis.addresses.tile_quotients import TileQuotients
from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.types import is_tile, shape_of
from deuteron.layout.linear import LinearLayout
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.layouts.anchors import memory_layout, num_neighbours
from deuteron.passes.gpu.layouts.loads_in_place import SECTOR
from deuteron.passes.gpu.layouts.scanned_loads import loaded_in


def gathered_loads(func: FuncOp, info: AxisInfoAnalysis, config: GPUConfig) -> dict[LoadOp, LinearLayout]:
    """The layouts that such loads are to have: those of the stores."""
    found: dict[LoadOp, LinearLayout] = {}
    known = TileQuotients(func)
    for store in nested_ops(func, StoreOp):
        if not is_tile(store.ptr.type) or len(shape_of(store.ptr.type)) != 1 or num_neighbours(store.ptr, 0, info) == 1:
            continue
        loads = [load for load in loaded_in([store.value]) if _is_gathered(load, info)]
        if loads and all(_is_near(known, load) for load in loads):
            layout = memory_layout(store.ptr, info, config)
            found |= {load: layout for load in loads if load not in found}
    return found


def _is_gathered(load: LoadOp, info: AxisInfoAnalysis) -> bool:
    is_computed = not load.is_volatile.value.data and not loaded_in([load.ptr])
    return is_computed and num_neighbours(load.ptr, 0, info) == 1


def _is_near(known: TileQuotients, load: LoadOp) -> bool:
    """Whether lanes that hold neighbours share sectors."""
    address = known.of(load.ptr)
    return address is None or abs(address.factor_of((coordinate(0),))) * MAX_BYTES < SECTOR
