"""Copies blocks of tensors into shared memory iterations ahead, by TMA into several buffers that take turns.

                                                 %buffers, %bars = "ttg.local_alloc"()
                                                 each barrier initialised; copy iteration 0 into buffer 0
    "scf.for"(%0, %n, %32) ({                    "scf.for"(%0, %n, %32, %1, %1) ({
    ^bb0(%k: i32):                               ^bb0(%k: i32, %last: i32, %phase: i32):
      %x = "tt.descriptor_load"(%d, %i, %k)        %bar = "ttg.memdesc_index"(%bars, %use)     %use comes after %last
      %m = "ttg.local_alloc"(%x)          ->       "ttng.wait_barrier"(%bar, %parity)          %parity: %phase, or its
      ... a product reads %m                       %m = "ttg.memdesc_index"(%buffers, %use)      inverse where %use is 0
      "scf.yield"()                                ... a product reads %m
    })                                             copy the next block into buffer %last, if k + 32 < n
                                                   "scf.yield"(%use, %parity)
                                                 })
                                                 barriers invalidated

It is part of `pipeline-loads`, which decides where a loop copies, and how many iterations ahead. One barrier counts the
bytes of all blocks of an iteration; those that products of the next iteration read have barriers of their own. Loads
under an `if` stay, and so do those whose offsets depend on loads.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import SSAValue

from deuteron.analysis.descriptor_buffers import block_bytes, load_buffer
from deuteron.analysis.written_arguments import is_apart, written_arguments
from deuteron.ir.builder import Builder
from deuteron.ir.tt.descriptor import (
    DescriptorLoadOp,
    DescriptorReduceOp,
    MakeTensorDescriptorOp,
)
from deuteron.ir.ttg.barrier import BarrierOp
from deuteron.ir.ttg.memdesc_index import MemDescIndexOp, buffers_type
from deuteron.ir.ttg.ring import RingNextOp
from deuteron.ir.ttg.shared import LocalAllocOp, LocalDeallocOp
from deuteron.ir.ttng.fence import FenceAsyncSharedOp
from deuteron.ir.ttng.mbarrier import (
    BarrierExpectOp,
    FenceMBarrierInitOp,
    InitBarrierOp,
    InvalBarrierOp,
    WaitBarrierOp,
    barrier_type,
)
from deuteron.ir.ttng.tma import AsyncTMACopyGlobalToLocalOp
from deuteron.ir.types import i1, i32
from deuteron.passes.gpu.pipelining.copy_ring import CopyRing, Place
from deuteron.passes.gpu.pipelining.pipelined_loads import (
    PRODUCTS,
    PipelinedLoad,
    feeds_product,
    has_inner_loop,
    may_run_ahead,
)
from deuteron.passes.gpu.pipelining.run_ahead import Ahead, Values


def descriptor_loads_to_pipeline(loop: scf.ForOp, also_without_product: bool) -> list[PipelinedLoad]:
    """The loads of an innermost loop to copy ahead: those that products read; all, if a loop without products asks."""
    ops = list(loop.body.block.ops)
    if has_inner_loop(loop) or not may_run_ahead(loop, besides=(DescriptorReduceOp,)):
        return []
    takes_all = also_without_product and not any(op.name in PRODUCTS for op in ops)
    written = written_arguments(loop)
    return [
        PipelinedLoad(op, load_buffer(op))
        for op in ops
        if isinstance(op, DescriptorLoadOp)
        and is_apart(op, written)
        and (takes_all or feeds_product(op.result))
        and Ahead(loop, _needs(op)).is_pure
    ]


def _needs(load: DescriptorLoadOp) -> list[SSAValue]:
    """What a load needs to know in advance; the map is the kernel's."""
    made = load.desc.owner
    return [*load.indices, *(made.operands if isinstance(made, MakeTensorDescriptorOp) else ())]


class TMACopyRing(CopyRing):
    """Buffers that TMA fills, with a barrier for each turn. A place has the parity of its barrier's phase."""

    PLACE = ("freed", "phase")

    def __init__(self, b: Builder, loop: scf.ForOp, loads: Sequence[PipelinedLoad], num_buffers: int, lag: int):
        super().__init__(b, loop, loads, num_buffers, lag)
        self._barriers = b.value(LocalAllocOp(buffers_type(barrier_type(), num_buffers)))
        for index in range(num_buffers):
            b.insert(InitBarrierOp(self._barrier(b, b.constant(index, i32)), 1))

    def wait(self, b: Builder) -> WaitBarrierOp:
        """Wait for the buffers that are read."""
        index, parity = self._read
        return b.insert(WaitBarrierOp(self._barrier(b, index), parity, self._ready))

    def leave(self, b: Builder) -> None:
        for index in range(self._num_buffers):
            b.insert(InvalBarrierOp(self._barrier(b, b.constant(index, i32))))
        super().leave(b)
        b.insert(LocalDeallocOp(self._barriers))

    def _barrier(self, b: Builder, index: SSAValue) -> SSAValue:
        return b.value(MemDescIndexOp(self._barriers, index))

    def _first_place(self, b: Builder) -> Place:
        return b.constant(self._distance, i32), b.constant(1, i32)

    def _next_place(self, b: Builder, place: Place) -> Place:
        step = b.insert(RingNextOp(*place, self._num_buffers))
        return step.next_index, step.next_phase

    def _copy(self, b: Builder, values: Values, index: SSAValue, runs: SSAValue | None) -> list[SSAValue]:
        runs, barrier = runs or b.constant(True, i1), self._barrier(b, index)
        b.insert(BarrierExpectOp(barrier, runs, sum(block_bytes(one.buffer) for one in self._loads)))
        for one, buffer in zip(self._loads, self._buffers, strict=True):
            b.location = one.load.location
            place = b.value(MemDescIndexOp(buffer, index))
            offsets = [values.of(offset) for offset in one.load.indices]
            b.insert(AsyncTMACopyGlobalToLocalOp(values.of(one.load.desc), offsets, barrier, place, runs))
        return []


def publish_barriers(b: Builder) -> None:
    """All threads wait here, so that none has to in the loop. What used the memory before is over for TMA too."""
    b.insert(FenceMBarrierInitOp())
    b.insert(FenceAsyncSharedOp())
    b.insert(BarrierOp())
