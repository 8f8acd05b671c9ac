"""Writes out loops of a few known iterations that load, where they are short: what they load goes out together.

    scf.for %k = 0 to 3 step 1 iter_args(%a = %0)         %x0 = tt.load %p
      %q = tt.addptr %p, %k * n                           %a1 = %0 + %x0
      %x = tt.load %q                              ->     %x1 = tt.load %p + n
      scf.yield %a + %x                                   %a2 = %a1 + %x1
                                                          ...

`for k in range(K)` over the taps of a filter, the elements of a window, the experts of a token. In a loop the loads of
an iteration would wait for those of the one before the last. Inner loops come first: a window of 3 x 3 is nine loads.
Loops of dots stay, which are pipelined, and those with any hint of `tl.range`; LLVM unrolls what does not load. What is
short goes by what one of a program's threads does.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.instruction_weights import weight_of
from deuteron.analysis.load_costs import load_cost
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.function import function_of
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.tt.reduce import ReduceOp
from deuteron.ir.types import is_tile, num_elements_of
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import replace
from deuteron.passes.tile.unroll_loops import copy_iteration, known_iterations

# Of all iterations: instructions of a thread, about what LLVM unrolls, and its registers for what is loaded.
MOST_INSTRUCTIONS, MOST_REGISTERS = 2000, 96
WITH_REGIONS = (scf.IfOp, ReduceOp)


def _is_short(loop: scf.ForOp, iterations: int, threads: int) -> bool:
    ops = [op for op in nested_ops(loop) if op is not loop]
    loads = [op for op in ops if isinstance(op, LoadOp)]
    if not loads or any(isinstance(op, DotOp) or (op.regions and not isinstance(op, WITH_REGIONS)) for op in ops):
        return False
    if iterations * sum(instructions_of(op, threads) for op in ops) > MOST_INSTRUCTIONS:
        return False
    info = AxisInfoAnalysis(function_of(loop))
    return iterations * sum(load_cost(load, info, threads).registers for load in loads) <= MOST_REGISTERS


def instructions_of(op: Operation, threads: int) -> float:
    """Of one of a program's threads."""
    elements = max([1, *(num_elements_of(operand.type) / threads for operand in op.operands if is_tile(operand.type))])
    return weight_of(op) * elements


def _write_out(loop: scf.ForOp, iterations: range) -> None:
    b = Builder.before(loop)
    carried = list(loop.iter_args)
    for index in iterations:
        carried = copy_iteration(b, loop, b.constant(index, loop.lb.type), carried)
    replace(loop, carried)


@dataclass(frozen=True)
class UnrollShortLoops(Optimisation):
    """Writes out short loops of loads, of programs of so many threads."""

    threads: int = 128

    name = "unroll-short-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [inner for inner in op.walk(region_first=True) if isinstance(inner, scf.ForOp)]:
            iterations = known_iterations(loop)
            has_hints = any(name.startswith("tt.") for name in loop.attributes)
            if iterations is not None and not has_hints and _is_short(loop, len(iterations), self.threads):
                _write_out(loop, iterations)
