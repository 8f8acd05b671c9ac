"""Blocks of statements, and the statements that are neither assignments nor control flow.

    return x, y               ends the function; where it is within an `if`, the rest becomes part of the other side
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
from deuteron.frontend.branches import branch, return_in_branch
from deuteron.frontend.calls import apply, drop_result
from deuteron.frontend.carried import contains_return
from deuteron.frontend.context import Context, Returned
from deuteron.frontend.loops import for_loop, while_loop
from deuteron.frontend.unsupported import unsupported
from deuteron.frontend.values import Tensor, describe


def execute(ctx: Context, statements: Sequence[ast.stmt]) -> Returned | None:
    """Compile a block; what it returned, or None where it runs to its end. What follows a `return` is not looked at."""
    for index, statement in enumerate(statements):
        with ctx.at(statement):
            if isinstance(statement, ast.Return):
                return return_(ctx, statement)
            if isinstance(statement, ast.If) and contains_return([statement]):
                return return_in_branch(ctx, statement, statements[index + 1 :])
            execute_one(ctx, statement)
    return None


def return_(ctx: Context, node: ast.Return) -> Returned:
    """The end of a function, or of a kernel, which has nobody to return a value to."""
    value = ctx.evaluate(node.value) if node.value else None
    if len(ctx.frames) == 1 and value is not None:
        raise ctx.error(f"A kernel returns nothing, got {describe(value)}. Store results through pointers.")
    return Returned(value)


def execute_one(ctx: Context, statement: ast.stmt) -> None:
    handler = STATEMENTS.get(type(statement))
    if handler is None:
        raise unsupported(ctx)
    handler(ctx, statement)


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
    if isinstance(condition, Tensor):
        apply(ctx, language.device_assert, (condition, message))
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
}
