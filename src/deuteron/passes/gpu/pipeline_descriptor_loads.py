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

One barrier counts the bytes of all blocks of an iteration. The schedule is that of copies by cp.async
(pipeline_loads.py); how many iterations ahead is decided in the same way. Loads under an `if` stay, and so do those
whose offsets depend on loads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from deuteron.analysis.base_argument import base_argument
from deuteron.analysis.buffer_index import next_index
from deuteron.analysis.descriptor_buffers import block_bytes, load_buffer
from deuteron.ir.arith import CmpIOp, SelectOp
from deuteron.ir.builder import Builder
from deuteron.ir.tt.descriptor import (
    DescriptorLoadOp,
    DescriptorReduceOp,
    DescriptorStoreOp,
    MakeTensorDescriptorOp,
    descriptor_of,
)
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.ttg.barrier import BarrierOp
from deuteron.ir.ttg.layout import MemDescType
from deuteron.ir.ttg.memdesc_index import MemDescIndexOp, buffers_type
from deuteron.ir.ttg.shared import LocalAllocOp, LocalDeallocOp, LocalLoadOp
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
from deuteron.passes.gpu.pipeline_loads import Schedule, read_from
from deuteron.passes.gpu.pipelined_loads import PRODUCTS, feeds_product
from deuteron.passes.gpu.run_ahead import Ahead, Values, carry, comes, lead_of, new_argument
from deuteron.passes.tile.eliminate_dead_code import EliminateDeadCode

_STORES = (DescriptorStoreOp, DescriptorReduceOp)
_LOCAL_OPS = (LoadOp, StoreOp, LocalAllocOp, LocalLoadOp, BarrierOp, DescriptorLoadOp, *_STORES)


def descriptor_loads_to_pipeline(loop: scf.ForOp, also_without_product: bool) -> list[DescriptorLoadOp]:
    """The loads of an innermost loop to copy ahead: those that products read; all, if a loop without products asks."""
    ops = list(loop.body.block.ops)
    if any(isinstance(op, scf.ForOp | scf.WhileOp) for op in ops) or not _may_run_ahead(loop):
        return []
    takes_all = also_without_product and not any(op.name in PRODUCTS for op in ops)
    stored = {base_argument(descriptor_of(op).base) for op in loop.walk() if isinstance(op, _STORES)}
    return [
        op
        for op in ops
        if isinstance(op, DescriptorLoadOp)
        and base_argument(descriptor_of(op).base) not in stored
        and (takes_all or feeds_product(op.result))
        and Ahead(loop, _needs(op)).is_pure
    ]


def _may_run_ahead(loop: scf.ForOp) -> bool:
    """Whether nothing in the loop orders memory accesses of different iterations."""
    return not any(
        (op.has_trait(MemoryWriteEffect) or op.has_trait(MemoryReadEffect)) and not isinstance(op, _LOCAL_OPS)
        for op in loop.walk()
        if not op.name.startswith("ttng.")
    )


def _needs(load: DescriptorLoadOp) -> list[SSAValue]:
    """What a load needs to know in advance; the map is the kernel's."""
    made = load.desc.owner
    return [*load.indices, *(made.operands if isinstance(made, MakeTensorDescriptorOp) else ())]


