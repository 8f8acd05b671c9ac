"""Comprehensions over what is known when a kernel is compiled: each gives a tuple.

    [x * 2 for x in pair]                        (pair[0] * 2, pair[1] * 2)
    tuple(i for i in range(4) if i % 2)          (1, 3)

The variables of a comprehension are its own, as in Python, where what `:=` assigns in it is the function's.
"""

from __future__ import annotations

import ast

from deuteron.frontend.assignments import bind
from deuteron.frontend.context import Context
from deuteron.frontend.operators import condition
from deuteron.frontend.ranges import Range, iterated
from deuteron.frontend.values import Tensor, Value, known_items


def comprehension(ctx: Context, node: ast.ListComp | ast.GeneratorExp) -> tuple[Value, ...]:
    before = ctx.scope.snapshot()
    items: list[Value] = []
    _collect(ctx, node, 0, items)
    named = {part.target.id for part in ast.walk(node) if isinstance(part, ast.NamedExpr)}
    assigned = {name: value for name, value in ctx.scope.variables.items() if name in named}
    ctx.scope.restore(before)
    for name, value in assigned.items():
        ctx.scope.assign(name, value)
    return tuple(items)


def _collect(ctx: Context, node: ast.ListComp | ast.GeneratorExp, depth: int, items: list[Value]) -> None:
    """The items that the loops from this depth on give."""
    if depth == len(node.generators):
        items.append(ctx.evaluate(node.elt))
        return
    generator = node.generators[depth]
    for value in _known_items(ctx, generator.iter):
        bind(ctx, generator.target, value)
        if all(_holds(ctx, test) for test in generator.ifs):
            _collect(ctx, node, depth + 1, items)


def _known_items(ctx: Context, node: ast.expr) -> tuple[Value, ...]:
    over = iterated(ctx, node)
    if not isinstance(over, Range):
        return over
    if any(isinstance(bound, Tensor) for bound in (over.start, over.end, over.step)):
        raise ctx.error("A comprehension goes over a tuple or a range that is known at compile time. Use a `for` loop.")
    return known_items(ctx, range(over.start, over.end, over.step))


def _holds(ctx: Context, test: ast.expr) -> bool:
    decision = condition(ctx, test, "a comprehension", "Use a condition that is known at compile time.")
    if isinstance(decision, Tensor):
        raise ctx.error("The condition of a comprehension is known at compile time only. Use tl.where on its items.")
    return decision


EXPRESSIONS = {ast.ListComp: comprehension, ast.GeneratorExp: comprehension}
