"""Rule for tt.elementwise_inline_asm: the ops that its PTX is translated to, once for each op, run on its operands."""

from __future__ import annotations

from deuteron.interpreter.assembly.translation import as_block
from deuteron.ir.rule_table import RuleTable
from deuteron.ir.tt.inline_asm import ElementwiseInlineAsmOp

RULES = RuleTable()


@RULES.on(ElementwiseInlineAsmOp)
def elementwise_inline_asm(ctx, op, *args):
    if op not in ctx.translated:
        ctx.translated[op] = as_block(op)
    return tuple(ctx.run_block(ctx.translated[op], args))
