"""Rules for `scf.if`, `scf.for`, `scf.while` and `tt.call`."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from deuteron.errors import IRError
from deuteron.ir.rule_table import RuleTable
from deuteron.ir.tt.function import CallOp, functions_in

RULES = RuleTable()


@RULES.on(scf.IfOp)
def if_(ctx, op, condition):
    region = op.regions[0 if condition else 1]
    return tuple(ctx.run_block(region.block, ())) if region.blocks else ()


@RULES.on(scf.ForOp)
def for_(ctx, op, lower, upper, step, *carried):
    if step <= 0:
        raise IRError(f"Expected a positive step, got range({lower}, {upper}, {step}).")
    body, dtype = op.regions[0].block, lower.dtype.type
    for index in range(int(lower), int(upper), int(step)):
        carried = ctx.run_block(body, [dtype(index), *carried])
    return tuple(carried)


@RULES.on(scf.WhileOp)
def while_(ctx, op, *carried):
    before, after = (region.block for region in op.regions)
    while True:
        condition, *passed = ctx.run_block(before, carried)
        if not condition:
            return tuple(passed)
        carried = ctx.run_block(after, passed)
        ctx.come_round(op)


@RULES.on(CallOp)
def call(ctx, op, *arguments):
    """Values live in one place each, so a function cannot call itself."""
    module = op
    while not isinstance(module, ModuleOp):
        module = module.parent_op()
    name = op.callee.root_reference.data
    for function in functions_in(module):
        if function.sym_name.data == name:
            return tuple(ctx.run_block(function.body.block, arguments))
    raise IRError(f"tt.call of @{name}, which the module does not have.")
