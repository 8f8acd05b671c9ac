"""Writes out loops of a few known iterations that load, where they are short: what they load goes out together. Of
others that load a few bytes at a time it asks for some iterations in one (`unroll-loops`).

    scf.for %k = 0 to 3 step 1 iter_args(%a = %0)         %x0 = tt.load %p
      %q = tt.addptr %p, %k * n                           %a1 = %0 + %x0
      %x = tt.load %q                              ->     %x1 = tt.load %p + n
      scf.yield %a + %x                                   %a2 = %a1 + %x1
                                                          ...

`for k in range(K)` over the taps of a filter, the elements of a window, the experts of a token. In a loop the loads of
an iteration would wait for those of the one before the last. Inner loops come first: a window of 3 x 3 is nine loads.
Loops of dots stay, which are pipelined, and those with any hint of `tl.range`; LLVM unrolls what does not load. What is
short goes by what one of a program's threads does. A thread that loads 8 bytes in an iteration has these on their way,
and those of the next one; the memory of a GPU wants 64.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation

from deuteron.analysis.instruction_weights import weight_of
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.tt.reduce import ReduceOp
from deuteron.ir.types import byte_width_of, i32, is_tile, num_elements_of, pointee_of
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import replace
from deuteron.passes.tile.unroll_loops import HINT, copy_iteration, known_iterations

# Of all iterations: instructions of a thread, about what LLVM unrolls, and its registers for what is loaded.
MOST_INSTRUCTIONS, MOST_REGISTERS = 2000, 96
REGISTER_BYTES = 4
# The same of iterations that become one, and how many may.
MOST_GROUPED_INSTRUCTIONS, MOST_GROUPED_REGISTERS, GROUPS = 400, 8, (8, 4, 2)
WITH_REGIONS = (scf.IfOp, ReduceOp)


def _is_short(loop: scf.ForOp, iterations: int, threads: int) -> bool:
    ops = [op for op in nested_ops(loop) if op is not loop]
    loads = [op for op in ops if isinstance(op, LoadOp)]
    if not loads or any(isinstance(op, DotOp) or (op.regions and not isinstance(op, WITH_REGIONS)) for op in ops):
        return False
    registers = sum(_registers(load, threads) for load in loads)
    return (
        iterations * sum(_instructions(op, threads) for op in ops) <= MOST_INSTRUCTIONS
        and iterations * registers <= MOST_REGISTERS
    )


def _grouped(loop: scf.ForOp, iterations: int | None, threads: int) -> int:
    """How many iterations are to be one, a power of two that leaves none of known ones."""
    ops = list(loop.body.block.ops)
    loads = [op for op in ops if isinstance(op, LoadOp)]
    if not any(is_tile(load.result.type) for load in loads) or any(op.regions or isinstance(op, DotOp) for op in ops):
        return 1
    instructions = sum(_instructions(op, threads) for op in ops)
    registers = sum(_registers(load, threads) for load in loads)
    most = min(MOST_GROUPED_REGISTERS / registers, MOST_GROUPED_INSTRUCTIONS / instructions)
    return next((factor for factor in GROUPS if factor <= most and (iterations or 0) % factor == 0), 1)


def _registers(load: LoadOp, threads: int) -> float:
    """Of a thread, for what is loaded."""
    type = load.ptr.type
    return byte_width_of(pointee_of(type)) / REGISTER_BYTES * (num_elements_of(type) / threads if is_tile(type) else 1)


def _instructions(op: Operation, threads: int) -> float:
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
    """Writes out short loops of loads, and asks for groups of iterations, of programs of so many threads."""

    threads: int = 128

    name = "unroll-short-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [inner for inner in op.walk(region_first=True) if isinstance(inner, scf.ForOp)]:
            if not any(name.startswith("tt.") for name in loop.attributes):
                self._unroll(loop, known_iterations(loop))

    def _unroll(self, loop: scf.ForOp, iterations: range | None) -> None:
        count = len(iterations) if iterations else None
        if count and _is_short(loop, count, self.threads):
            _write_out(loop, iterations)
        elif (group := _grouped(loop, count, self.threads)) > 1:
            loop.attributes[HINT] = IntegerAttr(group, i32)
