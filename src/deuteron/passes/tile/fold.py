"""Folds what is known now: constants are computed, neutral operands dropped, constant branches taken.

    %c = "arith.constant"() <{value = 4 : i32}>
    %n = "arith.muli"(%c, %c) : (i32, i32) -> i32              %n = "arith.constant"() <{value = 16 : i32}>
    %z = "arith.addi"(%x, %zero) : (i32, i32) -> i32    ->     %s = "tt.splat"(%x) : (i32) -> tensor<64x32xi32>
    %e = "tt.expand_dims"(%splat_of_z) <{axis = 1 : i32}>
    %s = "tt.broadcast"(%e) : ... -> tensor<64x32xi32>

Every fold is exact: integers wrap, floats round as the op does, and x * 0.0 stays, for x may be infinite. One walk in
order folds an op after its operands. Rules are by op family in folding/; what becomes unused is left for dead code.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from deuteron.ir.rule_table import RuleTable
from deuteron.ir.tt.function import functions_in
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import replace
from deuteron.passes.tile.folding import arithmetic, control_flow, memory, shape

FOLDS = RuleTable({**arithmetic.FOLDS, **shape.FOLDS, **memory.FOLDS, **control_flow.FOLDS})


def _fold_block(block: Block) -> None:
    op = block.first_op
    while op is not None:
        before = op.prev_op
        if _fold(op):
            op = before.next_op if before is not None else block.first_op
            continue
        for region in op.regions:
            for inner in region.blocks:
                _fold_block(inner)
        op = op.next_op


def _fold(op: Operation) -> bool:
    """Replace an op by the values that its rule finds; says whether there were any."""
    rule = FOLDS.get(op.name)
    values = rule(op) if rule is not None else None
    if values is None:
        return False
    replace(op, values)
    return True


class Fold(Optimisation):
    """Folds constants and neutral ops."""

    name = "fold"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_in(op):
            _fold_block(function.regions[0].block)