class _Pipeline:
    """The rewrite of one loop."""

    def __init__(self, loop: scf.ForOp, loads: Sequence[DescriptorLoadOp], schedule: Schedule):
        self._loop, self._loads, self._schedule = loop, loads, schedule
        self._types: list[MemDescType] = [load_buffer(load) for load in loads]
        self._before = Builder.before(loop)
        self._ahead = Ahead(loop, [value for load in loads for value in (load.desc, *load.indices)])

    def rewrite(self) -> None:
        b, count = self._before, self._schedule.num_buffers
        buffers = [b.value(LocalAllocOp(buffers_type(type, count))) for type in self._types]
        for alloc, load in zip(buffers, self._loads, strict=True):
            alloc.name_hint = load.result.name_hint
        barriers = b.value(LocalAllocOp(buffers_type(barrier_type(), count)))
        self._initialise(barriers)
        entering = self._fill(buffers, barriers)
        following = self._rewrite_body(buffers, barriers)
        last, phase = b.constant(count - 1, i32), b.constant(1, i32)
        loop = carry(self._loop, [*entering, last, phase], following)
        after = Builder(InsertPoint.after(loop), loop.location)
        for stage in range(count):
            after.insert(InvalBarrierOp(_one_of(after, barriers, stage)))
        for buffer in (*buffers, barriers):
            after.insert(LocalDeallocOp(buffer))

    def _initialise(self, barriers: SSAValue) -> None:
        """All threads wait here, so that none has to in the loop. What used the memory before is over for TMA too."""
        b = self._before
        for stage in range(self._schedule.num_buffers):
            b.insert(InitBarrierOp(_one_of(b, barriers, stage), 1))
        b.insert(FenceMBarrierInitOp())
        b.insert(FenceAsyncSharedOp())
        b.insert(BarrierOp())

    def _fill(self, buffers: Sequence[SSAValue], barriers: SSAValue) -> list[SSAValue]:
        """Copy for the first iterations; gives the values that are carried ahead of their iteration."""
        b, loop = self._before, self._loop
        carried, iteration = self._ahead.entering(loop), loop.lb
        for stage in range(self._schedule.distance):
            if stage:
                iteration = b.value(arith.AddiOp(iteration, loop.step))
            values = self._ahead.clone(b, iteration, carried)
            b.location = loop.location
            runs = comes(b, iteration, loop.ub)
            self._copy(b, values, buffers, barriers, b.constant(stage, i32), runs or b.constant(True, i1))
            carried = self._ahead.following(values)
        return carried

    def _rewrite_body(self, buffers: Sequence[SSAValue], barriers: SSAValue) -> list[SSAValue]:
        """Waits, uses and copies; gives what is carried ahead, the buffer used last, and the parity of its phase."""
        loop, schedule = self._loop, self._schedule
        ahead = self._ahead.new_arguments(loop)
        freed, phase = new_argument(loop, i32, "freed"), new_argument(loop, i32, "phase")
        top, bottom = Builder.before(loop.body.block.first_op), Builder.before(loop.body.block.last_op)
        self._before.location = top.location = bottom.location = loop.location
        used = next_index(top, freed, schedule.num_buffers)
        parity = _parity(top, used, phase)
        ready = [top.value(MemDescIndexOp(buffer, used)) for buffer in buffers]
        top.insert(WaitBarrierOp(top.value(MemDescIndexOp(barriers, used)), parity, ready))
        place = top if schedule.copies_at_top else bottom
        iteration, runs = lead_of(loop, self._before, place, schedule.distance)
        values = self._ahead.clone(place, iteration, ahead)
        self._copy(place, values, buffers, barriers, freed, runs)
        for load, buffer in zip(self._loads, ready, strict=True):
            read_from(buffer, load, Builder.before(load))
        return [*self._ahead.following(values), used, parity]

    def _copy(
        self,
        b: Builder,
        values: Values,
        buffers: Sequence[SSAValue],
        barriers: SSAValue,
        index: SSAValue,
        runs: SSAValue,
    ) -> None:
        b.location = self._loop.location
        barrier = b.value(MemDescIndexOp(barriers, index))
        b.insert(BarrierExpectOp(barrier, runs, sum(map(block_bytes, self._types))))
        for load, buffer in zip(self._loads, buffers, strict=True):
            b.location = load.location
            place = b.value(MemDescIndexOp(buffer, index))
            offsets = [values.of(offset) for offset in load.indices]
            b.insert(AsyncTMACopyGlobalToLocalOp(values.of(load.desc), offsets, barrier, place, runs))


def _one_of(b: Builder, barriers: SSAValue, stage: int) -> SSAValue:
    return b.value(MemDescIndexOp(barriers, b.constant(stage, i32)))


def _parity(b: Builder, used: SSAValue, phase: SSAValue) -> SSAValue:
    """The parity of the phase in which a buffer is filled: another one where the buffers begin again."""
    begins = b.value(CmpIOp(used, b.constant(0, i32), "eq"))
    return b.value(SelectOp(begins, b.value(arith.XOrIOp(phase, b.constant(1, i32))), phase))


@dataclass(frozen=True)
class PipelineDescriptorLoads(ModulePass):
    """Pipelines loads of blocks in innermost loops through `num_stages` stages."""

    name = "pipeline-descriptor-loads"

    num_stages: int = 3

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [func for func in op.ops if isinstance(func, FuncOp)]
        loops = [loop for func in functions for loop in func.walk() if isinstance(loop, scf.ForOp)]
        if any([self._pipeline(loop) for loop in loops]):
            # The offsets of the iteration itself, which nobody needs any more.
            EliminateDeadCode().apply(ctx, op)

    def _pipeline(self, loop: scf.ForOp) -> bool:
        hint = loop.attributes.get("tt.num_stages")
        num_stages = hint.value.data if hint is not None else self.num_stages
        loads = descriptor_loads_to_pipeline(loop, hint is not None) if num_stages > 1 else []
        if loads:
            _Pipeline(loop, loads, Schedule.of(loop, num_stages)).rewrite()
        return bool(loads)
