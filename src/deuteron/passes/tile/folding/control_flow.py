"""Folds of control flow: the taken branch of an `if`, loops of no or one trip.

if true { A } else { B }                        ->  A
for i = 0 to 4 step 4, a = x { A }              ->  A with i = 0, a = x
for i = 4 to 4 step 1, a = x { A }              ->  x
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import SSAValue

from deuteron.ir.arith import constant_value
from deuteron.ir.rule_table import RuleTable
from deuteron.passes.rewrite import inline_block

FOLDS = RuleTable()

Folded = Sequence[SSAValue] | None


@FOLDS.on(scf.IfOp)
def fold_if(op: scf.IfOp) -> Folded:
    condition = constant_value(op.cond)
    if condition is None:
        return None
    region = op.regions[0 if condition else 1]
    return inline_block(region.block, [], before=op) if region.blocks else []


@FOLDS.on(scf.ForOp)
def fold_for(op: scf.ForOp) -> Folded:
    bounds = [constant_value(value) for value in (op.lb, op.ub, op.step)]
    if op.lb is op.ub:
        return list(op.iter_args)
    if None in bounds or bounds[2] <= 0:
        return None
    trips = len(range(*bounds))
    if trips == 0:
        return list(op.iter_args)
    return inline_block(op.body.block, [op.lb, *op.iter_args], before=op) if trips == 1 else None
