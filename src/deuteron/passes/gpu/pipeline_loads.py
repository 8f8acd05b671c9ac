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
from deuteron.ir.tt.descriptor import DescriptorLoadOp
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import CacheModifier, EvictionPolicy, LoadOp
from deuteron.ir.ttg.async_copy import AsyncCommitGroupOp, AsyncCopyGlobalToLocalOp, AsyncWaitOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.ttg.memdesc_index import MemDescIndexOp, buffers_type
from deuteron.ir.ttg.shared import LocalAllocOp, LocalDeallocOp, LocalLoadOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.ir.types import i32
from deuteron.passes.gpu.pipeline_products import delay_products, first_product, is_read_by, products_to_delay
from deuteron.passes.gpu.pipelined_loads import PipelinedLoad, loads_to_pipeline
from deuteron.passes.gpu.prefetch_loads import prefetch
from deuteron.passes.gpu.run_ahead import Ahead, Values, addresses_of, carry, comes, lead_of, masked, new_argument
from deuteron.passes.remarks import remark
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


class _Ring:
    """The buffers of some loads, which take turns. `lag`: how many iterations after their own the loads are read.

    What a loop carries is the buffer to fill, the one that was read in the iteration before.
    """

    def __init__(self, b: Builder, loop: scf.ForOp, loads: Sequence[PipelinedLoad], num_buffers: int, lag: int):
        self._loop, self._loads, self._num_buffers, self._lag = loop, loads, num_buffers, lag
        self._ahead = Ahead(loop, [value for one in loads for value in addresses_of(one.load)])
        self.buffers = [b.value(LocalAllocOp(buffers_type(one.buffer, num_buffers))) for one in loads]
        for buffer, one in zip(self.buffers, loads, strict=True):
            buffer.name_hint = one.load.result.name_hint
        self.entering = self._ahead.entering(loop)
        self.following: list[SSAValue] = []
        self._ready: list[SSAValue] = []

    @property
    def _distance(self) -> int:
        """How many iterations ahead copies are."""
        return self._num_buffers - 1 - self._lag

    def fill(self, b: Builder, iterations: Sequence[SSAValue]) -> list[SSAValue]:
        """Copy for the last of the first iterations, or for the one before that where the ring lags."""
        index = len(iterations) - 1 - self._lag
        if index < 0:
            return []
        values = self._ahead.clone(b, iterations[index], self.entering)
        self.entering = self._ahead.following(values)
        b.location = self._loop.location
        return self._copy(b, values, b.constant(index, i32), comes(b, iterations[index], self._loop.ub))

    def enter(self, b: Builder) -> list[SSAValue]:
        """What enters the loop: that which is carried ahead of its iteration, and the buffer to fill."""
        return [*self.entering, b.constant(self._distance, i32)]

    def copy_ahead(self, before: Builder, top: Builder, place: Builder) -> list[SSAValue]:
        """Find the buffers that are ready at the top, copy at `place`; gives the tokens of the copies."""
        loop = self._loop
        ahead, freed = self._ahead.new_arguments(loop), new_argument(loop, i32, "freed")
        following = used = next_index(top, freed, self._num_buffers)
        for _ in range(self._lag):
            used = next_index(top, used, self._num_buffers)
        iteration, runs = lead_of(loop, before, place, self._distance)
        values = self._ahead.clone(place, iteration, ahead)
        tokens = self._copy(place, values, freed, runs)
        self._ready = [top.value(MemDescIndexOp(buffer, used)) for buffer in self.buffers]
        self.following = [*self._ahead.following(values), following]
        return tokens

    def read(self) -> None:
        """Let the users of the loads read the buffers that are ready."""
        for one, buffer in zip(self._loads, self._ready, strict=True):
            read_from(buffer, one.load, Builder.before(one.load))

    def _copy(self, b: Builder, values: Values, index: SSAValue, runs: SSAValue | None) -> list[SSAValue]:
        tokens = []
        for one, buffer in zip(self._loads, self.buffers, strict=True):
            b.location = one.load.location
            pointer, mask = masked(b, one.load, values, runs)
            cache, evict = CacheModifier(one.load.cache.value.data), EvictionPolicy(one.load.evict.value.data)
            place = b.value(MemDescIndexOp(buffer, index))
            tokens.append(b.value(AsyncCopyGlobalToLocalOp(pointer, place, mask, cache, evict)))
        return tokens


