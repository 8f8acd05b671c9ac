"""Replaces inline assembly by the ops that do what its PTX does, for targets without PTX.

    %r = "tt.elementwise_inline_asm"(%x) <{asm_string = "tanh.approx.f32 $0, $1;", constraints = "=f,f", ...}>
    ->
    %r = "math.tanh"(%x)

What it does not know is an error of the kernel, at its line.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.inline_asm import ElementwiseInlineAsmOp
from deuteron.passes.rewrite import replace


class TranslateAssembly(ModulePass):
    """Makes ops of inline assembly."""

    name = "translate-assembly"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in nested_ops(op):
            if isinstance(inner, ElementwiseInlineAsmOp):
                replace(inner, _translated(inner))


def _translated(op: ElementwiseInlineAsmOp) -> Sequence[SSAValue]:
    from deuteron.interpreter.assembly.translation import translated  # deferred: brings NumPy and the interpreter

    return translated(op, Builder.before(op), op.args)
