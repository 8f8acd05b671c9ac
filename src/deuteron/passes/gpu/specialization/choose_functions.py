"""Chooses the functions whose loads of dots warps of their own are to copy, and marks them.

    "tt.func"() ... {"ttg.warp_specialize"}

Done where `tl.range(warp_specialize=True)` asks for it; where dots of two warpgroups overlap with what
threads compute; where TMA copies for loops that are in loops, and a multiprocessor has room for one such program, or
`tl.range(flatten=True)` says that the rounds are to follow each other without a gap; where the CTAs of a cluster load
together. Not in functions with barriers, atomics that order accesses, or volatile loads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, UnitAttr

from deuteron.ir.effects import GLOBAL, ORDER, ORDER_OWN, first_in_order
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.ttg.shared import LocalLoadOp
from deuteron.ir.ttg.warp_specialize import SPECIALIZED
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.ir.types import num_elements_of
from deuteron.layout.wgmma import WARPGROUP
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.pipelining.chained_dots import dots_to_delay
from deuteron.passes.gpu.rings.buffered_loads import Load
from deuteron.passes.gpu.specialization.bundle_loads import RingPlan, loads_besides, loop_around, plan_rings
from deuteron.passes.gpu.specialization.partition_warps import COPYING_WARPS, dot_registers
from deuteron.passes.gpu.specialization.plan_slots import plan_specialization
from deuteron.passes.optimisation import Optimisation

HINTS = SPECIALIZE, FLATTEN = "tt.warp_specialize", "tt.flatten"
# Of a thread besides those of dots, where the same threads copy: an estimate, not measured.
OTHER_REGISTERS = 48


@dataclass(frozen=True)
class ChooseSpecialized(Optimisation):
    """Marks the functions that `specialize-warps` is to rewrite."""

    name = "choose-specialized"

    config: GPUConfig

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            if self._is_possible() and self._is_chosen(func):
                func.attributes[SPECIALIZED] = UnitAttr()

    def _is_possible(self) -> bool:
        """Whether the machine has what the rewrite emits, and warps to spare; only dots by wgmma gain."""
        machine, num_warps = self.config.machine, self.config.num_warps
        has_all = machine.wgmma is not None and machine.has_mbarriers and machine.register_move_unit > 0
        return has_all and num_warps % WARPGROUP == 0 and num_warps + COPYING_WARPS <= machine.max_warps

    def _is_chosen(self, func: FuncOp) -> bool:
        hints = {name for op in nested_ops(func) for name in HINTS if name in op.attributes}
        if not (hints or self.config.num_ctas > 1 or self.config.num_warps == 2 * WARPGROUP) or not _is_in_order(func):
            return False
        plans = plan_rings(func, self.config.machine)
        is_asked_for = SPECIALIZE in hints or (FLATTEN in hints and all(map(_goes_on, plans)))
        is_wanted = is_asked_for or any(plan.filling_ctas(self.config.num_ctas) > 1 for plan in plans)
        is_possible = plan_specialization(func, plans, self.config) is not None
        return is_possible and (is_wanted or self._pays(func, plans))

    def _pays(self, func: FuncOp, plans: Sequence[RingPlan]) -> bool:
        """Where dots of two warpgroups overlap with what threads compute, and a multiprocessor has the registers
        for one such program only: two programs overlap by themselves. Where loops are in loops and TMA copies, too: the
        blocks of the next round come while this one is stored. What operands are computed of besides, threads may load
        for themselves, where that is one element each: scales. Other dots alone do not become faster
        (benchmarks/results/2026-11-20-specialised-warps.md).
        """
        for_two = self.config.machine.registers.count // (2 * self.config.num_threads)
        is_alone = dot_registers(func.body.block) + OTHER_REGISTERS > for_two
        computes, besides = _computes_operands(plans), loads_besides(plans)
        if computes:
            besides = [load for load in besides if num_elements_of(load.result.type) > self.config.num_threads]
        overlaps = computes or _has_dots_to_delay(plans, self.config)
        return (overlaps or all(map(_goes_on, plans))) and is_alone and not besides


def _computes_operands(plans: Sequence[RingPlan]) -> bool:
    """Whether threads compute operands, in registers, of what a loop reads from rings."""
    readers = {reader for plan in plans for bundle in plan.bundles for reader in bundle.readers}
    dots = [reader for reader in readers if isinstance(reader, WarpGroupDotOp)]
    steps = any(isinstance(dot.c.owner, WarpGroupDotOp) and dot.c.owner in readers for dot in dots)
    return steps and any(isinstance(reader, LocalLoadOp) for reader in readers)


def _has_dots_to_delay(plans: Sequence[RingPlan], config: GPUConfig) -> bool:
    """Whether a loop has dots that may be delayed by an iteration, given the loads that go through rings."""
    loops: dict[scf.ForOp, list[Load]] = {}
    for bundle in (bundle for plan in plans for bundle in plan.bundles):
        if isinstance(bundle.block.parent_op(), scf.ForOp):
            loops.setdefault(bundle.block.parent_op(), []).extend(one.load for one in bundle.loads)
    return any(dots_to_delay(loop, loads, config) for loop, loads in loops.items())


def _goes_on(plan: RingPlan) -> bool:
    """Whether TMA fills a ring, and again after each of its loops."""
    loops = [bundle.loop for bundle in plan.bundles]
    return plan.is_filled_by_tma and all(loop is not None and loop_around(loop) is not None for loop in loops)


def _is_in_order(func: FuncOp) -> bool:
    """Whether no op orders accesses of global memory: copies come before what comes before them."""
    return first_in_order(func, GLOBAL, (ORDER, ORDER_OWN)) is None
