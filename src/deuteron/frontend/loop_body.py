"""The body of a loop of the kernel: which variables it carries, and what they are after it.

    before      acc: fp32, BLOCK = 64
    body        acc += tl.sum(tl.load(p + k)); x = 1
    carried     {"acc": Tensor(%acc0, fp32)}; the block has an argument for it, and yields its value at the end
    after       acc: a result of the loop; x is lost: the loop may not have run

`loops.py` puts the block into an scf.for or scf.while.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TypeVar

from xdsl.dialects import scf
from xdsl.ir import Attribute, Block, SSAValue

from deuteron.errors import CompilationError
from deuteron.frontend.carried import (
    as_runtime,
    assigned_names,
    bind_results,
    can_join,
    how_to_agree,
    inner_loop_variables,
    is_read,
    promote,
    python_name,
)
from deuteron.frontend.completion import Completion, ended_by
from deuteron.frontend.context import Context
from deuteron.frontend.values import Tensor, Value, describe, is_same, tensors_in, with_handles
from deuteron.ir.arith import constant_value

Variables = dict[str, Value]
_LOST = object()
ItemT = TypeVar("ItemT")


@dataclass
class LoopBody:
    """A compiled body. `carried` has the values before the loop, `variables` and `lost` are those at the body's end;
    `unknown` are names that have no value when an iteration begins, with the reason.
    """

    node: ast.For | ast.While
    block: Block
    num_leading: int
    completion: Completion
    carried: Variables
    variables: Variables
    lost: dict[str, str]
    unknown: dict[str, str]

    @property
    def initial(self) -> list[Tensor]:
        return [tensor for value in self.carried.values() for tensor in tensors_in(value)]

    @property
    def final(self) -> list[Tensor]:
        return [tensor for name in self.carried for tensor in tensors_in(self.variables[name])]

    @property
    def carried_args(self) -> list[SSAValue]:
        return list(self.block.args[self.num_leading :])


def compile_body(
    ctx: Context,
    node: ast.For | ast.While,
    leading: Sequence[Attribute],
    enter: Callable[[Block], None],
    compile_iteration: Callable[[], Completion] | None = None,
) -> LoopBody:
    """Compile a loop's body into a block; `enter` binds the leading arguments (the loop variable).

    A number is a compile-time value in the body, unless the body turns out to change it: then it is compiled once more
    with that number carried. So it is with a variable that an inner loop has for its own: carried where that loop is
    unrolled and leaves it a value, else without one.
    `compile_iteration` is for a `while` that tests in its body.
    """
    names = [name for name in assigned_names([*_tests(node), *node.body]) if name in ctx.scope.variables]
    carried = {name: as_runtime(ctx, value) for name in names if tensors_in(value := ctx.scope.variables[name])}
    compile_iteration = compile_iteration or (lambda: execute_iteration(ctx, node))
    frame, outer = ctx.frame, ctx.frame.carried
    inner = {name: loop for name, loop in inner_loop_variables(node).items() if name in ctx.scope.variables}
    frame.carried = [*names, *inner]
    unknown: dict[str, str] = {}
    while True:
        body = _compile_once(ctx, node, leading, enter, compile_iteration, carried, unknown)
        changed = [*_changed_numbers(ctx, body, names), *_left_by_inner_loops(ctx, body, inner)]
        reused = _reused_variables(ctx, body, {name: loop for name, loop in inner.items() if name not in changed})
        if not changed and not reused:
            frame.carried = outer
            return body
        discard(body.block)
        unknown |= reused
        carried |= {name: as_runtime(ctx, ctx.scope.variables[name]) for name in changed}


def _tests(node: ast.For | ast.While) -> list[ast.stmt]:
    return [ast.Expr(node.test)] if isinstance(node, ast.While) else []


def execute_iteration(ctx: Context, node: ast.For | ast.While) -> Completion:
    """The statements of the body, and the `continue` at its end."""
    return ctx.execute(ended_by(ast.Continue(), node.body))


def _compile_once(
    ctx: Context,
    node: ast.For | ast.While,
    leading: Sequence[Attribute],
    enter: Callable[[Block], None],
    compile_iteration: Callable[[], Completion],
    carried: Variables,
    unknown: dict[str, str],
) -> LoopBody:
    before = ctx.scope.snapshot()
    block = block_for(ctx, carried, unknown, leading)
    entering = ctx.scope.snapshot()
    with ctx.builder.at(block):
        enter(block)
        completion = compile_iteration()
        lost = {name: reason for exit in completion.exits.values() for name, reason in exit.lost.items()}
        for name, reason in lost.items():
            ctx.scope.lose(name, reason)
        if not completion.is_alive:
            ctx.scope.restore(entering)
        variables, lost = ctx.scope.variables, ctx.scope.lost
        body = LoopBody(node, block, len(leading), completion, carried, variables, lost, unknown)
        for name, initial in carried.items():
            body.variables[name] = _final_value(ctx, body, name, initial)
    ctx.scope.restore(before)
    return body


def block_for(ctx: Context, carried: Variables, unknown: dict[str, str], leading: Sequence[Attribute] = ()) -> Block:
    """A block with arguments for the carried variables, which the scope then holds, without those that are unknown."""
    types = [tensor.handle.type for value in carried.values() for tensor in tensors_in(value)]
    block = Block(arg_types=[*leading, *types])
    args = iter(block.args[len(leading) :])
    for name, value in carried.items():
        bound = bind_results(value, args, name)
        for tensor in tensors_in(bound):
            tensor.handle.location = ctx.stamp(name)
        ctx.scope.assign(name, bound)
    for name, reason in unknown.items():
        ctx.scope.lose(name, reason)
    return block


def _final_value(ctx: Context, body: LoopBody, name: str, initial: Value) -> Value:
    """What a carried variable is at the end of the body; raises CompilationError where its type has changed."""
    if name not in body.variables:
        raise _no_final_value(ctx, body, name)
    ctx.stamp(name)
    final = promote(ctx, body.variables[name], initial)
    if can_join(initial, final):
        return final
    line = ctx.frame.location().line
    with ctx.at(_last_assignment(body.node, name)):
        raise ctx.error(
            f"'{name}' is {describe(initial)} before the loop in line {line} and {describe(final)} at the end of its "
            f"body, but must keep its type. {_way_out(name, initial, final)}"
        )


def _no_final_value(ctx: Context, body: LoopBody, name: str) -> CompilationError:
    return ctx.error(f"'{name}' exists before the loop, but has no value at the end of its body. {body.lost[name]}")


def _last_assignment(loop: ast.For | ast.While, name: str) -> ast.stmt:
    """The last statement of a loop that assigns a variable."""
    found: ast.stmt = loop
    for statement in ast.walk(ast.Module(loop.body, [])):
        is_later = isinstance(statement, ast.stmt) and (found is loop or statement.lineno > found.lineno)
        if is_later and not isinstance(statement, (ast.If, ast.For, ast.While)) and name in assigned_names([statement]):
            found = statement
    return found


def _way_out(name: str, initial: Value, final: Value) -> str:
    if not (isinstance(initial, Tensor) and isinstance(final, Tensor)):
        return how_to_agree(initial, final)
    if final.dtype.is_ptr() or initial.dtype.is_ptr():
        return how_to_agree(initial, final)
    dtype = python_name(final.dtype)
    if initial.shape != final.shape and final.shape:
        return f"Start with the shape it gets, for instance {name} = tl.zeros({list(final.shape)}, {dtype})."
    if initial.shape != final.shape:
        return f"Keep its shape with tl.full({list(initial.shape)}, ...), or use a variable of its own."
    original = python_name(initial.dtype)
    if constant_value(initial.handle) is not None and final.dtype.is_floating() and not initial.dtype.is_floating():
        zero = f"tl.zeros({list(final.shape)}, {dtype})" if final.shape else f"{float(constant_value(initial.handle))}"
        return f"Start with {name} = {zero}, or convert what the loop assigns with .to({original})."
    return f"Start with {name}.to({dtype}), or convert what the loop assigns with .to({original})."


def _changed_numbers(ctx: Context, body: LoopBody, assigned: Sequence[str]) -> list[str]:
    """The compile-time variables that the body has changed: numbers; raises CompilationError for anything else."""
    changed = []
    for name in assigned:
        old = ctx.scope.variables[name]
        if name in body.carried:
            continue
        if name not in body.variables:
            raise _no_final_value(ctx, body, name)
        if is_same(old, body.variables[name]):
            continue
        if not tensors_in(as_runtime(ctx, old)):
            raise ctx.error(
                f"'{name}' is {describe(old)}, a compile-time value, and a loop of the kernel cannot change it to "
                f"{describe(body.variables[name])}. Use tl.static_range, or a variable of its own."
            )
        changed.append(name)
    return changed


def _left_by_inner_loops(ctx: Context, body: LoopBody, inner: dict[str, ast.For]) -> list[str]:
    """Variables from before the loop that an unrolled one in its body has left another value of their type, where the
    function reads them outside of the loops whose variables they are.
    """
    left = []
    for name in inner:
        before = ctx.scope.variables[name]
        if name in body.carried or name not in body.variables or is_same(before, body.variables[name]):
            continue
        before = as_runtime(ctx, before)
        can_carry = tensors_in(before) and can_join(before, promote(ctx, body.variables[name], before))
        if can_carry and is_read(ctx.scope.function.tree, name):
            left.append(name)
    return left


def _reused_variables(ctx: Context, body: LoopBody, inner: dict[str, ast.For]) -> dict[str, str]:
    """Variables from before the loop that one in its body has for its own, and that the body reads elsewhere, too:
    when an iteration begins they are what the one before has left, which is not carried.
    """
    reasons: dict[str, str] = {}
    for name, loop in inner.items():
        is_kept = is_same(ctx.scope.variables[name], body.variables.get(name, _LOST))
        if not is_kept and name not in body.carried and name not in body.unknown and is_read(body.node, name):
            reasons[name] = _reuse(name, ctx.scope.function.location(loop).line)
    return reasons


def _reuse(name: str, line: int) -> str:
    return (
        f"'{name}' is also the variable of the loop in line {line}, which may have run in an iteration before, so that "
        "it may have another value here. Give that loop a variable of its own."
    )


def discard(block: Block) -> None:
    """Erase a block that is in no op, so that nothing in it counts as a use."""
    for op in reversed(list(block.ops)):
        op.detach()
        op.erase()


def close_body(ctx: Context, body: LoopBody) -> list[bool]:
    """End the body with a yield. Gives for each carried Tensor whether the body changes it; only those are yielded."""
    kept = [final.handle is not arg for final, arg in zip(body.final, body.carried_args, strict=True)]
    ctx.stamp()
    with ctx.builder.at(body.block):
        ctx.builder.insert(scf.YieldOp(*(final.handle for final in select(body.final, kept))))
    return kept


def drop_unchanged(body: LoopBody, block: Block, num_leading: int, kept: Sequence[bool]) -> None:
    """In a block of the loop, take what is not changed from before the loop instead of from an argument."""
    for index, initial in reversed(list(enumerate(body.initial))):
        if not kept[index]:
            arg = block.args[num_leading + index]
            arg.replace_all_uses_with(initial.handle)
            block.erase_arg(arg)


def select(items: Sequence[ItemT], kept: Sequence[bool]) -> list[ItemT]:
    """The items that are kept."""
    return list(compress(items, kept))


def bind_after(ctx: Context, body: LoopBody, kept: Sequence[bool], results: Sequence[SSAValue]) -> None:
    """Give the carried variables their values after the loop, and let those go that only the body knows."""
    names = [name for name, value in body.carried.items() for _ in tensors_in(value)]
    source = iter(results)
    after = iter(
        [
            bind_results(initial, source, name) if is_kept else initial
            for name, initial, is_kept in zip(names, body.initial, kept, strict=True)
        ]
    )
    for name, value in body.carried.items():
        ctx.scope.assign(name, with_handles(value, (tensor.handle for tensor in after)))
    _lose_inner(ctx, body)


def _lose_inner(ctx: Context, body: LoopBody) -> None:
    """Variables that the body has defined or redefined without carrying them have no value after the loop."""
    before = dict(ctx.scope.variables)
    line = ctx.frame.location().line
    for name, value in body.variables.items():
        if name not in body.carried and not (name in before and is_same(before[name], value)):
            ctx.scope.lose(name, _loss(body.node, name, line))
    for name, reason in body.lost.items():
        if name not in body.carried:
            ctx.scope.lose(name, reason)


def _loss(node: ast.For | ast.While, name: str, line: int) -> str:
    if isinstance(node, ast.For) and isinstance(node.target, ast.Name) and node.target.id == name:
        return (
            f"'{name}' is the variable of the loop in line {line} and has no value after it. "
            "Use the end of its range, or a variable that the loop carries."
        )
    return (
        f"'{name}' is first assigned within the loop in line {line}, which may not run at all, so that it may have no "
        "value here. Assign it before the loop."
    )
