"""The passes that make ttgir of tile IR, in order.

anchors.py, homes.py  which layout ops and values have of themselves
assign_layouts.py     gives every tile a layout, converts where two differ
allocate_shared.py    places everything that is in shared memory
place_barriers.py     lets threads wait for each other where they have to
widen_dot_operands.py products of fp8 by way of f16
"""

from __future__ import annotations

from xdsl.passes import ModulePass

from deuteron.passes.gpu.allocate_shared import AllocateShared
from deuteron.passes.gpu.assign_layouts import AssignLayouts
from deuteron.passes.gpu.place_barriers import PlaceBarriers
from deuteron.passes.gpu.widen_dot_operands import WidenDotOperands


def gpu_passes(num_warps: int, target: str) -> list[ModulePass]:
    """The passes that turn tile IR into ttgir that can be lowered."""
    return [
        # Before layouts: which instruction multiplies, and so which layouts operands have, depends on their types.
        WidenDotOperands(),
        AssignLayouts(num_warps, target),
        *memory_passes(),
    ]


def memory_passes() -> list[ModulePass]:
    """The last of them, which ttgir that comes as text may not have been through."""
    return [
        # After everything that makes or removes users of shared memory.
        AllocateShared(),
        # Last: what overlaps is known when everything has its place.
        PlaceBarriers(),
    ]
