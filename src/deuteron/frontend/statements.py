"""Blocks of statements, and the statements that are neither assignments nor loops.

    return x, y               leaves the function; `break` and `continue` leave the loop and its body (completion.py)
    tl.store(p, x)            a call for its effect
    assert BLOCK > 8, "..."   checked now, or by the running program where the condition is not known before

A docstring is nothing, and what follows a `return` is not looked at.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from deuteron import language
from deuteron.errors import CompileTimeAssertionFailure
from deuteron.frontend.assignments import assign, assign_annotated, assign_augmented
from deuteron.frontend.branches import after, branch
from deuteron.frontend.calls import apply, drop_result
from deuteron.frontend.completion import FALLS_THROUGH, Completion, EndOfFunction, leave, may_leave
from deuteron.frontend.context import Context
from deuteron.frontend.loops import for_loop, while_loop
from deuteron.frontend.operators import truth
from deuteron.frontend.unsupported import unsupported
from deuteron.frontend.values import Tensor, describe
from deuteron.ir.builder import MOST_OPS


def execute(ctx: Context, statements: Sequence[ast.stmt]) -> Completion:
    """Compile a block; how it ends. What follows a statement that all paths leave by is not looked at."""
    for index, statement in enumerate(statements):
        with ctx.at(statement):
            if isinstance(statement, ast.If) and may_leave([statement]):
                return branch(ctx, statement, statements[index + 1 :])
            completion = execute_one(ctx, statement)
            if completion.left is not False:
                return after(ctx, completion, statements[index + 1 :])
    return FALLS_THROUGH


def return_(ctx: Context, node: ast.Return) -> Completion:
    """The end of a function, or of a kernel, which has nobody to return a value to: `return 0` says no more there."""
    value = ctx.evaluate(node.value) if node.value else None
    if len(ctx.frames) > 1:
        return leave(ast.Return, value)
    if value is not None and not isinstance(value, (int, float, str)):
        raise ctx.error(f"A kernel returns nothing, got {describe(value)}. Store results through pointers.")
    return leave(ast.Return)


def end_of_function(ctx: Context, node: EndOfFunction) -> Completion:
    return leave(ast.Return)


def execute_one(ctx: Context, statement: ast.stmt) -> Completion:
    handler = STATEMENTS.get(type(statement))
    if handler is None:
        raise unsupported(ctx)
    if ctx.builder.num_inserted > MOST_OPS:
        raise ctx.error(
            f"The kernel has more than {MOST_OPS} ops: loops over tl.static_range and calls are written out. Use "
            "tl.range for loops that run often."
        )
    return handler(ctx, statement) or FALLS_THROUGH


def leave_loop(ctx: Context, node: ast.Break | ast.Continue) -> Completion:
    return leave(type(node))


def expression(ctx: Context, node: ast.Expr) -> None:
    """A call for its effect. A docstring is nothing."""
    if isinstance(node.value, ast.Call):
        with ctx.at(node.value):
            drop_result(ctx, node.value)
    elif not isinstance(node.value, ast.Constant):
        ctx.evaluate(node.value)


def assert_(ctx: Context, node: ast.Assert) -> None:
    """Checked now where the condition is known, by the running program otherwise."""
    condition = ctx.evaluate(node.test)
    message = ctx.evaluate(node.msg) if node.msg else ""
    if isinstance(condition, tuple) and condition and isinstance(condition[-1], str):
        raise ctx.error(f"An assertion of {describe(condition)}, a tuple, never fails. Leave out its parentheses.")
    if isinstance(condition, Tensor):
        apply(ctx, language.device_assert, (truth(ctx, condition), message))
    elif not condition:
        shown = f": {message}" if message else ""
        raise ctx.error(f"'{ast.unparse(node.test)}' does not hold at compile time{shown}", CompileTimeAssertionFailure)


def pass_(ctx: Context, node: ast.Pass) -> None:
    """Nothing."""


STATEMENTS = {
    ast.Assign: assign,
    ast.AnnAssign: assign_annotated,
    ast.AugAssign: assign_augmented,
    ast.Expr: expression,
    ast.Assert: assert_,
    ast.Pass: pass_,
    ast.If: branch,
    ast.For: for_loop,
    ast.While: while_loop,
    ast.Return: return_,
    EndOfFunction: end_of_function,
    ast.Break: leave_loop,
    ast.Continue: leave_loop,
}
