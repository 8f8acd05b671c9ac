"""Stores that are done in the layout in which what they store is, instead of being converted to a coalesced one.

    x = tl.load(x_ptr + i)                       bf16, 8 in each thread: 16 bytes
    tl.store(out_ptr + i, x.to(tl.float8e4nv))   one access of 8 bytes in each thread, no exchange; coalesced are 16

A store must not take many more accesses than in the coalesced layout, and the lanes of a warp have to write neighbours.
It stays where it is if what it stores is computed of loads that take fewer accesses there, as at `i // 8`.
"""

from __future__ import annotations

from deuteron.analysis.addresses.access_vectors import access_vectors
from deuteron.analysis.addresses.load_accesses import load_accesses
from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.types import byte_width_of, is_tile, pointee_of
from deuteron.layout.linear import LANE, LinearLayout
from deuteron.passes.gpu.layouts.anchors import contiguous_order
from deuteron.passes.gpu.layouts.homes import Homes
from deuteron.passes.gpu.layouts.loads_in_place import computed_with, is_loaded_or_elementwise

# Accesses for one of the coalesced layout, and bytes that lanes of a warp write side by side in each, or all there
# are. A conversion stores and loads in shared memory instead, and threads wait for each other. Rows of 4096 bf16 stored
# as fp8 take as long either way on an H200; what is loaded in columns to be scanned is stored in columns.
ACCESSES, SIDE_BY_SIDE = 4, 64


def stores_in_place(func: FuncOp, homes: Homes, info: AxisInfoAnalysis) -> dict[StoreOp, LinearLayout]:
    """The layouts that such stores are to have."""
    found = {}
    for store in nested_ops(func, StoreOp):
        layout = homes.get(store.value) if is_tile(store.value.type) else None
        if layout is not None and _pays(store, layout, homes, info):
            found[store] = layout
    return found


def _pays(store: StoreOp, layout: LinearLayout, homes: Homes, info: AxisInfoAnalysis) -> bool:
    """Addresses and masks must be computed wherever they are needed; those from memory are not."""
    coalesced = homes.operands_of(store)[0]
    addresses = [operand for operand in store.operands if operand is not store.value]
    if layout == coalesced or any(homes.get(operand) is not None for operand in addresses):
        return False
    if _loads_gain(store, coalesced, homes, info):
        return False
    (width, count), (_, coalesced_count) = (_accesses(store, one, info) for one in (layout, coalesced))
    return count <= ACCESSES * coalesced_count and _writes_neighbours(store, layout, width, info)


def _loads_gain(store: StoreOp, wanted: LinearLayout, homes: Homes, info: AxisInfoAnalysis) -> bool:
    """Whether what is stored is computed of loads that would take fewer accesses where stores want it, and nothing else
    needs any of it.
    """
    if not is_loaded_or_elementwise(store.value.owner):
        return False
    members, home = computed_with(store.value, homes), homes.get(store.value)
    if not all(is_loaded_or_elementwise(one) for one in members):
        return False
    users = {use.operation for op in members for use in op.results[0].uses} - set(members)
    loads = [op for op in members if isinstance(op, LoadOp)]
    there, here = (sum(len(load_accesses(load, one, info)) for load in loads) for one in (wanted, home))
    return there < here and all(isinstance(one, StoreOp) and homes.operands_of(one)[0] == wanted for one in users)


def _accesses(store: StoreOp, layout: LinearLayout, info: AxisInfoAnalysis) -> tuple[int, int]:
    """How many elements each access has, and how many accesses there are."""
    mask = info.of_mask(store.mask)
    vectors = access_vectors(layout, info.of(store.ptr), mask, byte_width_of(pointee_of(store.ptr.type)))
    return len(vectors[0]), len(vectors)


def _writes_neighbours(store: StoreOp, layout: LinearLayout, width: int, info: AxisInfoAnalysis) -> bool:
    """Whether the lanes go on where the elements of an access end."""
    axis, count = contiguous_order(info.of(store.ptr), layout.shape)[0], width
    while tuple(count if a == axis else 0 for a in range(len(layout.shape))) in layout.of(LANE):
        count *= 2
    return count == layout.shape[axis] or count * byte_width_of(store.value.type) >= SIDE_BY_SIDE
