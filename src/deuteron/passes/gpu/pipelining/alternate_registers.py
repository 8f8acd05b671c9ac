"""Writes out two iterations of a loop that loads one iteration ahead into registers, so that these alternate.

    ^bb0(%k: i32, %x: tile):                        ^bb0(%k: i32, %x: tile):
      %next = "tt.load"(%q)                           %next = "tt.load"(%q)
      %sum1 = %sum + %x                    ->         %sum1 = %sum + %x
      "scf.yield"(%next, %sum1)                       %next2 = "tt.load"(%q2)
                                                      %sum2 = select(%k + step < %end, %sum1 + %next, %sum1)
                                                      "scf.yield"(%next2, %sum2)

What an iteration loads is in registers of its own; those of %x become those of %next at its end, by moves that wait for
memory. So an iteration waited for its loads before it began the next ones: half as much was under way. Of two
iterations the second loads into the registers that the first has read. Where it does not come, it loads and stores
nothing, and what is read after the loop stays; a branch would keep the loads of both apart. A loop whose threads
exchange anything waits anyway. Where much is loaded at once it pays nothing, and takes registers.

ptxas keeps few registers in use where each load fills four: it puts off loads until it has added up what these are to
take the place of, and then waits for both. Where all loads do, the last one of each iteration says that what follows
stays behind. A loop that is not written out has no version for a few iterations either (version_loops.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.loop_registers import registers_of
from deuteron.ir.arith import AHEAD, SelectOp, constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import functions_in
from deuteron.ir.tt.memory import KEEPS_ORDER, CacheModifier, EvictionPolicy, LoadOp, StoreOp
from deuteron.ir.types import bit_width_of, is_tile
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.carried_values import is_innermost
from deuteron.passes.gpu.pipelining.loads_into_registers import bytes_of_accesses, is_local, num_narrow
from deuteron.passes.gpu.pipelining.prefetch_loads import masked_loads
from deuteron.passes.gpu.pipelining.run_ahead import lead_of
from deuteron.passes.gpu.rings.buffered_loads import has_dots, masked
from deuteron.passes.gpu.version_loops import SEVERAL_ITERATIONS, drop_versions
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import Values
from deuteron.passes.tile.unroll_loops import known_iterations
from deuteron.passes.tile.unroll_short_loops import instructions_of

# Of an iteration, in a thread. Bytes and halves that are loaded one by one have a register each only until they are
# packed: with 16 of them 53 registers became 121, and a row of one iteration took 66.8 us in the place of 48.9.
MOST_INSTRUCTIONS, MOST_REGISTERS, MOST_PARTS, PART_BYTES = 400, 16, 8, 2
# Of each load, where iterations are kept apart: sums of columns 16x32, 32x32, 8x64 took 37 us in the place of 50, 38 of
# 67, 55 of 80. With 8 bytes that gains nothing, and takes registers: sums of bf16 31 of 24. Where single numbers are
# loaded as well, as the rows of a bag of embeddings, these are waited for between: 81.3 us of 68.8.
WIDE_BYTES = 16


@dataclass(frozen=True)
class AlternateRegisters(Optimisation):
    """Writes out two iterations of loops that load ahead into registers."""

    name = "alternate-registers"

    config: GPUConfig

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            loops = [] if has_dots(func) else [loop for loop in nested_ops(func, scf.ForOp) if is_innermost(loop)]
            for loop in [loop for loop in loops if _is_simple(loop, self.config.num_threads)]:
                info = AxisInfoAnalysis(func)
                if _loads_little(loop, info):
                    _keep_order(loop, info)
                    _alternate(loop)
            drop_versions(func)


def _is_simple(loop: scf.ForOp, threads: int) -> bool:
    """Whether a loop with a known step is short, its threads exchange nothing, and all it loads is ahead."""
    step, ops = constant_value(loop.step), list(loop.body.block.ops)[:-1]
    if step is None or not 0 < 2 * step < 1 << bit_width_of(loop.step.type) - 1:
        return False
    loads = [op for op in ops if isinstance(op, LoadOp)]
    is_short = sum(instructions_of(op, threads) for op in ops) <= MOST_INSTRUCTIONS
    return is_short and bool(loads) and all(AHEAD in load.attributes for load in loads) and all(map(is_local, ops))


def _loads_little(loop: scf.ForOp, info: AxisInfoAnalysis) -> bool:
    loads = [op for op in loop.body.block.ops if isinstance(op, LoadOp)]
    registers = sum(registers_of(load.result.type) for load in loads)
    parts = sum(num_narrow(load, info, PART_BYTES) for load in _tiles_loaded(loop))
    return registers <= MOST_REGISTERS and parts <= MOST_PARTS


def _keep_order(loop: scf.ForOp, info: AxisInfoAnalysis) -> None:
    """Of an iteration, where every load is wide, what comes after the last one stays behind it."""
    loads = [op for op in loop.body.block.ops if isinstance(op, LoadOp)]
    if all(is_tile(load.result.type) and bytes_of_accesses(load, info) >= WIDE_BYTES for load in loads):
        loads[-1].attributes[KEEPS_ORDER] = UnitAttr()


def _tiles_loaded(loop: scf.ForOp) -> list[LoadOp]:
    return [op for op in loop.body.block.ops if isinstance(op, LoadOp) and is_tile(op.result.type)]


def _alternate(loop: scf.ForOp) -> None:
    loop.attributes[SEVERAL_ITERATIONS] = UnitAttr()
    ops, yielded = list(loop.body.block.ops)[:-1], loop.body.block.last_op
    before, end = Builder.before(loop), Builder.before(yielded)
    index, runs = lead_of(loop, before, end, 1)
    iterations = known_iterations(loop)
    always = iterations is not None and len(iterations) % 2 == 0
    first, second = list(yielded.operands), _copy(end, loop, ops, index, None if always else runs)
    for place, result in enumerate(loop.results):
        is_last = always or not list(result.uses)  # after an iteration that does not come there is none
        last = second[place] if is_last else end.value(SelectOp(runs, second[place], first[place]))
        yielded.operands[place] = last
    loop.operands[2] = before.constant(2 * constant_value(loop.step), loop.step.type)


def _copy(
    b: Builder, loop: scf.ForOp, ops: Sequence[Operation], index: SSAValue, runs: SSAValue | None
) -> list[SSAValue]:
    """What the iteration after this one yields, whose ops are inserted. It loads and stores where it runs: where it
    does not, its index may have wrapped, and be before the end again.
    """
    block = loop.body.block
    values = Values(zip(block.args, (index, *block.last_op.operands), strict=True))
    for op in ops:
        b.location = op.location
        if isinstance(op, LoadOp):
            (values[op.result],) = masked_loads(b, [op], values, runs)
        else:
            b.insert(_masked_store(b, op, values, runs) if isinstance(op, StoreOp) else op.clone(values))
    return [values.of(value) for value in block.last_op.operands]


def _masked_store(b: Builder, store: StoreOp, values: Values, runs: SSAValue | None) -> StoreOp:
    pointer, mask = masked(b, store, values, runs)
    cache, evict = CacheModifier(store.cache.value.data), EvictionPolicy(store.evict.value.data)
    new = StoreOp(pointer, values.of(store.value), mask, cache, evict)
    new.attributes |= store.attributes
    return new
