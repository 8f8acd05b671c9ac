"""Ping-pong: two warpgroups issue dots in turns, so that one multiplies while the other computes its next operand.

    "scf.for" ... ({                                  "ttng.pass_turn"() <{warpGroup = 1}>
      %s = warp_group_dot(%q, %k) async               "scf.for" ... ({
      %d = warp_group_dot(%p, %v, %acc) async           "ttng.take_turn"()
      %t = wait(%s) <{pendings = 1}>           ->       %s = warp_group_dot(%q, %k) async
      ... softmax                                       %d = warp_group_dot(%p, %v, %acc) async
    })                                                  "ttng.pass_turn"()
                                                        %t = wait(%s) <{pendings = 1}>
                                                        ... softmax
                                                      })
                                                      "ttng.take_turn"() <{warpGroup = 0}>

Both would issue their dots at the same time else, and compute at the same time, with the tensor cores idle. Done
where warps are specialised, so that little else makes the warpgroups wait for each other, and for loops in which a
dot has an operand in registers that the iteration before has computed (delay_dots.py) and tensor cores have
more to do than threads: where threads have, a turn only holds up the warpgroup that could go on. Not where
warpgroups wait for each other within a turn, which the other one cannot have: at a barrier before the second dot, say,
because what it reads was stored by threads.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from deuteron.analysis.shared_memory.shared_hazards import waits
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.reduce import ReduceOp
from deuteron.ir.ttg.barrier import BarrierOp
from deuteron.ir.ttg.inference import is_elementwise
from deuteron.ir.ttg.layout import MemDescType, layout_of
from deuteron.ir.ttg.warp_specialize import WarpSpecializeOp
from deuteron.ir.ttng.turns import PassTurnOp, TakeTurnOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp, WarpGroupDotWaitOp, tile_of
from deuteron.ir.types import bit_width_of, is_tile, num_elements_of, shape_of
from deuteron.layout.linear import REGISTER
from deuteron.layout.wgmma import WARPGROUP
from deuteron.machine.gpu import GPU, GPUConfig
from deuteron.passes.gpu.memory.allocate_shared import OFFSET
from deuteron.passes.optimisation import Optimisation

FIRST, SECOND = 0, 1
MIN_RATIO = 2  # of the cycles of dots to those in which threads issue instructions; 2.3 gains 14 %, 1.2 loses 8 %


@dataclass(frozen=True)
class OrderWarpGroups(Optimisation):
    """Places the turns of two warpgroups in ping-pong."""

    name = "order-warp-groups"

    config: GPUConfig

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.config.machine.wgmma is not None and self.config.num_warps == 2 * WARPGROUP:
            for inner in nested_ops(op):
                if isinstance(inner, WarpSpecializeOp):
                    _order(inner.default.block, self.config.machine)


def _order(region: Block, machine: GPU) -> None:
    loops = [op for op in region.walk() if isinstance(op, scf.ForOp) and _has_delayed_dot(op.body.block)]
    loops = [loop for loop in loops if _is_busy(loop.body.block, machine) and not _meet(_turn(loop.body.block))]
    if not loops:
        return
    Builder.before(region.first_op).insert(PassTurnOp(SECOND))
    Builder.before(region.last_op).insert(TakeTurnOp(FIRST))
    for loop in loops:
        _take_turns(_turn(loop.body.block))


def _turn(block: Block) -> list[Operation]:
    """The ops from the first dot in flight to the last."""
    dots, ops = _dots_in_flight(block), list(block.ops)
    return ops[ops.index(dots[0]) : ops.index(dots[-1]) + 1]


def _meet(turn: list[Operation]) -> bool:
    """Whether warpgroups wait for each other within a turn; ops with regions may."""
    return any(isinstance(op, BarrierOp) or op.regions or (OFFSET in op.attributes and waits(op)) for op in turn)


def _has_delayed_dot(block: Block) -> bool:
    """Whether several dots are issued together, one of them with an operand that the loop carries in registers."""
    dots = _dots_in_flight(block)
    carried = (isinstance(dot.a, BlockArgument) and not isinstance(dot.a.type, MemDescType) for dot in dots)
    return len(dots) > 1 and any(carried)


def _dots_in_flight(block: Block) -> list[WarpGroupDotOp]:
    """The asynchronous dots up to the first wait, in order."""
    dots: list[WarpGroupDotOp] = []
    for op in block.ops:
        if isinstance(op, WarpGroupDotWaitOp):
            return dots
        if isinstance(op, WarpGroupDotOp) and op.is_async.value.data:
            dots.append(op)
    return dots


def _is_busy(block: Block, machine: GPU) -> bool:
    """Whether tensor cores are busy with the dots of all warpgroups for longer than threads with the rest."""
    flop_bits = sum(map(_flop_bits, _dots_in_flight(block)))
    return flop_bits / machine.wgmma.flop_bits >= MIN_RATIO * _issue_cycles(block, machine)


def _flop_bits(dot: WarpGroupDotOp) -> int:
    """The operations of a dot, times the bits of an operand's element."""
    operand = tile_of(dot.b.type)
    return 2 * num_elements_of(dot.result.type) * shape_of(operand)[0] * bit_width_of(operand)


def _issue_cycles(block: Block, machine: GPU) -> int:
    """How many instructions a scheduler issues, of the warps that share it, for what threads compute."""
    registers = sum(layout_of(_computed(op).type).in_size(REGISTER) for op in block.ops if _computed(op) is not None)
    return registers * 2 * WARPGROUP // machine.schedulers


def _computed(op: Operation) -> SSAValue | None:
    """A tile with as many elements as an op has to do with; None where it takes no instructions."""
    if isinstance(op, ReduceOp):
        return op.srcs[0]
    is_instruction = is_elementwise(op) and not isinstance(op, arith.ConstantOp)
    return op.results[0] if is_instruction and is_tile(op.results[0].type) else None


def _take_turns(turn: list[Operation]) -> None:
    Builder.before(turn[0]).insert(TakeTurnOp())
    Builder.after(turn[-1]).insert(PassTurnOp())
