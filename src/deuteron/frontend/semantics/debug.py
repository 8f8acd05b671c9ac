"""Printing and asserting, at compile time (static_*) and at run time (tt.print, tt.assert); ttg.barrier.

    static_assert(BLOCK % 16 == 0, "aligned")   error: static_assert(BLOCK % 16 == 0) with BLOCK = 100: aligned
    device_print("row", row)                    prefix " row: ", as Triton writes it

Asserts are always in the tile IR; whether they are compiled is an option of the target.
"""

from __future__ import annotations

import ast
import string
from typing import TextIO

from deuteron import language as tl
from deuteron.errors import CompileTimeAssertionFailure
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.bitwise import invert, or_
from deuteron.frontend.semantics.constant import as_tensor
from deuteron.frontend.semantics.convert import convert
from deuteron.frontend.values import Tensor, Value, describe, is_runtime
from deuteron.ir.tt.debug import AssertOp, PrintOp
from deuteron.ir.ttg.barrier import BarrierOp
from deuteron.language.types import int1


def static_print(
    ctx: Context, *values: Value, sep: str = " ", end: str = "\n", file: TextIO | None = None, flush: bool = False
) -> None:
    shown = [describe(value) if is_runtime(value) else value for value in values]
    print(*shown, sep=sep, end=end, file=file, flush=flush)


def static_assert(ctx: Context, cond: Value, msg: str = "") -> None:
    if isinstance(cond, tuple) and cond and isinstance(cond[-1], str):
        raise ctx.error(f"tl.static_assert of {describe(cond)}, a tuple, never fails. Leave out its parentheses.")
    if is_runtime(cond):
        raise ctx.error(
            f"tl.static_assert needs a condition that is known at compile time, got {describe(cond)}. "
            "Use tl.device_assert for one that is not."
        )
    if not cond and ctx.scope.function.is_own and msg:
        raise ctx.error(msg, CompileTimeAssertionFailure)
    if not cond:
        message = f": {msg}" if msg else "."
        raise ctx.error(f"static_assert{_condition_text(ctx)}{message}", CompileTimeAssertionFailure)


def _condition_text(ctx: Context) -> str:
    """The condition as it is written, with the values of the variables in it."""
    node = ctx.frame.node
    if not isinstance(node, ast.Call) or not node.args:
        return " failed"
    names = {child.id: None for child in ast.walk(node.args[0]) if isinstance(child, ast.Name)}
    variables = ctx.scope.variables
    values = [f"{name} = {describe(variables[name])}" for name in names if name in variables]
    return f"({ast.unparse(node.args[0])}) failed" + (f" with {', '.join(values)}" if values else "")


def device_print(ctx: Context, prefix: str, *args: Value, hex: bool = False) -> None:
    if not isinstance(prefix, str):
        raise ctx.error(
            f"The prefix of tl.device_print is text, got {describe(prefix)}. Write tl.device_print('x', x)."
        )
    if not all(character in string.printable for character in prefix):
        raise ctx.error(f"The prefix of tl.device_print is printable ASCII, got {prefix!r}.")
    values = [as_tensor(ctx, arg, "What tl.device_print prints") for arg in args]
    is_signed = [value.dtype.is_int_signed() for value in values]
    op = PrintOp(_prefix(prefix, bool(values)), [value.handle for value in values], is_signed, bool(hex))
    ctx.builder.insert(op)


def _prefix(prefix: str, has_values: bool) -> str:
    """Triton's rule: ` prefix: ` before values; a prefix that is there begins with a space."""
    if has_values:
        prefix = prefix.removesuffix(" ").removesuffix(":") + ": "
    return prefix if len(prefix) <= 2 or prefix.startswith(" ") else f" {prefix}"


def device_assert(ctx: Context, cond: Value, msg: str = "", mask: Value = None) -> None:
    if not isinstance(msg, str):
        raise ctx.error(f"The message of tl.device_assert is text, got {describe(msg)}.")
    condition = _truth(ctx, cond, "The condition of tl.device_assert")
    if mask is not None:
        condition = or_(ctx, condition, invert(ctx, _truth(ctx, mask, "The mask of tl.device_assert")))
    ctx.builder.insert(AssertOp(condition.handle, msg))


def _truth(ctx: Context, value: Value, what: str) -> Tensor:
    x = as_tensor(ctx, value, what)
    if not x.dtype.is_int():
        raise ctx.error(f"{what} is int1, got {x.type}. Compare, as in `x != 0`.")
    return convert(ctx, x, int1)


def debug_barrier(ctx: Context) -> None:
    ctx.builder.insert(BarrierOp())


RULES = {
    tl.static_print: static_print,
    tl.static_assert: static_assert,
    tl.device_print: device_print,
    tl.device_assert: device_assert,
    tl.debug_barrier: debug_barrier,
    print: device_print,
}
