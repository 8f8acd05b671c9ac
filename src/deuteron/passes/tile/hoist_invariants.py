"""Hoists what does not change in a loop out of it.

    "scf.for"(%lb, %ub, %step) ({                    %s = "tt.splat"(%stride)
    ^bb0(%i: i32):                                   "scf.for"(%lb, %ub, %step) ({
      %s = "tt.splat"(%stride)               ->      ^bb0(%i: i32):
      %o = "arith.muli"(%x, %s)                        ...
      ...

Only ops that may run where they did not run before: no loads, which a loop of zero trips would not have done. What is
in an `if` stays there.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.traits import IsTerminator

from deuteron.ir.around import is_defined_in
from deuteron.ir.effects import is_speculatable
from deuteron.ir.nested import nested_ops, nested_ops_inside_out
from deuteron.passes.optimisation import Optimisation


def _hoist(loop: Operation) -> None:
    """Move invariant ops out, in order: what an op needs has moved before it is looked at."""
    for region in loop.regions:
        for op in list(region.block.ops):
            if not op.has_trait(IsTerminator) and is_speculatable(op) and _is_invariant(op, loop):
                op.detach()
                loop.parent.insert_op_before(op, loop)


def _is_invariant(op: Operation, loop: Operation) -> bool:
    """Whether nothing that an op (or what is in its regions) uses is defined in the loop, the op itself aside."""
    return not any(
        is_defined_in(operand, loop) and not is_defined_in(operand, op)
        for inner in nested_ops(op)
        for operand in inner.operands
    )


class HoistInvariants(Optimisation):
    """Moves invariant ops out of loops, inner loops first."""

    name = "hoist-invariants"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in nested_ops_inside_out(op, scf.ForOp | scf.WhileOp):
            if "tt.disable_licm" not in loop.attributes:
                _hoist(loop)
