"""Loops that a path may leave: an scf.while that goes on for as long as no path has left it.

    for i in range(n):            %acc1 = scf.while (%going = 0 < n, %k = 0, %acc) {
        if f(i) > 3: break            scf.condition(%going) %k, %acc
        acc += i                  } do { i = 0 + k; %broke, %next = scf.if %c {...}
                                      scf.yield not %broke and n - i > 1, k + 1, %next }
    while c: ...; return x        the condition is tested in the body, and leaves it too

Carried are also what tells how the loop was left, as far as that matters after it, and what is returned. A place of
iteration is start + k * step, of which it is known what divides it, as it is not of a value that a `while` carries.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith, scf
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from deuteron.frontend.branches import after
from deuteron.frontend.carried import bind_results, placeholder
from deuteron.frontend.completion import LOOP_EXITS, Completion, Exit, Flag, Kind
from deuteron.frontend.context import Context
from deuteron.frontend.joins import either, flag_tensor, is_bound_to_region, negated
from deuteron.frontend.loop_body import LoopBody, bind_after, drop_unchanged, select
from deuteron.frontend.semantics.constant import number
from deuteron.frontend.semantics.types import tensor
from deuteron.frontend.values import Tensor, Value, describe, tensors_in, with_handles
from deuteron.ir.arith import CmpIOp
from deuteron.language.types import int1


@dataclass(frozen=True)
class _Slot:
    """What the loop carries: its value before the loop, and after an iteration."""

    initial: Tensor
    final: Tensor


Hints = Mapping[str, Attribute]


def build_while(ctx: Context, body: LoopBody, is_endless: bool, hints: Hints) -> Completion:
    """The loop of a `while` whose condition its body tests; how it ends. One without condition is endless."""
    return _build(ctx, body, True, [], True, is_endless, hints)


def build_counting_while(
    ctx: Context, body: LoopBody, start: Tensor, end: Tensor, step: Tensor, hints: Hints
) -> Completion:
    """The loop over a range whose body has the loop's variable as its first argument; how it ends.

    No comparison overflows: in an iteration the variable is below the end, their distance a number without sign.
    """
    ctx.stamp()
    zero, one = number(ctx, 0, start.type), number(ctx, 1, start.type)
    begins = _compare(ctx, start, end, "slt")
    if not isinstance(step.handle.owner, arith.ConstantOp):
        begins = _and(ctx, begins, _compare(ctx, zero, step, "slt"))
    variable = body.block.args[0]
    index = _count(ctx, body.block, start, step)
    body = _with_value_of(body, variable, index.handle)
    with ctx.builder.at(body.block):
        distance = tensor(ctx, arith.SubiOp(end.handle, index.handle), end.type)
        goes_on = _compare(ctx, distance, step, "ugt")
        following = tensor(ctx, arith.AddiOp(body.block.args[0], one.handle), start.type)
    return _build(ctx, body, begins, [_Slot(zero, following)], goes_on, False, hints)


def _compare(ctx: Context, left: Tensor, right: Tensor, predicate: str) -> Tensor:
    return tensor(ctx, CmpIOp(left.handle, right.handle, predicate), int1)


def _and(ctx: Context, left: Tensor, right: Tensor) -> Tensor:
    return tensor(ctx, arith.AndIOp(left.handle, right.handle), int1)


def _count(ctx: Context, block: Block, start: Tensor, step: Tensor) -> Tensor:
    """Let the block's first argument be the number of the iteration; the loop's variable, computed of that."""
    variable = block.args[0]
    counter = block.insert_arg(variable.type, 0)
    counter.name_hint, counter.location = "iteration", variable.location
    outer, ctx.builder.insertion_point = ctx.builder.insertion_point, InsertPoint.at_start(block)
    advanced = ctx.builder.value(arith.MuliOp(counter, step.handle))
    index = tensor(ctx, arith.AddiOp(start.handle, advanced), start.type)
    ctx.builder.insertion_point = outer
    index.handle.name_hint = variable.name_hint
    variable.replace_all_uses_with(index.handle)
    block.erase_arg(variable)
    return index


def _with_value_of(body: LoopBody, variable: SSAValue, index: SSAValue) -> LoopBody:
    """A body in which variables, and what is returned, are the index where they were the loop's variable itself."""

    def renamed(value: Value) -> Value:
        handles = [part.handle for part in tensors_in(value)]
        if not any(handle is variable for handle in handles):
            return value
        return with_handles(value, (index if handle is variable else handle for handle in handles))

    variables = {name: renamed(value) for name, value in body.variables.items()}
    completion = replace(body.completion, value=renamed(body.completion.value))
    return replace(body, variables=variables, completion=completion)


