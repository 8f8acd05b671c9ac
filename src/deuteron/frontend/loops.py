"""`for` and `while`: loops of the kernel (scf.for, scf.while), and loops that are unrolled.

    for k in range(0, n, 32):     %acc1 = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %acc0) -> (f32) {
        acc += f(k)                 ... scf.yield %sum }
    for i in range(n, 0, -3):     scf.for goes up from 0 to ceil((n - 0) / 3); i = n - iteration * 3
    for i in tl.static_range(2):  the body twice, with i = 0 and i = 1

A loop that a path may leave by `break` or `return` is an scf.while (early_exits.py); `continue` alone is an scf.if.
Carried are the variables that the body assigns and that exist before. One that keeps its value in the end is not
carried after all, so that it stays visible to later passes that nothing changes it.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Block, Region

from deuteron import language
from deuteron.errors import CompilationError
from deuteron.frontend.assignments import bind
from deuteron.frontend.branches import follow
from deuteron.frontend.calls import apply
from deuteron.frontend.completion import FALLS_THROUGH, Completion, leave, may_end_loop
from deuteron.frontend.context import Context
from deuteron.frontend.early_exits import build_counting_while, build_while, end_loop, without
from deuteron.frontend.joins import compile_side, join
from deuteron.frontend.loop_body import (
    LoopBody,
    bind_after,
    block_for,
    close_body,
    compile_body,
    discard,
    drop_unchanged,
    execute_iteration,
    select,
)
from deuteron.frontend.operators import condition, operate
from deuteron.frontend.ranges import Range, common_integer, iterated
from deuteron.frontend.semantics.constant import number
from deuteron.frontend.semantics.types import tensor
from deuteron.frontend.values import Tensor, Value
from deuteron.ir.tt.debug import AssertOp


def for_loop(ctx: Context, node: ast.For) -> Completion:
    over = iterated(ctx, node.iter)
    if isinstance(over, tuple):
        return end_loop(ctx, node, _unrolled(ctx, node, over))
    if not isinstance(node.target, ast.Name):
        raise ctx.error(f"A loop over a range has one variable, got '{ast.unparse(node.target)}'. Name it simply.")
    return end_loop(ctx, node, _runtime_for(ctx, node, over))


def _unrolled(ctx: Context, node: ast.For, items: Sequence[Value]) -> Completion:
    """An iteration is on the paths that have left in none before."""

    def iteration(item: Value) -> Completion:
        bind(ctx, node.target, item)
        return without(ctx, ctx.execute(node.body), ast.Continue)

    completion, frame, outer = FALLS_THROUGH, ctx.frame, ctx.frame.carried
    frame.carried = None
    for item in items:
        completion = follow(ctx, completion, lambda item=item: iteration(item))
    frame.carried = outer
    return completion


def _runtime_for(ctx: Context, node: ast.For, bounds: Range) -> Completion:
    ctx.stamp()
    counts_down = not isinstance(bounds.step, Tensor) and bounds.step < 0
    first, end, size = common_integer(ctx, bounds.start, bounds.end, -bounds.step if counts_down else bounds.step)
    start, step = first, size
    if isinstance(bounds.step, Tensor) and ctx.asked.checks_steps:
        _assert_positive(ctx, step)
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
    if body.completion.leaves_loop:
        return build_counting_while(ctx, body, start, end, step, bounds.hints)
    kept = close_body(ctx, body)
    drop_unchanged(body, body.block, 1, kept)
    loop = scf.ForOp(start.handle, end.handle, step.handle, [t.handle for t in select(body.initial, kept)], body.block)
    loop.attributes |= bounds.hints
    bind_after(ctx, body, kept, ctx.builder.insert(loop).results)
    return FALLS_THROUGH


def _assert_positive(ctx: Context, step: Tensor) -> None:
    """Of another step Python would count down, or raise an error; here it would have no iterations."""
    ctx.builder.insert(AssertOp(operate(ctx, operator.gt, step, 0).handle, "the step of a range is not positive"))


def _iterations(ctx: Context, start: Tensor, end: Tensor, size: Tensor) -> Tensor:
    """How many a range has that counts down by `size`; scf.for knows positive steps only.

    The distance may be as large as its type without a sign. Beyond the type with a sign are no iterations.
    """
    distance = operate(ctx, operator.sub, apply(ctx, language.maximum, (start, end)), end)
    count = tensor(ctx, arith.CeilDivUIOp(distance.handle, size.handle), start.type)
    largest = number(ctx, (1 << start.type.int_bitwidth - 1) - 1, start.type)
    return tensor(ctx, arith.MinUIOp(count.handle, largest.handle), start.type)


def while_loop(ctx: Context, node: ast.While) -> Completion:
    if may_end_loop(node.body) or any(isinstance(part, ast.NamedExpr) for part in ast.walk(node.test)):
        return end_loop(ctx, node, _while_that_is_left(ctx, node))
    return end_loop(ctx, node, _plain_while(ctx, node))


def _plain_while(ctx: Context, node: ast.While) -> Completion:
    body = compile_body(ctx, node, [], lambda block: None)
    decision, before_block = _while_condition(ctx, node, body)
    if decision is False:
        discard(before_block)
        discard(body.block)
        return FALLS_THROUGH
    kept = close_body(ctx, body)
    with ctx.builder.at(before_block):
        ctx.builder.insert(scf.ConditionOp(decision.handle, *select(before_block.args, kept)))
    for block in (before_block, body.block):
        drop_unchanged(body, block, 0, kept)
    initial = [carried.handle for carried in select(body.initial, kept)]
    types = [handle.type for handle in initial]
    loop = scf.WhileOp(initial, types, Region(before_block), Region(body.block))
    loop.attributes |= _hints(ctx, node.test)
    bind_after(ctx, body, kept, ctx.builder.insert(loop).results)
    return FALLS_THROUGH


def _while_that_is_left(ctx: Context, node: ast.While) -> Completion:
    """The condition is the first that the body does, and leaves it where it is false."""
    is_endless = False

    def iteration() -> Completion:
        nonlocal is_endless
        decision = _decision(ctx, node)
        is_endless = decision is True
        if is_endless:
            return execute_iteration(ctx, node)
        ended = leave(ast.While if node.orelse else ast.Break)
        if decision is False:
            return ended
        sides = compile_side(ctx, lambda: execute_iteration(ctx, node)), compile_side(ctx, lambda: ended)
        return join(ctx, decision, sides)[0]

    body = compile_body(ctx, node, [], lambda block: None, iteration)
    if not body.completion.leaves_loop:
        raise _endless(ctx, node)
    return build_while(ctx, body, is_endless, _hints(ctx, node.test))


def _while_condition(ctx: Context, node: ast.While, body: LoopBody) -> tuple[Tensor | bool, Block]:
    """The condition, compiled into a block of its own: a Tensor, or False for a loop that never runs."""
    outside = ctx.scope.snapshot()
    block = block_for(ctx, body.carried, body.unknown)
    with ctx.builder.at(block):
        decision = _decision(ctx, node)
    ctx.scope.restore(outside)
    if decision is True:
        raise _endless(ctx, node)
    return decision, block


def _decision(ctx: Context, node: ast.While) -> bool | Tensor:
    return condition(ctx, node.test, "a 'while'", "Reduce it with tl.max or tl.sum.")


def _hints(ctx: Context, test: ast.expr) -> dict[str, Attribute]:
    """What `tl.condition` says of the loop."""
    if not isinstance(test, ast.Call) or ctx.evaluate(test.func) is not language.condition:
        return {}
    given = [*test.args[1:], *(keyword.value for keyword in test.keywords if keyword.arg == "disable_licm")]
    return {"tt.disable_licm": UnitAttr()} if any(ctx.evaluate(value) for value in given) else {}


def _endless(ctx: Context, node: ast.While) -> CompilationError:
    return ctx.error(
        f"The condition of this 'while' is always true: {ast.unparse(node.test)}. Nothing in the loop can end it; "
        "let the condition depend on a variable that the loop assigns, or leave the loop by 'break'."
    )
