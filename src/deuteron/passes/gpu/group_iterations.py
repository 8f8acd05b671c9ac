"""Makes one of some iterations of loops that only load and compute, a few bytes at a time.

    for k in range(0, n, 8):                            for k in range(0, n // 32 * 32, 32):
        total += tl.load(column + k * stride)               total += tl.load(column + k * stride)
                                              ->            ...
                                                            total += tl.load(column + (k + 24) * stride)
                                                        and the rest

A thread that loads 8 bytes in an iteration has these on their way, and those of the next one; the memory of a GPU wants
64. Columns of a matrix on an H200: 3,411 GB/s in the place of 2,951, 1,957 of 1,336. Loops that write stay, and those
with any hint of `tl.range`. Of known iterations none is left for the rest, which loads nothing ahead. Where one load
gives the address of another, fewer become one: such loops are often short, as over the experts of a token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.load_costs import load_cost
from deuteron.ir.effects import READ, effects_inside
from deuteron.ir.nested import nested_ops
from deuteron.ir.reached import reached
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.function import functions_in
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.types import is_tile
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.tile.unroll_loops import known_iterations, unroll
from deuteron.passes.tile.unroll_short_loops import instructions_of

# Of iterations that become one: instructions of a thread, its registers for what is loaded, and its accesses. Columns
# of fp32, 4x64 a program, 2,000 rows: 80 us with 8 registers, 52 with 16, on an H200. Of more than 16 accesses of
# single words with masks none is done ahead (loads_into_registers.py): with 32 sums of columns took 3 times as long.
MOST_INSTRUCTIONS, MOST_REGISTERS, MOST_ACCESSES = 400, 16, 16
# Where addresses are loaded in the loop: 4 experts of a token took 59 us as one iteration, 50 as two.
MOST_ACCESSES_AT_LOADED = 8


@dataclass(frozen=True)
class GroupIterations(Optimisation):
    """Makes one of some iterations of loops that load a few bytes at a time."""

    name = "group-iterations"

    config: GPUConfig

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            loops = [loop for loop in nested_ops(func, scf.ForOp) if _may_be_grouped(loop)]
            info = AxisInfoAnalysis(func) if loops else None
            groups = [_group(loop, info, self.config.num_threads) for loop in loops]
            for loop, group in zip(loops, groups, strict=True):
                if group > 1:
                    unroll(loop, group)


def _may_be_grouped(loop: scf.ForOp) -> bool:
    """Whether a loop only loads and computes, and says nothing of how it is to be compiled."""
    ops = list(loop.body.block.ops)
    has_hints = any(name.startswith("tt.") for name in loop.attributes)
    loads = any(isinstance(op, LoadOp) and is_tile(op.result.type) for op in ops)
    is_plain = not has_hints and not any(op.regions or isinstance(op, DotOp) for op in ops)
    return loads and is_plain and all(effect.kind is READ for _, effect in effects_inside(loop))


def _group(loop: scf.ForOp, info: AxisInfoAnalysis, threads: int) -> int:
    """How many iterations are to be one: a power of two, or so many that of known ones none is left."""
    ops, iterations = list(loop.body.block.ops), known_iterations(loop)
    loads = [op for op in ops if isinstance(op, LoadOp)]
    accesses, registers = map(sum, zip(*(load_cost(load, info, threads) for load in loads), strict=True))
    instructions = sum(instructions_of(op, threads) for op in ops)
    most_accesses = MOST_ACCESSES_AT_LOADED if any(map(_is_at_loaded, loads)) else MOST_ACCESSES
    most = int(min(MOST_REGISTERS / registers, most_accesses / accesses, MOST_INSTRUCTIONS / instructions))
    if iterations is None:
        return 1 << most.bit_length() - 1 if most else 1
    return next((group for group in range(most, 1, -1) if len(iterations) % group == 0), 1)


def _is_at_loaded(load: LoadOp) -> bool:
    """Whether the address or the mask of a load depends on what its loop loads."""
    loop = load.parent_op()

    def owner_in_loop(value: SSAValue) -> Operation | None:
        return value.owner if isinstance(value.owner, Operation) and loop.is_ancestor(value.owner) else None

    def operands(value: SSAValue) -> Sequence[SSAValue]:
        owner = owner_in_loop(value)
        return owner.operands if owner is not None else ()

    return any(isinstance(owner_in_loop(value), LoadOp) for value in reached(load.operands, operands))
