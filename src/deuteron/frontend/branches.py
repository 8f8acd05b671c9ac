"""`if`, conditional expressions, and `return` within an `if`.

    if EVEN_N: A else: B          known: only one side is compiled
    if n > 0: x = a else: x = b   %x = scf.if %c -> (f32) { yield %a } else { yield %b }
    if done: return               scf.if %done { } else { the rest of the function }
    rest

Both sides must give a variable the same type. A variable that only one side assigns is lost after the `if`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import Block, Region

from deuteron.frontend.carried import bind_results, can_join, how_to_agree, promote
from deuteron.frontend.context import Context, Returned
from deuteron.frontend.operators import condition
from deuteron.frontend.values import Tensor, Value, describe, is_same, tensors_in

_USE_WHERE = "Use tl.where to choose element by element, or reduce it with tl.max or tl.sum."


@dataclass(frozen=True)
class Side:
    """One side of a run-time branch: its block, the variables at its end, and why names have no value there."""

    block: Block
    result: Value
    variables: dict[str, Value]
    lost: dict[str, str]


def branch(ctx: Context, node: ast.If) -> None:
    """An `if` without `return`."""
    decision = condition(ctx, node.test, "an 'if'", _USE_WHERE)
    if not isinstance(decision, Tensor):
        ctx.execute(node.body if decision else node.orelse)
        return
    sides = _both_sides(ctx, lambda: ctx.execute(node.body), lambda: ctx.execute(node.orelse))
    names = _names_to_join(ctx, sides)
    values = join(ctx, decision, sides, [(name, *(side.variables[name] for side in sides)) for name in names])
    for name, value in zip(names, values, strict=True):
        ctx.scope.assign(name, value)
    _lose_one_sided(ctx, sides)


def return_in_branch(ctx: Context, node: ast.If, rest: Sequence[ast.stmt]) -> Returned | None:
    """An `if` with a `return` in it: each side goes on with the rest of the function, unless it has returned."""
    decision = condition(ctx, node.test, "an 'if'", _USE_WHERE)
    if not isinstance(decision, Tensor):
        return ctx.execute([*(node.body if decision else node.orelse), *rest])
    sides = _both_sides(ctx, lambda: ctx.execute([*node.body, *rest]), lambda: ctx.execute([*node.orelse, *rest]))
    returned = [side.result.value if side.result else None for side in sides]
    (value,) = join(ctx, decision, sides, [("the returned value", *returned)])
    return Returned(value)


def conditional(ctx: Context, node: ast.IfExp) -> Value:
    """`a if condition else b`: both sides must give one type."""
    decision = condition(ctx, node.test, "a conditional expression", _USE_WHERE)
    if not isinstance(decision, Tensor):
        return ctx.evaluate(node.body if decision else node.orelse)
    sides = _both_sides(ctx, lambda: ctx.evaluate(node.body), lambda: ctx.evaluate(node.orelse))
    (value,) = join(ctx, decision, sides, [("the conditional expression", *(side.result for side in sides))])
    return value


def _both_sides(ctx: Context, then: Callable[[], Value], otherwise: Callable[[], Value]) -> tuple[Side, Side]:
    return _side(ctx, then), _side(ctx, otherwise)


def _side(ctx: Context, compile_side: Callable[[], Value]) -> Side:
    before, block = ctx.scope.snapshot(), Block()
    with ctx.builder.at(block):
        result = compile_side()
    side = Side(block, result, ctx.scope.variables, ctx.scope.lost)
    ctx.scope.restore(before)
    return side


def _names_to_join(ctx: Context, sides: Sequence[Side]) -> list[str]:
    """The variables that both sides give a value and that are not what they were before."""
    then, otherwise = (side.variables for side in sides)
    before = ctx.scope.variables
    return [
        name
        for name in dict.fromkeys((*then, *otherwise))
        if name in then and name in otherwise and not _is_unchanged(before, name, then[name], otherwise[name])
    ]


def _is_unchanged(before: dict[str, Value], name: str, *after: Value) -> bool:
    return name in before and all(is_same(before[name], value) for value in after)


def _lose_one_sided(ctx: Context, sides: Sequence[Side]) -> None:
    then, otherwise = (side.variables for side in sides)
    for name in then.keys() ^ otherwise.keys():
        line = ctx.frame.location().line
        ctx.scope.lose(
            name,
            f"'{name}' is assigned on one side only of the 'if' in line {line}, so that it may have no value here. "
            "Assign it before the 'if', or on both sides.",
        )
    for side in sides:
        for name, reason in side.lost.items():
            if name not in ctx.scope.lost and name not in then.keys() & otherwise.keys():
                ctx.scope.lose(name, reason)


def join(
    ctx: Context, decision: Tensor, sides: Sequence[Side], pairs: Sequence[tuple[str, Value, Value]]
) -> list[Value]:
    """Build the scf.if that gives one value for each (what, then, else); raises CompilationError where types differ."""
    joined = [_agree(ctx, sides, *pair) for pair in pairs]
    ctx.stamp()
    for index, side in enumerate(sides):
        with ctx.builder.at(side.block):
            ctx.builder.insert(scf.YieldOp(*(t.handle for pair in joined for t in tensors_in(pair[index]))))
    types = [tensor.handle.type for pair in joined for tensor in tensors_in(pair[0])]
    then, otherwise = (side.block for side in sides)
    has_else = types or len(otherwise.ops) > 1
    op = scf.IfOp(decision.handle, types, Region(then), Region(otherwise) if has_else else None)
    results = iter(ctx.builder.insert(op).results)
    return [
        bind_results(pair[0], results, what if what.isidentifier() else None)
        for (what, *_), pair in zip(pairs, joined, strict=True)
    ]


def _agree(ctx: Context, sides: Sequence[Side], what: str, then: Value, otherwise: Value) -> tuple[Value, Value]:
    ctx.stamp(what if what.isidentifier() else None)
    with ctx.builder.at(sides[0].block):
        left = promote(ctx, then, otherwise)
    with ctx.builder.at(sides[1].block):
        right = promote(ctx, otherwise, then)
    if not can_join(left, right):
        shown = f"'{what}'" if what.isidentifier() else what
        raise ctx.error(
            f"{shown[0].upper()}{shown[1:]} is {describe(left)} on one side and {describe(right)} on the other. "
            f"{how_to_agree(left, right)}"
        )
    return left, right


EXPRESSIONS = {ast.IfExp: conditional}