def _build(
    ctx: Context,
    body: LoopBody,
    begins: Flag,
    counters: Sequence[_Slot],
    goes_on: Flag,
    is_endless: bool,
    hints: Hints,
) -> Completion:
    """Close the body, and build the scf.while around it, with a block that only asks whether there is an iteration."""
    completion = body.completion
    told = [kind for kind in LOOP_EXITS if kind in completion.exits and (kind is ast.Return or body.node.orelse)]
    ctx.stamp()
    slots = [*counters, *_slots_of_exits(ctx, body, told)]
    num_counters, num_slots = len(counters), len(slots)
    kept = [final.handle is not arg for final, arg in zip(body.final, body.carried_args, strict=True)]
    for slot in reversed(slots[num_counters:]):
        body.block.insert_arg(slot.initial.handle.type, num_counters)
    slots += [_Slot(*pair) for pair in zip(select(body.initial, kept), select(body.final, kept), strict=True)]
    slots = [_Slot(flag_tensor(ctx, begins), _going(ctx, body, goes_on)), *slots]
    with ctx.builder.at(body.block):
        ctx.builder.insert(scf.YieldOp(*(slot.final.handle for slot in slots)))
    drop_unchanged(body, body.block, num_slots, kept)
    results = _insert_while(ctx, body, [slot.initial.handle for slot in slots], hints)
    bind_after(ctx, body, kept, results[num_slots:])
    flags = {kind: Tensor(flag, int1) for kind, flag in zip(told, results[num_counters:], strict=False)}
    value = bind_results(completion.value, iter(results[num_counters + len(told) : num_slots]), None)
    left = True if is_endless and ast.Break not in completion.exits else either(ctx, list(flags.values()))
    return Completion(left, {kind: Exit(flag) for kind, flag in flags.items()}, value)


def _slots_of_exits(ctx: Context, body: LoopBody, told: Sequence[Kind]) -> list[_Slot]:
    """How the loop has been left, and what it returns."""
    completion = body.completion
    if is_bound_to_region(completion.value):
        shown = describe(completion.value)
        raise ctx.error(f"A function cannot return {shown} from within a loop. Return it after the loop.")
    never = number(ctx, False, int1)
    with ctx.builder.at(body.block):
        flags = [_Slot(never, flag_tensor(ctx, completion.when(kind))) for kind in told]
    return [*flags, *(_Slot(placeholder(ctx, value), value) for value in tensors_in(completion.value))]


def _insert_while(ctx: Context, body: LoopBody, initial: Sequence[SSAValue], hints: Hints) -> list[SSAValue]:
    """The results of the loop, one for each value that it begins with but the first, which says whether it begins."""
    types = [handle.type for handle in initial]
    loop = scf.WhileOp(initial, types[1:], Region(_test(ctx, types, body.block)), Region(body.block))
    loop.attributes |= hints
    return list(ctx.builder.insert(loop).results)


def _going(ctx: Context, body: LoopBody, goes_on: Flag) -> Tensor:
    """Whether there is another iteration."""
    with ctx.builder.at(body.block):
        ended = either(ctx, [body.completion.when(kind) for kind in LOOP_EXITS])
        going = number(ctx, False, int1) if ended is True else negated(ctx, ended)
        return _and(ctx, goes_on, going) if isinstance(goes_on, Tensor) else going


def _test(ctx: Context, types: Sequence[Attribute], body: Block) -> Block:
    """The block that passes everything on to the body, but the first, which says whether there is an iteration."""
    block = Block(arg_types=types)
    for argument, like in zip(block.args[1:], body.args, strict=True):
        argument.name_hint, argument.location = like.name_hint, like.location
    block.args[0].name_hint = "going"
    with ctx.builder.at(block):
        ctx.builder.insert(scf.ConditionOp(block.args[0], *block.args[1:]))
    return block


def without(ctx: Context, completion: Completion, kind: Kind) -> Completion:
    """Where paths that have left in this way go on."""
    if kind not in completion.exits:
        return completion
    for name, reason in completion.exits[kind].lost.items():
        ctx.scope.lose(name, reason)
    exits = {other: exit for other, exit in completion.exits.items() if other is not kind}
    left = either(ctx, [exit.when for exit in exits.values()])
    if ast.Continue in exits:
        left = _and_not(ctx, completion.left, completion.when(kind))
    return Completion(left, exits, completion.value)


def _and_not(ctx: Context, flag: Flag, other: Flag) -> Flag:
    if flag is False or other is True:
        return False
    rest = negated(ctx, other) if isinstance(other, Tensor) else True
    if isinstance(flag, Tensor) and isinstance(rest, Tensor):
        return _and(ctx, flag, rest)
    return rest if flag is True else flag


def end_loop(ctx: Context, node: ast.For | ast.While, completion: Completion) -> Completion:
    """How a loop with its `else` ends: that comes where no `break` has. One in the `else` is of an outer loop."""
    completion = without(ctx, completion, ast.While)
    broken = {ast.For if kind is ast.Break else kind: exit for kind, exit in completion.exits.items()}
    completion = after(ctx, Completion(completion.left, broken, completion.value), node.orelse)
    return without(ctx, completion, ast.For)
