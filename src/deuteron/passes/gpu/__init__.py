"""The passes that make ttgir of tile IR, in order.

products.py           which instruction multiplies
plan_cta.py           programs shared out over the blocks of their clusters
cta_split.py          along which axes
order_programs.py     programs with more to do first
infer_descriptors.py  loads of strided tiles through descriptors
anchors.py, homes.py  which layout ops and values have of themselves
assign_layouts.py     gives every tile a layout, converts where two differ
allocate_shared.py    places everything that is in shared memory
place_barriers.py     lets threads wait for each other where they have to
split_dot_operands.py products of f32 by way of parts in tf32 or bf16
widen_dot_operands.py products of fp8 by way of f16
place_dot_operands.py operands of products in shared memory
specialize_warps.py   copies of what products read given to warps of their own
ring_buffers.py       which loads
channels.py           the buffers that take turns, and their barriers
slice_loads.py        what these warps compute
multicast.py          what the blocks of a cluster load together
partition_warps.py    the rewrite of a function
pipeline_loads.py     what products read, copied into shared memory iterations ahead
pipelined_loads.py    which loads
copy_ring.py          the buffers that take turns
pipeline_descriptor_loads.py  blocks of tensors, by TMA
pipeline_products.py  products that depend on others, an iteration later
prefetch_loads.py     loads that go through registers
run_ahead.py          what they need of later iterations
lower_descriptors.py  blocks of tensors through shared memory, by TMA
overlap_products.py   products of warpgroups in flight while others are issued
release_buffers.py    buffers given back when no product reads them any more
order_warp_groups.py  two warpgroups that multiply in turns
fence_products.py     what is stored to shared memory made visible to them
"""

from __future__ import annotations

from xdsl.passes import ModulePass

from deuteron.passes.gpu.allocate_shared import AllocateShared
from deuteron.passes.gpu.assign_layouts import AssignLayouts
from deuteron.passes.gpu.fence_products import FenceProducts
from deuteron.passes.gpu.infer_descriptors import InferDescriptors
from deuteron.passes.gpu.lower_descriptors import LowerDescriptors
from deuteron.passes.gpu.order_programs import OrderPrograms
from deuteron.passes.gpu.order_warp_groups import OrderWarpGroups
from deuteron.passes.gpu.overlap_products import OverlapProducts
from deuteron.passes.gpu.pipeline_loads import PipelineLoads
from deuteron.passes.gpu.place_barriers import PlaceBarriers
from deuteron.passes.gpu.place_dot_operands import PlaceDotOperands
from deuteron.passes.gpu.plan_cta import PlanCTA
from deuteron.passes.gpu.products import HOPPER
from deuteron.passes.gpu.release_buffers import ReleaseBuffers
from deuteron.passes.gpu.specialize_warps import SpecializeWarps
from deuteron.passes.gpu.split_dot_operands import SplitDotOperands
from deuteron.passes.gpu.widen_dot_operands import WidenDotOperands


def gpu_passes(num_warps: int, target: str, num_stages: int, num_ctas: int = 1) -> list[ModulePass]:
    """The passes that turn tile IR into ttgir that can be lowered."""
    return [
        # First: behind it a program is that of one block.
        *([PlanCTA(num_ctas)] if num_ctas > 1 else []),
        # Before what follows: pointers are plain in tile IR.
        *([InferDescriptors(num_warps, target)] if target == HOPPER else []),
        # After it: the new ids are not known to be positive.
        OrderPrograms(),
        # Before layouts: the products that it makes have instructions, and so layouts, of their own.
        SplitDotOperands(),
        # Before layouts: which instruction multiplies, and so which layouts operands have, depends on their types.
        WidenDotOperands(num_warps, target),
        # Before layouts: what goes through shared memory is not converted in registers.
        PlaceDotOperands(num_warps, target),
        AssignLayouts(num_warps, target, num_ctas),
        # Before loads are pipelined: those that other warps copy are not.
        SpecializeWarps(num_warps, target, num_stages, num_ctas),
        # After layouts: where a copy goes depends on them. It makes the buffers that the next ones order accesses of.
        PipelineLoads(num_stages),
        # After loads are pipelined: what was not copied ahead is copied where it is.
        LowerDescriptors(),
        # After it: what a product reads has to stay until it is done.
        OverlapProducts(),
        # After it: until when a product reads is known.
        ReleaseBuffers(),
        # After it: which products are in flight together is known.
        OrderWarpGroups(num_warps),
        # After it: a fence comes before the product, not between it and its wait.
        FenceProducts(),
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
