"""Unswitches loops: an invariant condition on which loads in a loop depend is tested once, before it.

    "scf.for"(%lb, %ub, %step) ({                  "scf.if"(%even) ({
    ^bb0(%i: i32):                                   "scf.for"(%lb, %ub, %step) ({
      %x = "scf.if"(%even) ({                        ^bb0(%i: i32):
        "scf.yield"(tt.load(%p))             ->        %x = "tt.load"(%p)
      }, {                                             ...
        "scf.yield"(tt.load(%p, %m))               }, {
      })                                             "scf.for"(%lb, %ub, %step) ({
      ...                                            ^bb0(%i: i32):
                                                       %x = "tt.load"(%p, %m)

Runs after branches are merged: what is left are loads of which one mask for both branches would narrow the vectors, and
loads through different pointers. The branches themselves go when the constants are folded. Only innermost loops, each
by one condition, and none that would grow large.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region, SSAValue

from deuteron.ir.arith import constant_value
from deuteron.ir.around import is_defined_in
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.types import i1, is_tile
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import replace

# Of a loop, which is there twice afterwards: a bound on the time to compile, not measured.
MAX_OPS = 400


def _condition_of(loop: scf.ForOp) -> SSAValue | None:
    """A condition outside of a loop on which loads in it depend."""
    for branch in loop.body.walk():
        if isinstance(branch, scf.IfOp) and _loads_tiles(branch) and _is_unknown_outside(branch.cond, loop):
            return branch.cond
    return None


def _is_unknown_outside(condition: SSAValue, loop: scf.ForOp) -> bool:
    return constant_value(condition) is None and not is_defined_in(condition, loop)


def _loads_tiles(branch: scf.IfOp) -> bool:
    ops = (op for region in branch.regions for block in region.blocks for op in block.ops)
    return any(isinstance(op, LoadOp) and is_tile(op.result.type) for op in ops)


def _unswitch(loop: scf.ForOp, condition: SSAValue) -> None:
    """Put a loop into both branches of an `if`, each with a constant for the condition."""
    regions = [Region(Block()), Region(Block())]
    for region, answer in zip(regions, (True, False), strict=True):
        builder = Builder.at_end(region.block, loop.location)
        version = builder.insert(loop.clone({condition: builder.constant(answer, i1)}))
        builder.insert(scf.YieldOp(*version.results))
    types = [result.type for result in loop.results]
    replace(loop, Builder.before(loop).insert(scf.IfOp(condition, types, *regions)).results)


def _innermost_loops(module: ModuleOp) -> list[scf.ForOp]:
    loops = nested_ops(module, scf.ForOp)
    return [loop for loop in loops if not any(isinstance(op, scf.ForOp | scf.WhileOp) for op in loop.body.walk())]


class UnswitchLoops(Optimisation):
    """Unswitches each innermost loop by one condition, which is a constant in the two that it becomes."""

    name = "unswitch-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        loops = [(loop, _condition_of(loop)) for loop in _innermost_loops(op)]
        for loop, condition in loops:
            if condition is not None and _is_small(loop):
                _unswitch(loop, condition)


def _is_small(loop: scf.ForOp) -> bool:
    return len(nested_ops(loop)) <= MAX_OPS
