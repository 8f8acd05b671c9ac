"""`if`, conditional expressions, and what follows a statement that some paths leave by.

    if EVEN_N: A else: B          known: only one side is compiled
    if n > 0: x = a else: x = b   %x = scf.if %c -> (f32) { yield %a } else { yield %b }
    if done: return               scf.if %done { } else { the rest of the function }
    rest
    if a:                         %left = scf.if %a -> (i1) { yield %b } else { yield %false }
        if b: return              scf.if %left { } else { the rest of the function }
    rest

What follows is compiled once, however many paths leave before it. How the sides become one: `joins.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from xdsl.ir import Block

from deuteron.frontend.completion import FALLS_THROUGH, Completion, Exit
from deuteron.frontend.context import Context
from deuteron.frontend.joins import Side, compile_side, join, resume
from deuteron.frontend.operators import condition
from deuteron.frontend.values import Tensor, Value

_USE_WHERE = "Use tl.where to choose element by element, or reduce it with tl.max or tl.sum."


def branch(ctx: Context, node: ast.If, rest: Sequence[ast.stmt] = ()) -> Completion:
    """An `if`, and what follows it: where only one side comes to its end, the rest becomes part of that."""

    def go_on(completion: Completion) -> Completion:
        return after(ctx, completion, rest)

    decision = condition(ctx, node.test, "an 'if'", _USE_WHERE)
    if not isinstance(decision, Tensor):
        return go_on(ctx.execute(node.body if decision else node.orelse))
    sides = [compile_side(ctx, lambda block=block: ctx.execute(block)) for block in (node.body, node.orelse)]
    staying = [index for index, side in enumerate(sides) if side.completion.falls_through]
    if len(staying) == 1:
        sides[staying[0]] = resume(ctx, sides[staying[0]], go_on)
        return join(ctx, decision, (sides[0], sides[1]))[0]
    return go_on(join(ctx, decision, (sides[0], sides[1]))[0])


def after(ctx: Context, completion: Completion, rest: Sequence[ast.stmt]) -> Completion:
    """Statements that follow what ends in this way."""
    return follow(ctx, completion, lambda: ctx.execute(rest)) if rest else completion


def follow(ctx: Context, completion: Completion, compile_rest: Callable[[], Completion]) -> Completion:
    """What `compile_rest` inserts, on the paths that have not left; how both together end."""
    if not isinstance(completion.left, Tensor):
        return completion if completion.left else compile_rest()
    is_only = len(completion.exits) == 1
    exits = {kind: Exit(True if is_only else exit.when, exit.lost) for kind, exit in completion.exits.items()}
    left = Side(Block(), Completion(True, exits, completion.value), dict(ctx.scope.variables), dict(ctx.scope.lost))
    return join(ctx, completion.left, (left, compile_side(ctx, compile_rest)))[0]


def conditional(ctx: Context, node: ast.IfExp) -> Value:
    """`a if condition else b`: both sides must give one type."""
    decision = condition(ctx, node.test, "a conditional expression", _USE_WHERE)
    if not isinstance(decision, Tensor):
        return ctx.evaluate(node.body if decision else node.orelse)
    sides = _value_side(ctx, node.body), _value_side(ctx, node.orelse)
    return join(ctx, decision, sides, "the conditional expression")[1]


def _value_side(ctx: Context, node: ast.expr) -> Side:
    values = []

    def evaluate() -> Completion:
        values.append(ctx.evaluate(node))
        return FALLS_THROUGH

    side = compile_side(ctx, evaluate)
    side.result = values[0]
    return side


EXPRESSIONS = {ast.IfExp: conditional}
