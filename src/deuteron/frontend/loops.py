"""`for` and `while`: loops of the kernel (scf.for, scf.while), and loops that are unrolled.

    for k in range(0, n, 32):     %acc1 = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %acc0) -> (f32) {
        acc += f(k)                 ... scf.yield %sum }
    for i in range(n, 0, -3):     scf.for goes up from 0 to ceil((n - 0) / 3); i = n - iteration * 3
    for i in tl.static_range(2):  the body twice, with i = 0 and i = 1

Carried are the variables that the body assigns and that exist before. One that keeps its value in the end is not
carried after all, so that it stays visible to later passes that nothing changes it.
"""

from __future__ import annotations

import ast
import operator

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Region

from deuteron import language
from deuteron.errors import UnsupportedLanguageConstruct
from deuteron.frontend.assignments import bind
from deuteron.frontend.calls import apply
from deuteron.frontend.carried import contains_return
from deuteron.frontend.context import Context
from deuteron.frontend.loop_body import (
    LoopBody,
    bind_after,
    block_for,
    close_body,
    compile_body,
    discard,
    drop_unchanged,
    select,
)
from deuteron.frontend.operators import condition, operate
from deuteron.frontend.ranges import Range, common_integer, iterated
from deuteron.frontend.semantics.constant import number
from deuteron.frontend.semantics.types import tensor
from deuteron.frontend.values import Tensor


def for_loop(ctx: Context, node: ast.For) -> None:
    _check_loop(ctx, node, "for")
    over = iterated(ctx, node.iter)
    if isinstance(over, tuple):
        for item in over:
            bind(ctx, node.target, item)
            ctx.execute(node.body)
        return
    if not isinstance(node.target, ast.Name):
        raise ctx.error(f"A loop over a range has one variable, got '{ast.unparse(node.target)}'. Name it simply.")
    _runtime_for(ctx, node, over)


def _check_loop(ctx: Context, node: ast.For | ast.While, word: str) -> None:
    if node.orelse:
        raise ctx.error(
            f"'else' of a '{word}' is not supported in a kernel. Put what is in it after the loop.",
            UnsupportedLanguageConstruct,
        )
    if contains_return(node.body):
        raise ctx.error(
            f"'return' within a '{word}' is not supported in a kernel. Assign to a variable, and return that.",
            UnsupportedLanguageConstruct,
        )


def _runtime_for(ctx: Context, node: ast.For, bounds: Range) -> None:
    ctx.stamp()
    counts_down = not isinstance(bounds.step, Tensor) and bounds.step < 0
    first, end, size = common_integer(ctx, bounds.start, bounds.end, -bounds.step if counts_down else bounds.step)
    start, step = first, size
    if counts_down:
        start, end, step = number(ctx, 0, first.type), _iterations(ctx, first, end, size), number(ctx, 1, first.type)

    def enter(block: Block) -> None:
        variable = Tensor(block.args[0], start.type)
        variable.handle.location = ctx.stamp(node.target.id)
        if counts_down:
            variable.handle.name_hint = "iteration"
            variable = operate(ctx, operator.sub, first, operate(ctx, operator.mul, variable, size))
        bind(ctx, node.target, variable)

    body = compile_body(ctx, node, [start.handle.type], enter)
    kept = close_body(ctx, body)
    drop_unchanged(body, body.block, 1, kept)
    loop = scf.ForOp(start.handle, end.handle, step.handle, [t.handle for t in select(body.initial, kept)], body.block)
    loop.attributes |= bounds.hints
    bind_after(ctx, body, kept, ctx.builder.insert(loop).results)


def _iterations(ctx: Context, start: Tensor, end: Tensor, size: Tensor) -> Tensor:
    """How many a range has that counts down by `size`; scf.for knows positive steps only.

    The distance may be as large as its type without a sign. Beyond the type with a sign are no iterations.
    """
    distance = operate(ctx, operator.sub, apply(ctx, language.maximum, (start, end)), end)
    count = tensor(ctx, arith.CeilDivUIOp(distance.handle, size.handle), start.type)
    largest = number(ctx, (1 << start.type.int_bitwidth - 1) - 1, start.type)
    return tensor(ctx, arith.MinUIOp(count.handle, largest.handle), start.type)


def while_loop(ctx: Context, node: ast.While) -> None:
    _check_loop(ctx, node, "while")
    body = compile_body(ctx, node, [], lambda block: None)
    decision, before_block = _while_condition(ctx, node, body)
    if decision is False:
        discard(before_block)
        discard(body.block)
        return
    kept = close_body(ctx, body)
    with ctx.builder.at(before_block):
        ctx.builder.insert(scf.ConditionOp(decision.handle, *select(before_block.args, kept)))
    for block in (before_block, body.block):
        drop_unchanged(body, block, 0, kept)
    initial = [carried.handle for carried in select(body.initial, kept)]
    types = [handle.type for handle in initial]
    loop = scf.WhileOp(initial, types, Region(before_block), Region(body.block))
    bind_after(ctx, body, kept, ctx.builder.insert(loop).results)


def _while_condition(ctx: Context, node: ast.While, body: LoopBody) -> tuple[Tensor | bool, Block]:
    """The condition, compiled into a block of its own: a Tensor, or False for a loop that never runs."""
    outside = ctx.scope.snapshot()
    block = block_for(ctx, body.carried)
    with ctx.builder.at(block):
        decision = condition(ctx, node.test, "a 'while'", "Reduce it with tl.max or tl.sum.")
    ctx.scope.restore(outside)
    if decision is True:
        raise ctx.error(
            f"The condition of this 'while' is always true: {ast.unparse(node.test)}. Nothing in the loop can end it; "
            "let the condition depend on a variable that the loop assigns."
        )
    return decision, block
