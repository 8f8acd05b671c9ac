"""Copies what dots read into shared memory iterations ahead, into rings of buffers (passes/gpu/rings).

    "scf.for"(%0, %n, %32, %p) ({             %buffers = "ttg.local_alloc"() : !ttg.memdesc<2x64x32xf16, ...>
    ^bb0(%k: i32, %q: pointers):              copy iteration 0 into buffer 0; commit
      %x = "tt.load"(%q)                      "scf.for"(%0, %n, %32, %p + 32, %1) ({
      %m = "ttg.local_alloc"(%x)         ->   ^bb0(%k: i32, %q: pointers of the next iteration, %last: i32):
      ... a dot reads %m                        wait for the copies of this iteration
      "scf.yield"(%q + 32)                      copy the next one into buffer %last, masked by k + 32 < n; commit
    })                                          %m = "ttg.memdesc_index"(%buffers, %use)      %use comes after %last
                                                ... a dot reads %m
                                                "scf.yield"(%q + 32, %use)
                                              })
                                              wait for all copies

Where threads wait for each other is found later, by the analysis of hazards. Where TMA copies, the wait is for an
mbarrier of the slot, and the loop carries its phase as well. `tl.range(num_stages=...)` goes before the option. What
cannot be copied is loaded into registers one iteration ahead (prefetch_loads.py), and so is what kernels without dots
load in their loops, whatever the option says: it counts buffers. Loads that addresses depend on go further ahead
(address_loads.py). Loops stay rolled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint

from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.loop_registers import ROOM, registers_held
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.remarks import Kind, remark
from deuteron.ir.tt.descriptor import DescriptorLoadOp
from deuteron.ir.tt.function import FuncOp, function_of, functions_in
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.ttg.async_copy import AsyncCommitGroupOp, AsyncWaitOp
from deuteron.ir.ttg.barrier import BarrierOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.ttg.shared import LocalAllocOp
from deuteron.ir.ttng.fence import FenceAsyncSharedOp
from deuteron.ir.ttng.mbarrier import FenceMBarrierInitOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.ir.types import num_bytes_of
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.carried_values import carry
from deuteron.passes.gpu.pipelining.address_loads import AddressLoads
from deuteron.passes.gpu.pipelining.chained_dots import allocs_of, dots_to_delay, first_dot, is_read_by
from deuteron.passes.gpu.pipelining.choose_loads import choose_loads, choose_without_dots, loads_of
from deuteron.passes.gpu.pipelining.prefetch_loads import prefetch
from deuteron.passes.gpu.pipelining.run_ahead import Iteration, RingAhead
from deuteron.passes.gpu.rings.buffered_loads import STAGES_HINT, BufferedLoad, has_dots, stages_of
from deuteron.passes.gpu.version_loops import FEW_ITERATIONS
from deuteron.passes.gpu.warp_groups.spanning_dots import spans_iterations
from deuteron.passes.optimisation import Optimisation


@dataclass(frozen=True)
class Schedule:
    """How many slots rings have, and whether a loop copies at the top of its body, after the wait, or at its bottom.

    Copies go into the slot of the iteration before. At the top, its dots must be done when the iteration begins;
    at the bottom they may run on until then, but threads wait for each other twice, and with two slots what is copied
    is waited for at once.
    """

    num_slots: int
    copies_at_top: bool

    @property
    def distance(self) -> int:
        """How many iterations ahead copies are."""
        return self.num_slots - 1

    @staticmethod
    def of(loop: scf.ForOp, loads: Sequence[BufferedLoad], num_stages: int, config: GPUConfig) -> Schedule:
        """Dots by wgmma are in flight until those of the next iteration are issued: they need one slot for it, and
        get one less where shared memory has no room for all. Where threads wait for one in its iteration, two slots are
        filled at the top: 1.02 to 1.41 of the speed, with three 0.75 to 1.37. Where threads copy what the loop chooses
        by numbers that it loads, one slot less is taken for two CTAs in the place of one: a product of blocks that are
        there, 64x256, 388 to 346 us. Others are often loops over as many tiles as there are multiprocessors, which
        have no second CTA: stream-K 420 to 491.

        Others are done when their iteration ends. There one slot less is enough for as many CTAs as possible; with
        all there is more on its way from memory, unless a multiprocessor then has room for fewer CTAs.

        Where shared memory has certainly no room for one less either, there are as many as it has room for.
        """
        slot_bytes = sum(num_bytes_of(one.buffer.tile) for one in loads)
        least_beside = _other_bytes(loop, loads, _is_used_in)

        def may_fit(num_slots: int) -> bool:
            return config.resident_ctas(num_slots * slot_bytes + least_beside) > 0

        fewer = next(filter(may_fit, range(num_stages - 1, 2, -1)), 2)
        dots = [op for op in loop.body.block.ops if isinstance(op, WarpGroupDotOp)]
        if dots:
            ahead = {alloc.result for one in loads if one.is_read_in_place for alloc in allocs_of(one.load)}
            num_slots = num_stages if may_fit(num_stages) else fewer
            if num_slots > 2 and _gives_a_second_cta(loop, loads, num_slots, config):
                num_slots -= 1
            return Schedule(num_slots, num_slots == 2 and not all(spans_iterations(dot, ahead) for dot in dots))
        other_bytes = _other_bytes(loop, loads)

        def under_way(num_slots: int) -> int:
            """Slots that all CTAs of a multiprocessor have asked memory for."""
            return config.resident_ctas(num_slots * slot_bytes + other_bytes) * (num_slots - 1)

        is_more = under_way(num_stages) >= max(under_way(fewer), 1)
        return Schedule(num_stages if is_more else fewer, True)


class _Pipeline:
    """The rewrite of one loop. What is copied by cp.async and what by TMA, what dots read that `delay-dots`
    will delay and what others do, has a ring each.
    """

    def __init__(
        self,
        loop: scf.ForOp,
        loads: Sequence[BufferedLoad],
        schedule: Schedule,
        to_delay: Sequence[WarpGroupDotOp],
    ):
        self._loop, self._schedule, self._to_delay = loop, schedule, to_delay
        self._most_iterations = TilePolynomials().most_iterations(loop)
        self._before = Builder.before(loop)
        by_threads = [one for one in loads if isinstance(one.load, LoadOp)]
        by_tma = [one for one in loads if isinstance(one.load, DescriptorLoadOp)]
        self._rings = [*self._make_rings(by_threads), *self._make_rings(by_tma)]
        self._has_groups, self._has_barriers = bool(by_threads), bool(by_tma)

    def _make_rings(self, loads: Sequence[BufferedLoad]) -> list[RingAhead]:
        """One for what is read in its iteration, and one for what delayed dots read in the next."""
        parts = [[one for one in loads if is_read_by(one.load, self._to_delay) == lags] for lags in (False, True)]
        return [self._make_ring(part, lag) for lag, part in enumerate(parts) if part]

    def _make_ring(self, loads: Sequence[BufferedLoad], lag: int) -> RingAhead:
        """With no more slots than iterations that are ahead of the first, and those that it still reads."""
        num_slots, most = self._schedule.num_slots, self._most_iterations
        count = num_slots if most is None else min(num_slots, most + 1 + lag)
        return RingAhead(self._before, self._loop, loads, count, lag, most)

    def rewrite(self) -> None:
        if self._has_barriers:
            _publish_barriers(self._before)
        self._fill()
        self._rewrite_body()
        entering = [value for ring in self._rings for value in ring.enter(self._before)]
        loop = carry(self._loop, entering, [value for ring in self._rings for value in ring.following])
        self._leave(Builder.after(loop))

    def _fill(self) -> None:
        b, loop = self._before, self._loop
        iterations: list[Iteration] = []
        for stage in range(self._schedule.distance):
            iterations.append(Iteration.of(b, loop, stage))
            self._commit(b, [token for ring in self._rings for token in ring.fill(b, iterations)])
            b.location = loop.location

    def _commit(self, b: Builder, tokens: Sequence[SSAValue]) -> None:
        if self._has_groups:
            b.insert(AsyncCommitGroupOp(tokens))

    def _rewrite_body(self) -> None:
        """Waits, copies and uses."""
        loop = self._loop
        top, place = Builder.before(loop.body.block.first_op), self._place_of_copies()
        self._before.location = top.location = place.location = loop.location
        self._wait(top)
        self._commit(place, [token for ring in self._rings for token in ring.fill_ahead(self._before, place)])
        for ring in self._rings:
            ring.read()

    def _wait(self, top: Builder) -> None:
        if self._has_groups:
            top.insert(AsyncWaitOp(self._schedule.distance - 1))
        for ring in self._rings:
            ring.find_positions(top)
        for ring in self._rings:
            if ring.ring.full is not None:
                ring.wait(Builder.before(self._to_delay[0]) if ring.lag else top)

    def _place_of_copies(self) -> Builder:
        """With dots to delay, which will read the slots of the iteration before, as soon as all are issued."""
        block = self._loop.body.block
        if self._to_delay:
            return Builder(InsertPoint.after(first_dot(self._to_delay)))
        return Builder.before(block.first_op if self._schedule.copies_at_top else block.last_op)

    def _leave(self, b: Builder) -> None:
        if self._has_groups:
            b.insert(AsyncWaitOp(0))
        for ring in self._rings:
            ring.ring.close(b)


def _gives_a_second_cta(loop: scf.ForOp, loads: Sequence[BufferedLoad], num_slots: int, config: GPUConfig) -> bool:
    """Whether a multiprocessor has room for two CTAs, also for their registers, if rings that threads fill have a slot
    less, and otherwise for one; in a loop that is in no other, and loads addresses.
    """
    slot_bytes, other_bytes = sum(num_bytes_of(one.buffer.tile) for one in loads), _other_bytes(loop, loads)
    with_all, with_fewer = (config.resident_ctas(n * slot_bytes + other_bytes) for n in (num_slots, num_slots - 1))
    if with_all != 1 or with_fewer < 2 or not isinstance(loop.parent_op(), FuncOp):
        return False
    addresses = AddressLoads(loop, lambda load, distance: None)
    copied = [one.load for one in loads]
    if not all(isinstance(load, LoadOp) for load in copied) or not any(map(addresses.sources, copied)):
        return False
    held = registers_held(loop, TilePolynomials(), [load.result for load in copied])
    return held <= ROOM * config.machine.registers.count / (2 * config.num_threads)


def _other_bytes(
    loop: scf.ForOp,
    loads: Sequence[BufferedLoad],
    may_be_kept: Callable[[LocalAllocOp, scf.ForOp], bool] = lambda alloc, loop: True,
) -> int:
    """What else may be in shared memory then: other tiles of the function, and the largest that changes its layout
    in the loop.
    """
    loaded, allocs = {one.load.result for one in loads}, nested_ops(function_of(loop), LocalAllocOp)
    kept = (op.result.type.tile for op in allocs if loaded.isdisjoint(op.operands) and may_be_kept(op, loop))
    converted = (num_bytes_of(op.results[0].type) for op in nested_ops(loop, ConvertLayoutOp))
    return sum(map(num_bytes_of, kept)) + max(converted, default=0)


def _leave_without_room(loop: scf.ForOp, loads: list[BufferedLoad], config: GPUConfig) -> None:
    """Leave all loads where they are, if shared memory certainly has no room for two iterations of them, beside the
    largest of the other tiles that dots of the loop read there.
    """
    loaded, allocs = {one.load.result for one in loads}, nested_ops(function_of(loop), LocalAllocOp)
    others = (op.result.type.tile for op in allocs if loaded.isdisjoint(op.operands) and _is_used_in(op, loop))
    needed = 2 * sum(num_bytes_of(one.buffer.tile) for one in loads) + max(map(num_bytes_of, others), default=0)
    if needed > config.machine.shared.max_bytes:
        for one in loads:
            remark(one.load, Kind.NOT_AHEAD, "shared memory has no room for two iterations", bytes=needed)
        loads.clear()


def _is_used_in(alloc: LocalAllocOp, loop: scf.ForOp) -> bool:
    return any(loop.is_ancestor(use.operation) for use in alloc.result.uses)


def _publish_barriers(b: Builder) -> None:
    """All threads wait here, so that none has to in the loop. What used the memory before is over for TMA too."""
    b.insert(FenceMBarrierInitOp())
    b.insert(FenceAsyncSharedOp())
    b.insert(BarrierOp())


def _stay(loop: scf.ForOp | scf.WhileOp, reason: str, **values: int) -> None:
    for load in loads_of(loop):
        remark(load, Kind.NOT_AHEAD, reason, **values)


@dataclass(frozen=True)
class PipelineLoads(Optimisation):
    """Pipelines the loads of innermost loops."""

    name = "pipeline-loads"

    config: GPUConfig

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            self._pipeline_function(func)

    def _pipeline_function(self, func: FuncOp) -> None:
        """A loop that is built anew gives new values, which the next one may start with; so the analysis is made again,
        where it is needed.
        """
        info, is_among_dots = None, has_dots(func)
        for loop in nested_ops(func, scf.ForOp | scf.WhileOp):
            if FEW_ITERATIONS in loop.attributes:
                _stay(loop, "it is the version of the loop for a few iterations")
                continue
            if isinstance(loop, scf.WhileOp):
                _stay(loop, "nothing says before an iteration of a `while`, or of a loop with `break`, that it comes")
                continue
            if STAGES_HINT in loop.attributes or is_among_dots:
                info = info or AxisInfoAnalysis(func, deferred=True)
                is_rebuilt = self._pipeline(loop, info)
            else:
                is_rebuilt = self._prefetch(loop, func)
            if is_rebuilt:
                info = None

    def _pipeline(self, loop: scf.ForOp, info: AxisInfoAnalysis) -> bool:
        num_stages = stages_of(loop, self.config.num_stages)
        if num_stages < 2:
            _stay(loop, f"num_stages is {num_stages}, below 2", num_stages=num_stages)
            return False
        chosen = choose_loads(loop, info, STAGES_HINT in loop.attributes, self.config)
        _leave_without_room(loop, chosen.copied, self.config)
        schedule = Schedule.of(loop, chosen.copied, num_stages, self.config)
        loop = prefetch(loop, chosen.into_registers(schedule.distance))
        if chosen.copied:
            to_delay = dots_to_delay(loop, [one.load for one in chosen.copied if one.is_read_in_place], self.config)
            _Pipeline(loop, chosen.copied, schedule, to_delay).rewrite()
        return bool(chosen.copied or chosen.prefetched)

    def _prefetch(self, loop: scf.ForOp, func: FuncOp) -> bool:
        distances = choose_without_dots(loop, func, self.config)
        prefetch(loop, distances)
        return bool(distances)
