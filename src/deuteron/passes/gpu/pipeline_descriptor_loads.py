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

One barrier counts the bytes of all blocks of an iteration; those that delayed products read (pipeline_products.py) have
buffers and barriers of their own. The schedule is that of copies by cp.async
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
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.ir.types import i1, i32
from deuteron.passes.gpu.pipeline_loads import Schedule, place_of_copies, read_from
from deuteron.passes.gpu.pipeline_products import delay_products, is_read_by, products_to_delay
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


class _Ring:
    """The buffers of some loads, which take turns, and a barrier for each, which counts the bytes of all blocks. `lag`:
    how many iterations after their own the loads are read.
    """

    def __init__(self, b: Builder, loop: scf.ForOp, loads: Sequence[DescriptorLoadOp], num_buffers: int, lag: int):
        self._loop, self._loads, self._num_buffers, self.lag = loop, loads, num_buffers, lag
        self._types: list[MemDescType] = [load_buffer(load) for load in loads]
        self._ahead = Ahead(loop, [value for load in loads for value in (load.desc, *load.indices)])
        self._buffers = [b.value(LocalAllocOp(buffers_type(type, num_buffers))) for type in self._types]
        for alloc, load in zip(self._buffers, loads, strict=True):
            alloc.name_hint = load.result.name_hint
        self._barriers = b.value(LocalAllocOp(buffers_type(barrier_type(), num_buffers)))
        self.entering = self._ahead.entering(loop)
        self.following: list[SSAValue] = []
        self._ready: list[SSAValue] = []

    @property
    def _distance(self) -> int:
        """How many iterations ahead copies are."""
        return self._num_buffers - 1 - self.lag

    def initialise(self, b: Builder) -> None:
        for stage in range(self._num_buffers):
            b.insert(InitBarrierOp(_one_of(b, self._barriers, stage), 1))

    def fill(self, b: Builder, iterations: Sequence[SSAValue]) -> None:
        """Copy for the last of the first iterations, or for the one before that where the ring lags."""
        index = len(iterations) - 1 - self.lag
        if index < 0:
            return
        values = self._ahead.clone(b, iterations[index], self.entering)
        self.entering = self._ahead.following(values)
        b.location = self._loop.location
        runs = comes(b, iterations[index], self._loop.ub)
        self._copy(b, values, b.constant(index, i32), runs or b.constant(True, i1))

    def enter(self, b: Builder) -> list[SSAValue]:
        """What enters the loop: that which is carried ahead, the buffer to fill, and the parity of the last round."""
        return [*self.entering, b.constant(self._distance, i32), b.constant(1, i32)]

    def copy_ahead(self, before: Builder, top: Builder, place: Builder) -> WaitBarrierOp:
        """Wait at the top for the blocks to read, and copy at `place`; gives the wait."""
        loop = self._loop
        ahead = self._ahead.new_arguments(loop)
        freed, phase = new_argument(loop, i32, "freed"), new_argument(loop, i32, "phase")
        following = used = next_index(top, freed, self._num_buffers)
        for _ in range(self.lag):
            used = next_index(top, used, self._num_buffers)
        parity = _parity(top, used, phase)
        self._ready = [top.value(MemDescIndexOp(buffer, used)) for buffer in self._buffers]
        wait = top.insert(WaitBarrierOp(top.value(MemDescIndexOp(self._barriers, used)), parity, self._ready))
        iteration, runs = lead_of(loop, before, place, self._distance)
        values = self._ahead.clone(place, iteration, ahead)
        self._copy(place, values, freed, runs)
        self.following = [*self._ahead.following(values), following, parity]
        return wait

    def read(self) -> None:
        """Let the users of the loads read the buffers that are ready."""
        for load, buffer in zip(self._loads, self._ready, strict=True):
            read_from(buffer, load, Builder.before(load))

    def free(self, b: Builder) -> None:
        for stage in range(self._num_buffers):
            b.insert(InvalBarrierOp(_one_of(b, self._barriers, stage)))
        for buffer in (*self._buffers, self._barriers):
            b.insert(LocalDeallocOp(buffer))

    def _copy(self, b: Builder, values: Values, index: SSAValue, runs: SSAValue) -> None:
        b.location = self._loop.location
        barrier = b.value(MemDescIndexOp(self._barriers, index))
        b.insert(BarrierExpectOp(barrier, runs, sum(map(block_bytes, self._types))))
        for load, buffer in zip(self._loads, self._buffers, strict=True):
            b.location = load.location
            place = b.value(MemDescIndexOp(buffer, index))
            offsets = [values.of(offset) for offset in load.indices]
            b.insert(AsyncTMACopyGlobalToLocalOp(values.of(load.desc), offsets, barrier, place, runs))


class _Pipeline:
    """The rewrite of one loop, with a ring for the loads of `delayed` products, and one for all others."""

    def __init__(
        self,
        loop: scf.ForOp,
        loads: Sequence[DescriptorLoadOp],
        schedule: Schedule,
        delayed: Sequence[WarpGroupDotOp],
    ):
        self._loop, self._schedule, self._delayed = loop, schedule, delayed
        self._before = Builder.before(loop)
        parts = [[load for load in loads if is_read_by(load, delayed) == lags] for lags in (False, True)]
        count = schedule.num_buffers
        self._rings = [_Ring(self._before, loop, part, count, lag) for lag, part in enumerate(parts) if part]

    def rewrite(self) -> None:
        self._initialise()
        self._fill()
        waits = self._rewrite_body()
        entering = [value for ring in self._rings for value in ring.enter(self._before)]
        loop = carry(self._loop, entering, [value for ring in self._rings for value in ring.following])
        after = Builder(InsertPoint.after(loop), loop.location)
        for ring in self._rings:
            ring.free(after)
        if self._delayed:
            delay_products(loop, self._delayed, waits)

    def _initialise(self) -> None:
        """All threads wait here, so that none has to in the loop. What used the memory before is over for TMA too."""
        for ring in self._rings:
            ring.initialise(self._before)
        self._before.insert(FenceMBarrierInitOp())
        self._before.insert(FenceAsyncSharedOp())
        self._before.insert(BarrierOp())

    def _fill(self) -> None:
        b, loop = self._before, self._loop
        iterations = [loop.lb]
        for stage in range(self._schedule.distance):
            if stage:
                iterations.append(b.value(arith.AddiOp(iterations[-1], loop.step)))
            for ring in self._rings:
                ring.fill(b, iterations)
            b.location = loop.location

    def _rewrite_body(self) -> list[WaitBarrierOp]:
        """Waits, copies and uses; gives the waits for what is read an iteration later."""
        top = Builder.before(self._loop.body.block.first_op)
        place = place_of_copies(self._loop, self._schedule, self._delayed)
        self._before.location = top.location = place.location = self._loop.location
        waits = {ring: ring.copy_ahead(self._before, top, place) for ring in self._rings}
        for ring in self._rings:
            ring.read()
        return [wait for ring, wait in waits.items() if ring.lag]


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
            _Pipeline(loop, loads, Schedule.of(loop, num_stages), products_to_delay(loop, loads)).rewrite()
        return bool(loads)
