"""Replaces calls by the bodies of what they call, and removes functions that are not kernels.

    func @twice(%x: f32) {
      %y = addf %x, %x loc("k.py":3:5)                    %y = addf %a, %a loc(callsite("k.py":3:5 at "k.py":9:1))
      return %y                                    ->
    }
    %b = call @twice(%a) loc("k.py":9:1)

The frontend inlines by itself: this is for IR that comes as text. A function that calls itself is an error.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import CallSiteLoc, ModuleOp
from xdsl.passes import ModulePass

from deuteron.errors import IRError
from deuteron.ir.location import from_attribute
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import CallOp, FuncOp, functions_in
from deuteron.passes.rewrite import inline_block, replace


def _inline_calls(function: FuncOp, functions: dict[str, FuncOp], callers: tuple[str, ...]) -> None:
    callers = (*callers, function.sym_name.data)
    for call in nested_ops(function, CallOp):
        _inline(call, functions, callers)


def _inline(call: CallOp, functions: dict[str, FuncOp], callers: tuple[str, ...]) -> None:
    name = call.callee.root_reference.data
    if name in callers:
        raise IRError(f"@{name} calls itself.", *from_attribute(call.location))
    if name not in functions:
        raise IRError(f"tt.call of @{name}, which the module does not have.", *from_attribute(call.location))
    callee = functions[name]
    inputs, outputs = callee.function_type.inputs.data, callee.function_type.outputs.data
    if [a.type for a in call.arguments] != list(inputs) or [r.type for r in call.res] != list(outputs):
        raise IRError(
            f"tt.call of @{name} does not match its type {callee.function_type}.", *from_attribute(call.location)
        )
    _inline_calls(callee, functions, callers)
    copy = callee.clone()
    for op in copy.body.block.walk():
        op.location = CallSiteLoc(op.location, call.location)
    replace(call, inline_block(copy.body.block, call.arguments, before=call))


class InlineCalls(ModulePass):
    """Inlines every call into the kernels of a module."""

    name = "inline-calls"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {f.sym_name.data: f for f in functions_in(op)}
        for function in functions.values():
            _inline_calls(function, functions, ())
        for function in functions.values():
            if function.is_private:
                op.body.block.erase_op(function)
