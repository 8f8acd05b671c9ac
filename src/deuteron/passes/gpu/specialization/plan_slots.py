"""How many slots each ring gets: as many stages as asked for, or as fit beside the shared memory that is in use anyway.

plan_specialization(func, plan_rings(func, ...), config)    ({RingPlan((a, b)): 3}, the slice that its loads need)
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron.analysis.shared_memory.shared_liveness import shared_buffers
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.memory.allocate_shared import bytes_of
from deuteron.passes.gpu.specialization.bundle_loads import RingPlan
from deuteron.passes.gpu.specialization.slice_loads import LoadSlice

# Bytes of shared memory that are kept for the mbarriers of the rings and for alignment: an estimate, not measured.
BARRIER_ROOM = 1024


def plan_specialization(
    func: FuncOp, plans: Sequence[RingPlan], config: GPUConfig
) -> tuple[dict[RingPlan, int], LoadSlice] | None:
    """How many slots each ring gets, and what computes the addresses; None where it cannot be done."""
    slots = _slots(func, plans, config)
    part = LoadSlice(func, [one.load for plan in plans for one in plan.loads])
    return (slots, part) if slots and part.is_possible else None


def _slots(func: FuncOp, plans: Sequence[RingPlan], config: GPUConfig) -> dict[RingPlan, int]:
    """None where not even two stages fit."""
    wanted = {plan: _stages(plan, config) for plan in plans}
    room = config.machine.shared.max_bytes - BARRIER_ROOM - _bytes_beside(func, plans)
    for most in range(max(wanted.values(), default=0), 1, -1):
        slots = {plan: min(stages, most) * plan.bundles_at_once for plan, stages in wanted.items()}
        if sum(count * plan.slot_bytes for plan, count in slots.items()) <= room:
            return slots if min(wanted.values()) > 1 else {}
    return {}


def _stages(plan: RingPlan, config: GPUConfig) -> int:
    hints = [bundle.loop.attributes.get("tt.num_stages") for bundle in plan.bundles if bundle.loop is not None]
    return max(config.num_stages if hint is None else hint.value.data for hint in hints)


def _bytes_beside(func: FuncOp, plans: Sequence[RingPlan]) -> int:
    """The shared memory that is in use while the rings are: what is needed after them may take their place."""
    replaced = {use.operation for plan in plans for one in plan.loads for use in one.load.result.uses}
    positions = {inner: number for number, op in enumerate(func.body.block.ops) for inner in nested_ops(op)}
    last = max((positions[bundle.first_reader] for plan in plans for bundle in plan.bundles), default=-1)
    buffers = [buffer for buffer in shared_buffers(func) if positions[buffer.op] <= last and buffer.op not in replaced]
    return bytes_of(buffers)
