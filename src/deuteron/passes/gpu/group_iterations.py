"""Makes one of some iterations of loops that only load and compute, a few bytes at a time.

    for k in range(0, n, 8):                            the n % 32 that are left over, if little is computed in them
        total += tl.load(column + k * stride)    ->     for k in range(n % 32, n, 32):
                                                            total += tl.load(column + k * stride)
                                                            ...
                                                            total += tl.load(column + (k + 24) * stride)

A thread that loads 8 bytes in an iteration has these on their way, and those of the next one; the memory of a GPU wants
64. Columns of a matrix on an H200: 3,411 GB/s in the place of 2,951, 1,957 of 1,336. Loops that write stay, and those
with any hint of `tl.range`. Of known iterations none is left over. Others that are come first, under masks, so that
they are under way with the first group (batch norm's statistics in 0.90 of the time); where much is computed in them
they are a loop at the end. Where one load gives the address of another, fewer become one: such loops are often short,
as over the experts of a token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.load_costs import load_cost
from deuteron.ir.arith import CmpIOp, SelectOp, constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.effects import READ, effects_inside
from deuteron.ir.nested import nested_ops
from deuteron.ir.reached import reached
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.function import functions_in
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.types import bit_width_of, is_tile
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.pipelining.prefetch_loads import masked_loads
from deuteron.passes.gpu.version_loops import SEVERAL_ITERATIONS
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import Values, replace
from deuteron.passes.tile.unroll_loops import group_body, known_iterations, unroll
from deuteron.passes.tile.unroll_short_loops import instructions_of

# Of iterations that become one: instructions of a thread, its registers for what is loaded, and its accesses. Columns
# of fp32, 4x64 a program, 2,000 rows: 80 us with 8 registers, 52 with 16, on an H200. Of more than 16 accesses of
# single words with masks none is done ahead (loads_into_registers.py): with 32 sums of columns took 3 times as long.
MOST_INSTRUCTIONS, MOST_REGISTERS, MOST_ACCESSES = 400, 16, 16
# Where addresses are loaded in the loop: 4 experts of a token took 59 us as one iteration, 50 as two.
MOST_ACCESSES_AT_LOADED = 8
# Of the rest, where it is done under masks: L1 distances with 264 took 30.6 us in the place of 25.3, batch norm's sums
# with 72 and 126 0.9 of the time.
MOST_INSTRUCTIONS_OF_REST = 128


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
            for loop, group in [pair for pair in zip(loops, groups, strict=True) if pair[1] > 1]:
                loop.attributes[SEVERAL_ITERATIONS] = UnitAttr()
                if _may_begin_with_rest(loop, group, self.config.num_threads):
                    _begin_with_rest(loop, group)
                else:
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
    return any(isinstance(value.owner, LoadOp) for value in _needed([load]))


def _needed(loads: Sequence[LoadOp]) -> Iterator[SSAValue]:
    """What the addresses and masks of loads of a loop are computed of, in it, and what it carries."""
    block = loads[0].parent

    def operands(value: SSAValue) -> Sequence[SSAValue]:
        return value.owner.operands if isinstance(value.owner, Operation) and value.owner.parent is block else ()

    of_block = reached([operand for load in loads for operand in load.operands], operands)
    return (value for value in of_block if value.owner is block or operands(value))


def _may_begin_with_rest(loop: scf.ForOp, group: int, threads: int) -> bool:
    """Whether the step is known, how many iterations there are is not, none loads what depends on another, and little
    is computed in vain.
    """
    block, step = loop.body.block, constant_value(loop.step)
    if known_iterations(loop) is not None or step is None:
        return False
    if (group - 1) * sum(instructions_of(op, threads) for op in block.ops) > MOST_INSTRUCTIONS_OF_REST:
        return False
    loads = [op for op in block.ops if isinstance(op, LoadOp)]
    is_carried = any(value.owner is block and value.index for value in _needed(loads))
    return not is_carried and 0 < step * (group + 1) < 1 << bit_width_of(loop.step.type) - 1


def _begin_with_rest(loop: scf.ForOp, group: int) -> None:
    """Do the iterations by which groups do not come out even before these, under masks: all that they load is under
    way at once, and with what the first group loads.
    """
    b, type = Builder.before(loop), loop.step.type
    length = b.value(arith.SubiOp(b.value(arith.MaxSIOp(loop.lb, loop.ub)), loop.lb))  # without a sign
    rest, carried = _left_over(b, length, constant_value(loop.step), group), list(loop.iter_args)
    for number in range(group - 1):
        count = b.constant(number, type)
        runs = b.value(CmpIOp(count, rest, "ult"))
        following = _masked_iteration(b, loop, _index_of(b, loop, count), carried, runs)
        carried = [b.value(SelectOp(runs, new, old)) for new, old in zip(following, carried, strict=True)]
    goes_on = b.value(CmpIOp(b.value(arith.MuliOp(rest, loop.step)), length, "ult"))
    lowest = b.constant(-(1 << bit_width_of(type) - 1), type)  # where nothing goes on, the index may have wrapped
    end = b.value(SelectOp(goes_on, loop.ub, lowest))
    step = b.value(arith.MuliOp(loop.step, b.constant(group, type)))
    groups = b.insert(scf.ForOp(_index_of(b, loop, rest), end, step, carried, group_body(loop, group)))
    groups.attributes.update(loop.attributes)
    replace(loop, groups.results)


def _left_over(b: Builder, length: SSAValue, step: int, group: int) -> SSAValue:
    """How many iterations of a loop of this length are left over by groups; the last one may go beyond its end."""
    type = length.type
    left = b.value(arith.RemUIOp(length, b.constant(step * group, type)))
    begun = b.value(arith.AddiOp(left, b.constant(step - 1, type)))
    iterations = b.value(arith.DivUIOp(begun, b.constant(step, type)))
    return b.value(arith.RemUIOp(iterations, b.constant(group, type)))


def _index_of(b: Builder, loop: scf.ForOp, number: SSAValue) -> SSAValue:
    return b.value(arith.AddiOp(loop.lb, b.value(arith.MuliOp(number, loop.step))))


def _masked_iteration(
    b: Builder, loop: scf.ForOp, index: SSAValue, carried: Sequence[SSAValue], runs: SSAValue
) -> list[SSAValue]:
    """What an iteration yields, whose ops are inserted; where it does not run, it loads nothing."""
    block = loop.body.block
    values = Values(zip(block.args, (index, *carried), strict=True))
    for op in list(block.ops)[:-1]:
        if isinstance(op, LoadOp):
            (values[op.result],) = masked_loads(b, [op], values, runs)
        else:
            b.insert(op.clone(values))
    return [values.of(operand) for operand in block.last_op.operands]
