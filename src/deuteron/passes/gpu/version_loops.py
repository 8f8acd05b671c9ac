"""Keeps loops of loads as they are for when they run a few times, beside what they become to run often.

                                                  few = n <= 2 * BLOCK
    for k in range(0, n, BLOCK):                  if few: for k in range(0, n, BLOCK): total += tl.load(row + k)
        total += tl.load(row + k)          ->     else:   for k in range(0, n, BLOCK): total += tl.load(row + k)

The second version becomes several iterations in one (group_iterations.py, alternate_registers.py), with loads for more.
For a loop of one iteration these are masked off one by one, which takes longer than the loop: standard deviations of
65,536 rows of 1,000 in tiles of 1,024 took 164 us on an H200, without any of it 78; rows of 9,000 take 56, and 83. How
often a loop runs is only known when it does. Loops whose threads exchange anything stay: they are not written out.
Whether a loop is written out is known when that is done: `drop_versions` takes away those that were made in vain. Batch
norm's statistics, whose inner loop has one iteration and is not written out, had 0.9 of their speed with a version.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from deuteron.ir.arith import CmpIOp, constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.effects import is_speculatable
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.types import bit_width_of, is_tile
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import inline_block, replace
from deuteron.passes.tile.unroll_loops import known_iterations
from deuteron.passes.tile.unroll_short_loops import instructions_of

# Of a loop: it runs a few times, and stays as it is; one of its iterations is several of what the kernel says. Of a
# branch: it has both versions.
FEW_ITERATIONS, SEVERAL_ITERATIONS, VERSIONS = "tt.few_iterations", "tt.several_iterations", "tt.versions"
# Iterations: of four, RMS norm in two passes with 16,384 columns in tiles of 4,096 has 0.92 of its speed where it stays
# as it is, standard deviations in tiles of 256 have 1.15. Instructions of one, in a thread, as where it is written out.
FEW, MOST_INSTRUCTIONS = 2, 400


@dataclass(frozen=True)
class VersionLoops(Optimisation):
    """Keeps a version of loops that will be written out for when they run a few times."""

    name = "version-loops"

    config: GPUConfig

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            if not nested_ops(func, DotOp):
                for loop in [loop for loop in nested_ops(func, scf.ForOp) if self._may_be_written_out(loop)]:
                    _version(loop)

    def _may_be_written_out(self, loop: scf.ForOp) -> bool:
        """Whether it loads and computes, nobody knows how often, and it says nothing of how it is to be compiled."""
        ops, step = list(loop.body.block.ops)[:-1], constant_value(loop.step)
        has_hints = any(name.startswith("tt.") for name in loop.attributes)
        if has_hints or known_iterations(loop) is not None or step is None:
            return False
        if not 0 < FEW * step < 1 << bit_width_of(loop.step.type) - 1 or not all(map(_is_plain, ops)):
            return False
        loads = any(isinstance(op, LoadOp) and is_tile(op.result.type) for op in ops)
        return loads and sum(instructions_of(op, self.config.num_threads) for op in ops) <= MOST_INSTRUCTIONS


def drop_versions(func: FuncOp) -> None:
    """Take away the versions for a few iterations of loops that were not written out."""
    for branch in [branch for branch in nested_ops(func, scf.IfOp) if VERSIONS in branch.attributes]:
        often = branch.false_region.block
        if not any(SEVERAL_ITERATIONS in op.attributes for op in often.ops):
            replace(branch, inline_block(often, [], branch))


def _is_plain(op: Operation) -> bool:
    return isinstance(op, LoadOp | StoreOp) or (not op.regions and is_speculatable(op))


def _version(loop: scf.ForOp) -> None:
    few = _has_few(Builder.before(loop), loop)
    regions = [Region(Block()), Region(Block())]
    versions = []
    for region in regions:
        b = Builder.at_end(region.block, loop.location)
        versions.append(b.insert(loop.clone()))
        b.insert(scf.YieldOp(*versions[-1].results))
    versions[0].attributes[FEW_ITERATIONS] = UnitAttr()
    branch = Builder.before(loop).insert(scf.IfOp(few, [result.type for result in loop.results], *regions))
    branch.attributes[VERSIONS] = UnitAttr()
    replace(loop, branch.results)


def _has_few(b: Builder, loop: scf.ForOp) -> SSAValue:
    """Whether a loop, whose step is known, runs so few times; its length has no sign."""
    length = b.value(arith.SubiOp(b.value(arith.MaxSIOp(loop.lb, loop.ub)), loop.lb))
    return b.value(CmpIOp(length, b.constant(FEW * constant_value(loop.step), loop.step.type), "ule"))
