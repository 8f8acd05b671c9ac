"""Copies what products read into shared memory iterations ahead, by cp.async into several buffers that take turns.

    "scf.for"(%0, %n, %32, %p) ({             %buffers = "ttg.local_alloc"() : !ttg.memdesc<2x64x32xf16, ...>
    ^bb0(%k: i32, %q: pointers):              copy iteration 0 into buffer 0; commit
      %x = "tt.load"(%q)                      "scf.for"(%0, %n, %32, %p + 32, %1) ({
      %m = "ttg.local_alloc"(%x)         ->   ^bb0(%k: i32, %q: pointers of the next iteration, %last: i32):
      ... a product reads %m                    wait for the copies of this iteration
      "scf.yield"(%q + 32)                      copy the next one into buffer %last, masked by k + 32 < n; commit
    })                                          %m = "ttg.memdesc_index"(%buffers, %use)      %use comes after %last
                                                ... a product reads %m
                                                "scf.yield"(%q + 32, %use)
                                              })
                                              wait for all copies

Where threads wait for each other is found later, by the analysis of hazards. `tl.range(num_stages=...)` goes before the
option. What cannot be copied is loaded into registers one iteration ahead (prefetch_loads.py). Loads whose addresses
depend on loads stay; loops stay rolled.
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

from deuteron.analysis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.buffer_index import next_index
from deuteron.ir.builder import Builder
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import CacheModifier, EvictionPolicy, LoadOp
from deuteron.ir.ttg.async_copy import AsyncCommitGroupOp, AsyncCopyGlobalToLocalOp, AsyncWaitOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.ttg.memdesc_index import MemDescIndexOp, buffers_type
from deuteron.ir.ttg.shared import LocalAllocOp, LocalDeallocOp, LocalLoadOp
from deuteron.ir.types import i32
from deuteron.passes.gpu.pipelined_loads import PipelinedLoad, loads_to_pipeline
from deuteron.passes.gpu.prefetch_loads import prefetch
from deuteron.passes.gpu.run_ahead import Ahead, Values, addresses_of, carry, comes, lead_of, masked, new_argument
from deuteron.passes.rewrite import erase, replace
from deuteron.passes.tile.eliminate_dead_code import EliminateDeadCode


@dataclass(frozen=True)
class Schedule:
    """How many buffers take turns, and whether a loop copies at the top of its body, behind the wait, or at its bottom.

    Copies go into the buffer of the iteration before. At the top, its products must be done when the iteration begins;
    at the bottom they may run on until then, but threads wait for each other twice.
    """

    num_buffers: int
    copies_at_top: bool

    @property
    def distance(self) -> int:
        """How many iterations ahead copies are."""
        return self.num_buffers - 1

    @staticmethod
    def of(loop: scf.ForOp, num_stages: int) -> Schedule:
        """Products of wgmma are in flight until those of the next iteration are issued: they need one buffer more."""
        if any(op.name == "ttng.warp_group_dot" for op in loop.body.block.ops):
            return Schedule(num_stages, False)
        return Schedule(max(num_stages - 1, 2), True)


class _Pipeline:
    """The rewrite of one loop."""

    def __init__(self, loop: scf.ForOp, loads: Sequence[PipelinedLoad], schedule: Schedule):
        self._loop, self._loads, self._schedule = loop, loads, schedule
        self._before = Builder.before(loop)
        self._ahead = Ahead(loop, [value for one in loads for value in addresses_of(one.load)])

    def rewrite(self) -> None:
        buffers = [
            self._before.value(LocalAllocOp(buffers_type(one.buffer, self._schedule.num_buffers)))
            for one in self._loads
        ]
        for alloc, one in zip(buffers, self._loads, strict=True):
            alloc.name_hint = one.load.result.name_hint
        entering = self._fill(buffers)
        following = self._rewrite_body(buffers)
        last = self._before.constant(self._schedule.num_buffers - 1, i32)
        loop = carry(self._loop, [*entering, last], following)
        after = Builder(InsertPoint.after(loop), loop.location)
        after.insert(AsyncWaitOp(0))
        for buffer in buffers:
            after.insert(LocalDeallocOp(buffer))

    def _fill(self, buffers: Sequence[SSAValue]) -> list[SSAValue]:
        """Copy for the first iterations; gives the values that are carried ahead of their iteration."""
        b, loop = self._before, self._loop
        carried, iteration = self._ahead.entering(loop), loop.lb
        for stage in range(self._schedule.distance):
            if stage:
                iteration = b.value(arith.AddiOp(iteration, loop.step))
            values = self._ahead.clone(b, iteration, carried)
            b.location = loop.location
            self._copy(b, values, buffers, b.constant(stage, i32), comes(b, iteration, loop.ub))
            carried = self._ahead.following(values)
        return carried

    def _rewrite_body(self, buffers: Sequence[SSAValue]) -> list[SSAValue]:
        """Waits, uses and copies; gives what is carried ahead, and the index of the buffer used last."""
        loop, schedule = self._loop, self._schedule
        ahead, freed = self._ahead.new_arguments(loop), new_argument(loop, i32, "freed")
        top, bottom = Builder.before(loop.body.block.first_op), Builder.before(loop.body.block.last_op)
        self._before.location = top.location = bottom.location = loop.location
        used = next_index(top, freed, schedule.num_buffers)
        top.insert(AsyncWaitOp(schedule.distance - 1))
        place = top if schedule.copies_at_top else bottom
        iteration, runs = lead_of(loop, self._before, place, schedule.distance)
        values = self._ahead.clone(place, iteration, ahead)
        self._copy(place, values, buffers, freed, runs)
        ready = [top.value(MemDescIndexOp(buffer, used)) for buffer in buffers]
        for one, buffer in zip(self._loads, ready, strict=True):
            _use(one.load, buffer)
        return [*self._ahead.following(values), used]

    def _copy(
        self, b: Builder, values: Values, buffers: Sequence[SSAValue], index: SSAValue, runs: SSAValue | None
    ) -> None:
        tokens = []
        for one, buffer in zip(self._loads, buffers, strict=True):
            b.location = one.load.location
            pointer, mask = masked(b, one.load, values, runs)
            cache, evict = CacheModifier(one.load.cache.value.data), EvictionPolicy(one.load.evict.value.data)
            place = b.value(MemDescIndexOp(buffer, index))
            tokens.append(b.value(AsyncCopyGlobalToLocalOp(pointer, place, mask, cache, evict)))
        b.insert(AsyncCommitGroupOp(tokens))


def _use(load: LoadOp, buffer: SSAValue) -> None:
    """Let the users of a load read the buffer instead: itself, where they want it in shared memory as it is there."""
    for use in list(load.result.uses):
        user = use.operation
        if isinstance(user, LocalAllocOp) and user.result.type == buffer.type:
            replace(user, [buffer])
        elif isinstance(user, ConvertLayoutOp):
            replace(user, [Builder.before(user).value(LocalLoadOp(buffer, user.result.type))])
    if list(load.result.uses):
        replace(load, [Builder.before(load).value(LocalLoadOp(buffer, load.result.type))])
    else:
        erase(load)


@dataclass(frozen=True)
class PipelineLoads(ModulePass):
    """Pipelines the loads of innermost loops through `num_stages` stages."""

    name = "pipeline-loads"

    num_stages: int = 3

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        changed = False
        for func in op.ops:
            if isinstance(func, FuncOp):
                changed |= self._pipeline_function(func)
        if changed:
            # The pointers of the iteration itself, which nobody reads any more.
            EliminateDeadCode().apply(ctx, op)

    def _pipeline_function(self, func: FuncOp) -> bool:
        """A loop that is built anew gives new values, which the next one may start with."""
        changed, info = False, None
        for loop in [inner for inner in func.walk() if isinstance(inner, scf.ForOp)]:
            info = info or AxisInfoAnalysis(func)
            if self._pipeline(loop, info):
                changed, info = True, None
        return changed

    def _pipeline(self, loop: scf.ForOp, info: AxisInfoAnalysis) -> bool:
        hint = loop.attributes.get("tt.num_stages")
        num_stages = hint.value.data if hint is not None else self.num_stages
        if num_stages < 2:
            return False
        copied, kept = loads_to_pipeline(loop, info, hint is not None)
        if kept:
            loop = prefetch(loop, kept)
        if copied:
            _Pipeline(loop, copied, Schedule.of(loop, num_stages)).rewrite()
        return bool(copied or kept)
