"""Gives what products read to warps of their own: these copy it into ring buffers, as far ahead as there is room.

                                     %ring, %full, %empty = "ttg.local_alloc"()
                                     "ttg.warp_specialize"() ({
    "scf.for" ... ({                   "scf.for" ... iter_args(%index = 0, %phase = 0) ({
      %a = "tt.load"(%p)                 "ttng.wait_barrier"(%full[%index], %phase)
      %m = "ttg.local_alloc"(%a)         %m = "ttg.memdesc_index"(%ring, %index)
      ... a product reads %m      ->     ... a product reads %m
      ... %p advances                    "ttng.arrive_barrier"(%empty[%index])
    })                                   "scf.yield"(next %index, next %phase)
                                       })
                                     }, {
                                       "scf.for" ... iter_args(%p, %index = 0, %phase = 0) ({
                                         "ttng.wait_barrier"(%empty[%index], 1 - %phase)
                                         "ttg.async_copy_global_to_local"(%p, %ring[%index])
                                         "ttng.async_copy_mbarrier_arrive"(%full[%index])
                                         "scf.yield"(%p advanced, next %index, next %phase)
                                       })
                                     })

The partition is the slice of the function that its loads need (slice_loads.py); which loads, and the rings, says
bundle_loads.py. Place and phase of a ring go on from loop to loop, so that the first tiles of the next loop, or of the
next round of an outer one, are copied while this one ends. Buffers are given back behind what reads them;
`release-buffers` then moves that behind the wait for a product in flight.

Done on sm_90 where `tl.range(warp_specialize=True)` asks for it; where products of two warpgroups overlap with what
threads compute; where TMA copies for loops that are in loops, and a multiprocessor has room for one such program, or
`tl.range(flatten=True)` says that the rounds are to follow each other without a gap; where the blocks of a cluster load
together. Not in functions with barriers, atomics that order accesses, or
volatile loads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from deuteron.analysis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.shared_liveness import shared_buffers
from deuteron.ir.effects import GLOBAL, ORDER, ORDER_OWN, first_in_order
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.layout.wgmma import WARPGROUP
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.memory.allocate_shared import bytes_of
from deuteron.passes.gpu.pipelining.pipeline_products import delay_products, is_read_by, products_to_delay
from deuteron.passes.gpu.rings.buffered_loads import Load
from deuteron.passes.gpu.specialization.bundle_loads import RingPlan, loads_besides, loop_around, plan_rings
from deuteron.passes.gpu.specialization.partition_warps import COPYING_WARPS, Specialization, product_registers
from deuteron.passes.gpu.specialization.slice_loads import LoadSlice
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.tile.eliminate_dead_code import EliminateDeadCode

HINTS = SPECIALIZE, FLATTEN = "tt.warp_specialize", "tt.flatten"
BARRIER_ROOM = 1024
OTHER_REGISTERS = 48  # of a thread, where the same threads copy

Delayed = tuple[list[WarpGroupDotOp], list[Load]]


@dataclass(frozen=True)
class SpecializeWarps(Optimisation):
    """Gives the loads of products to four more warps."""

    name = "specialize-warps"

    config: GPUConfig

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self._is_possible():
            changed = [self._specialize(func) for func in op.ops if isinstance(func, FuncOp)]
            if any(changed):
                # The addresses, which the default region does not need any more.
                EliminateDeadCode().apply(ctx, op)

    def _is_possible(self) -> bool:
        """Whether the machine has what the rewrite emits, and warps to spare; only products of wgmma gain."""
        machine, num_warps = self.config.machine, self.config.num_warps
        has_all = machine.wgmma is not None and machine.has_mbarriers and machine.register_move_unit > 0
        return has_all and num_warps % WARPGROUP == 0 and num_warps + COPYING_WARPS <= machine.max_warps

    def _specialize(self, func: FuncOp) -> bool:
        hints = {name for op in func.walk() for name in HINTS if name in op.attributes}
        if not (hints or self.config.num_ctas > 1 or self.config.num_warps == 2 * WARPGROUP) or not _is_in_order(func):
            return False
        plans = plan_rings(func, AxisInfoAnalysis(func), self.config.machine)
        is_asked_for = SPECIALIZE in hints or (FLATTEN in hints and all(map(_goes_on, plans)))
        is_wanted = is_asked_for or any(plan.filling_ctas(self.config.num_ctas) > 1 for plan in plans)
        delayed = _products_to_delay(plans, self.config)
        if not self._plan(func, plans) or not (is_wanted or self._pays(func, plans, delayed)):
            return False
        for loop, (products, loads) in delayed.items():
            delay_products(loop, products, loads)
        if delayed:
            plans = plan_rings(func, AxisInfoAnalysis(func), self.config.machine)
        found = self._plan(func, plans)
        if found:
            Specialization(func, *found, self.config).rewrite()
        return True

    def _pays(self, func: FuncOp, plans: Sequence[RingPlan], delayed: dict[scf.ForOp, Delayed]) -> bool:
        """Where products of two warpgroups overlap with what threads compute, and a multiprocessor has the registers
        for one such program only: two programs overlap by themselves. Where loops are in loops and TMA copies, too: the
        blocks of the next round come while this one is stored. Other products alone do not become faster
        (benchmarks/results/2026-11-20-specialised-warps.md).
        """
        for_two = self.config.machine.registers.count // (2 * self.config.num_threads)
        is_alone = product_registers(func.body.block) + OTHER_REGISTERS > for_two
        return (bool(delayed) or all(map(_goes_on, plans))) and is_alone and not loads_besides(plans)

    def _plan(self, func: FuncOp, plans: Sequence[RingPlan]) -> tuple[dict[RingPlan, int], LoadSlice] | None:
        """How many slots each ring gets, and what computes the addresses; None where it cannot be done."""
        slots = self._slots(func, plans)
        part = LoadSlice(func, [one.load for plan in plans for one in plan.loads])
        return (slots, part) if slots and part.is_possible else None

    def _slots(self, func: FuncOp, plans: Sequence[RingPlan]) -> dict[RingPlan, int]:
        """How many slots each ring has: as many stages as asked for, or as fit; none where not even two do."""
        wanted = {plan: self._stages(plan) for plan in plans}
        room = self.config.machine.shared.max_bytes - BARRIER_ROOM - _bytes_beside(func, plans)
        for most in range(max(wanted.values(), default=0), 1, -1):
            slots = {plan: min(stages, most) * plan.bundles_at_once for plan, stages in wanted.items()}
            if sum(count * plan.slot_bytes for plan, count in slots.items()) <= room:
                return slots if min(wanted.values()) > 1 else {}
        return {}

    def _stages(self, plan: RingPlan) -> int:
        hints = [bundle.loop.attributes.get("tt.num_stages") for bundle in plan.bundles if bundle.loop is not None]
        return max(self.config.num_stages if hint is None else hint.value.data for hint in hints)


def _products_to_delay(plans: Sequence[RingPlan], config: GPUConfig) -> dict[scf.ForOp, Delayed]:
    """In each loop, the products to delay by an iteration, with the loads that they read."""
    loops: dict[scf.ForOp, list[Load]] = {}
    for bundle in (bundle for plan in plans for bundle in plan.bundles):
        if isinstance(bundle.block.parent_op(), scf.ForOp):
            loops.setdefault(bundle.block.parent_op(), []).extend(one.load for one in bundle.loads)
    found = {loop: (products_to_delay(loop, loads, config), loads) for loop, loads in loops.items()}
    return {
        loop: (products, [load for load in loads if is_read_by(load, products)])
        for loop, (products, loads) in found.items()
        if products
    }


def _goes_on(plan: RingPlan) -> bool:
    """Whether TMA fills a ring, and again after each of its loops."""
    loops = [bundle.loop for bundle in plan.bundles]
    return plan.is_filled_by_tma and all(loop is not None and loop_around(loop) is not None for loop in loops)


def _is_in_order(func: FuncOp) -> bool:
    """Whether no op orders accesses of global memory: copies come before what comes before them."""
    return first_in_order(func, GLOBAL, (ORDER, ORDER_OWN)) is None


def _bytes_beside(func: FuncOp, plans: Sequence[RingPlan]) -> int:
    """The shared memory that is in use while the rings are: what is needed behind them may take their place."""
    replaced = {use.operation for plan in plans for one in plan.loads for use in one.load.result.uses}
    outer = {_outermost(bundle.first_reader) for plan in plans for bundle in plan.bundles}
    positions = {inner: number for number, op in enumerate(func.body.block.ops) for inner in op.walk()}
    last = max((positions[op] for op in outer), default=-1)
    buffers = [buffer for buffer in shared_buffers(func) if positions[buffer.op] <= last and buffer.op not in replaced]
    return bytes_of(buffers)


def _outermost(op: Operation) -> Operation:
    """The op of the function's own block that an op is in."""
    while not isinstance(op.parent_op(), FuncOp):
        op = op.parent_op()
    return op
