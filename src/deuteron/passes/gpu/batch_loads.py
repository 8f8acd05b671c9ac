"""Puts loads that need nothing of each other side by side, in front of what waits for the first of them.

    %x0 = tt.load %p0                       %x0 = tt.load %p0
    %m0 = arith.maximumf %m, %x0            %p1 = tt.addptr %p0, %n
    %p1 = tt.addptr %p0, %n           ->    %x1 = tt.load %p1
    %x1 = tt.load %p1                       %m0 = arith.maximumf %m, %x0
    %m1 = arith.maximumf %m0, %x1           %m1 = arith.maximumf %m0, %x1

ptxas moves loads up itself, but keeps near to the order that it is given: of the nine taps of a window three went out
together. A batch has as many as fit into some registers, and ends where anything is written or waited for, at loops,
branches and reductions. Loads of single words stay, and so do kernels with dots, whose loads are pipelined.

Of many loads ptxas puts off those whose results would fill registers and predicates beside what it computes of the
first: of 24 wide ones six were under way. Outside of loops, the last of those with which a block begins says that what
follows stays behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Block, Operation

from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.load_costs import LoadCost, load_cost
from deuteron.ir.around import loops_around
from deuteron.ir.effects import is_pure, is_removable
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.function import functions_in
from deuteron.ir.tt.memory import KEEPS_ORDER, LoadOp
from deuteron.ir.types import is_tile, shape_of
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.optimisation import Optimisation

# Of the registers that a thread may have, for what a batch loads: 95, and 48 with 16 warps. With 32 windows of 5 by 5
# taps took 90.9 us, as a part of the taps waited for the rest; 83.8 without batches, and 77.1 with 96.
ROOM = 3 / 8
# Registers that loads fill, from which on what follows stays behind them: penalties of 16 and 32 logits in a thread,
# with 28 and 56, took 95.8 us in the place of 108.2, 96.5 of 141.6. Beside single words, and smaller tiles that are
# exchanged, it loses: medians of nine taps 45.2 of 39.3, causal convolutions 57.0 of 48.1, Adam by tables 75.6 of 60.8.
LEAST_KEPT = 24


@dataclass(frozen=True)
class BatchLoads(Optimisation):
    """Puts loads that need nothing of each other side by side."""

    name = "batch-loads"

    config: GPUConfig

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            if len(nested_ops(func, LoadOp)) > 1 and not nested_ops(func, DotOp):
                info = AxisInfoAnalysis(func)
                for block in [block for one in func.walk() for region in one.regions for block in region.blocks]:
                    _batch(block, info, self.config)
                    _keep(block, info, self.config)


def _batch(block: Block, info: AxisInfoAnalysis, config: GPUConfig) -> None:
    """Move each load behind the one before it, until one waits for that, or the registers are filled."""
    last, room = None, 0.0  # of a batch: its last load, and the registers that are left
    for op in list(block.ops):
        if _ends_batches(op):
            last = None
        elif isinstance(op, LoadOp) and is_tile(op.result.type):
            cost = load_cost(op, info, config.num_threads)
            if _is_of_single_words(cost):
                continue
            addresses = _made_after(last, op) if last is not None and cost.registers <= room else None
            if addresses is None:
                room = ROOM * config.registers_per_thread
            else:
                _move_behind(last, [*addresses, op])
            last, room = op, room - cost.registers


def _ends_batches(op: Operation) -> bool:
    return bool(op.regions) or not is_removable(op)


def _keep(block: Block, info: AxisInfoAnalysis, config: GPUConfig) -> None:
    """Let what follows many loads stay behind the last of them, where all are wide and of one shape: those with which a
    block begins, for later ones come while other warps compute (weights and biases of layer norm lost 4 %).
    """
    begin = takewhile(lambda op: isinstance(op, LoadOp) or not _ends_batches(op), block.ops)
    _keep_behind([op for op in begin if isinstance(op, LoadOp)], info, config)


def _keep_behind(loads: list[LoadOp], info: AxisInfoAnalysis, config: GPUConfig) -> None:
    if not loads or any(loops_around(loads[-1])):
        return
    costs = [load_cost(load, info, config.num_threads) for load in loads]
    are_alike = len({shape_of(load.result.type) for load in loads}) == 1 and not any(map(_is_of_single_words, costs))
    if are_alike and LEAST_KEPT <= sum(cost.registers for cost in costs) <= ROOM * config.registers_per_thread:
        loads[-1].attributes[KEEPS_ORDER] = UnitAttr()


def _is_of_single_words(cost: LoadCost) -> bool:
    """Whether a thread loads several words one by one, from an address of its own each, and under a mask: it has enough
    under way. In batches sobel, where a thread has four pixels, and pooling of three dimensions took 1.07 of the time.
    """
    return cost.accesses > 1 and cost.registers <= cost.accesses


def _made_after(last: Operation, load: LoadOp) -> list[Operation] | None:
    """What is computed after an op for a load, in order; None where it takes its result, or more than arithmetic."""
    needed, found, op = set(load.operands), [], load.prev_op
    while op is not last:
        if not needed.isdisjoint(op.results):
            if not is_pure(op) or op.regions:
                return None
            needed.update(op.operands)
            found.append(op)
        op = op.prev_op
    return found[::-1] if needed.isdisjoint(last.results) else None


def _move_behind(place: Operation, ops: list[Operation]) -> None:
    for op in ops:
        op.detach()
        place.parent.insert_op_after(op, place)
        place = op