class _Pipeline:
    """The rewrite of one loop, with a ring for the loads of `delayed` products, and one for all others."""

    def __init__(
        self,
        loop: scf.ForOp,
        loads: Sequence[PipelinedLoad],
        schedule: Schedule,
        delayed: Sequence[WarpGroupDotOp],
    ):
        self._loop, self._schedule, self._delayed = loop, schedule, delayed
        self._before = Builder.before(loop)
        parts = [[one for one in loads if is_read_by(one.load, delayed) == lags] for lags in (False, True)]
        count = schedule.num_buffers
        self._rings = [_Ring(self._before, loop, part, count, lag) for lag, part in enumerate(parts) if part]

    def rewrite(self) -> None:
        self._fill()
        self._rewrite_body()
        entering = [value for ring in self._rings for value in ring.enter(self._before)]
        loop = carry(self._loop, entering, [value for ring in self._rings for value in ring.following])
        after = Builder(InsertPoint.after(loop), loop.location)
        after.insert(AsyncWaitOp(0))
        for ring in self._rings:
            for buffer in ring.buffers:
                after.insert(LocalDeallocOp(buffer))
        if self._delayed:
            delay_products(loop, self._delayed)

    def _fill(self) -> None:
        b, loop = self._before, self._loop
        iterations = [loop.lb]
        for stage in range(self._schedule.distance):
            if stage:
                iterations.append(b.value(arith.AddiOp(iterations[-1], loop.step)))
            b.insert(AsyncCommitGroupOp([token for ring in self._rings for token in ring.fill(b, iterations)]))
            b.location = loop.location

    def _rewrite_body(self) -> None:
        loop = self._loop
        top = Builder.before(loop.body.block.first_op)
        place = place_of_copies(loop, self._schedule, self._delayed)
        self._before.location = top.location = place.location = loop.location
        top.insert(AsyncWaitOp(self._schedule.distance - 1))
        tokens = [token for ring in self._rings for token in ring.copy_ahead(self._before, top, place)]
        place.insert(AsyncCommitGroupOp(tokens))
        for ring in self._rings:
            ring.read()


def place_of_copies(loop: scf.ForOp, schedule: Schedule, delayed: Sequence[WarpGroupDotOp]) -> Builder:
    """Where a loop copies; with delayed products, which read the buffers of the iteration before, behind them all."""
    block = loop.body.block
    if delayed:
        return Builder(InsertPoint.after(first_product(delayed)))
    return Builder.before(block.first_op if schedule.copies_at_top else block.last_op)


def read_from(buffer: SSAValue, load: LoadOp | DescriptorLoadOp, b: Builder) -> None:
    """Let the users of a load read the buffer instead: itself, where they want it in shared memory as it is there, else
    the tile that is loaded from it at `b`.
    """
    for use in list(load.result.uses):
        user = use.operation
        if isinstance(user, LocalAllocOp) and user.result.type == buffer.type:
            replace(user, [buffer])
        elif isinstance(user, ConvertLayoutOp):
            replace(user, [Builder.before(user).value(LocalLoadOp(buffer, user.result.type))])
    if list(load.result.uses):
        replace(load, [b.value(LocalLoadOp(buffer, load.result.type))])
    else:
        erase(load)


def _remark_loads(loop: scf.ForOp, text: str) -> None:
    for op in loop.walk():
        if isinstance(op, LoadOp):
            remark(op, text)


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
            _remark_loads(loop, "num_stages is below 2")
            return False
        copied, kept = loads_to_pipeline(loop, info, hint is not None)
        if kept:
            loop = prefetch(loop, kept)
        if copied:
            delayed = products_to_delay(loop, [one.load for one in copied])
            _Pipeline(loop, copied, Schedule.of(loop, num_stages), delayed).rewrite()
        return bool(copied or kept)
