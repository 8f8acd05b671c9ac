"""Assignments: a value gets the name of its variable, in the scope and in the IR.

    x = 1                 a Tensor from here on, as in Triton: only parameters and what is annotated stay compile-time
    n: tl.constexpr = 1   the number 1; `n: tl.constexpr` alone declares it so for what follows
    a, b = b, a           tuples are taken apart
    acc += x              acc = acc + x

    a, *rest = items      rest is a tuple

Only variables can be assigned to: tiles and tuples cannot be changed in place.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress

from xdsl.dialects.builtin import CallSiteLoc, LocationAttr, NameLoc, StringAttr
from xdsl.ir import Operation

from deuteron.errors import CompilationError
from deuteron.frontend.carried import as_runtime, is_constexpr_annotation
from deuteron.frontend.context import Context
from deuteron.frontend.operators import BINARY, operate
from deuteron.frontend.values import Tensor, Value, describe, give_name, is_number, is_runtime, is_same, known_items

_LONGEST_NUMBER = 50  # nodes of an expression that a message shows; `x += x` doubles it each time


def assign(ctx: Context, node: ast.Assign) -> None:
    known = evaluate_for(ctx, node.value, node.targets[0])
    value = known if ctx.scope.declared else as_runtime(ctx, known)
    numbers = [number for target in node.targets for number in _numbers(ctx, target, known, node.value)]
    for target in node.targets:
        bind(ctx, target, _as_declared(ctx, target, value))
    _note_numbers(ctx, numbers)


def _note_numbers(ctx: Context, numbers: Sequence[tuple[str, ast.expr]]) -> None:
    """Keep, for messages, how variables would be written as constexprs that are none for want of an annotation."""
    ctx.scope.numbers |= {name: (ctx.scope.variables[name], number) for name, number in numbers}


def _numbers(ctx: Context, target: ast.expr, known: Value, node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The variables that get numbers known at compile time, or would if those that they are made of were declared so,
    each with an expression for its own.
    """
    if isinstance(target, ast.Name) and is_number(known):
        yield target.id, node
    elif isinstance(target, ast.Name) and is_runtime(known):
        number = _of_numbers(ctx, node)
        if number is not None and sum(1 for _ in ast.walk(number)) <= _LONGEST_NUMBER:
            yield target.id, number
    elif isinstance(target, ast.Tuple | ast.List) and isinstance(known, tuple):
        items = zip(target.elts, known, strict=False)
        for index, (item_target, item) in enumerate(items):
            if isinstance(item_target, ast.Starred):
                return
            part = node.elts[index] if isinstance(node, ast.Tuple) else ast.Subscript(node, ast.Constant(index))
            yield from _numbers(ctx, item_target, item, part)


def _of_numbers(ctx: Context, node: ast.expr) -> ast.expr | None:
    """An expression with those of its variables that were assigned numbers written out; None where it has others."""
    match node:
        case ast.BinOp(left, op, right):
            sides = _of_numbers(ctx, left), _of_numbers(ctx, right)
            return ast.BinOp(sides[0], op, sides[1]) if sides[0] and sides[1] else None
        case ast.Name(name):
            value = ctx.scope.variables.get(name)
            assigned, number = ctx.scope.numbers.get(name, (None, None))
            if is_runtime(value):
                return number if assigned is not None and is_same(assigned, value) else None
    return node if isinstance(node, ast.Name | ast.Constant) else None


def _as_declared(ctx: Context, target: ast.expr, value: Value) -> Value:
    """The value with its numbers as Tensors, but for variables that are declared as constexpr."""
    if isinstance(target, ast.Name) and target.id in ctx.scope.declared:
        return _checked_constexpr(ctx, target, value)
    is_spread = isinstance(target, ast.Tuple | ast.List) and isinstance(value, tuple | list)
    if is_spread and len(value) == len(target.elts) and not any(isinstance(t, ast.Starred) for t in target.elts):
        return tuple(_as_declared(ctx, *pair) for pair in zip(target.elts, value, strict=True))
    return as_runtime(ctx, value)


def _checked_constexpr(ctx: Context, target: ast.expr, value: Value) -> Value:
    """The value, with a warning where it is not known: as in Triton it is a variable then, which is assigned once."""
    if not is_runtime(value):
        return value
    got = f"'{ast.unparse(target)}' is annotated as constexpr, got {describe(value)}, which is known only at run time."
    if not isinstance(target, ast.Name) or is_runtime(ctx.scope.variables.get(target.id)):
        raise ctx.error(f"{got} Drop the annotation, or compute it from constexpr parameters.")
    warnings.warn(f"{ctx.frame.location()}: {got} The annotation is ignored.", stacklevel=2)
    return value


def evaluate_for(ctx: Context, node: ast.expr, target: ast.expr) -> Value:
    """A value to be assigned, its numbers located under the name of the variable."""
    value = ctx.evaluate(node)
    ctx.stamp(target.id if isinstance(target, ast.Name) else None)
    return value


def assign_annotated(ctx: Context, node: ast.AnnAssign) -> None:
    is_constexpr = is_constexpr_annotation(node.annotation)
    if node.value is None:
        if is_constexpr and isinstance(node.target, ast.Name):
            ctx.scope.declared.add(node.target.id)
        return
    value = evaluate_for(ctx, node.value, node.target)
    value = _checked_constexpr(ctx, node.target, value) if is_constexpr else as_runtime(ctx, value)
    bind(ctx, node.target, value)


def assign_augmented(ctx: Context, node: ast.AugAssign) -> None:
    if not isinstance(node.target, ast.Name):
        raise _not_assignable(ctx, node.target)
    with ctx.at(node.target):
        old = ctx.scope.lookup(ctx, node.target.id)
    value = operate(ctx, BINARY[type(node.op)], old, ctx.evaluate(node.value))
    ctx.stamp(node.target.id)
    numbers = list(_numbers(ctx, node.target, value, ast.BinOp(ast.Name(node.target.id), node.op, node.value)))
    bind(ctx, node.target, as_runtime(ctx, value))
    _note_numbers(ctx, numbers)


def named_expression(ctx: Context, node: ast.NamedExpr) -> Value:
    value = _as_declared(ctx, node.target, evaluate_for(ctx, node.value, node.target))
    bind(ctx, node.target, value)
    return value


def bind(ctx: Context, target: ast.expr, value: Value) -> None:
    """Assign to a variable, or the items of a tuple to several."""
    if isinstance(target, ast.Name):
        set_name(value, target.id)
        ctx.scope.assign(target.id, value)
        return
    if not isinstance(target, (ast.Tuple, ast.List)):
        raise _not_assignable(ctx, target)
    for item_target, item in zip(*_spread(ctx, target.elts, value), strict=True):
        bind(ctx, item_target, item)


def _spread(ctx: Context, targets: Sequence[ast.expr], value: Value) -> tuple[list[ast.expr], list[Value]]:
    """Targets and the items that they get; a starred one gets a tuple of those that are left."""
    starred = [index for index, target in enumerate(targets) if isinstance(target, ast.Starred)]
    num_fixed = len(targets) - len(starred)
    value = known_items(ctx, value) if isinstance(value, list) else value
    fits = isinstance(value, tuple) and (len(value) >= num_fixed if starred else len(value) == num_fixed)
    if not fits:
        at_least = "at least " if starred else ""
        raise ctx.error(f"Cannot assign {describe(value)} to {at_least}{num_fixed} variables.")
    if not starred:
        return list(targets), list(value)
    first, last = starred[0], starred[0] + len(value) - num_fixed
    names = [target.value if isinstance(target, ast.Starred) else target for target in targets]
    return names, [*value[:first], tuple(value[first:last]), *value[last:]]


def _not_assignable(ctx: Context, target: ast.expr) -> CompilationError:
    if isinstance(target, ast.Subscript):
        with suppress(CompilationError):
            owner, parts = ctx.evaluate(target.value), (ast.unparse(target.value), ast.unparse(target.slice))
            if isinstance(owner, Tensor) and owner.dtype.is_ptr():
                return ctx.error("A pointer is not indexed. Store with tl.store({} + {}, value).".format(*parts))
    way_out = {
        ast.Subscript: "Tiles and tuples cannot be changed in place. Build a new one, for instance with tl.where.",
        ast.Attribute: "Values have no attributes that can be set. Build a new one, for instance with `_replace`.",
    }
    return ctx.error(f"Cannot assign to '{ast.unparse(target)}'. {way_out.get(type(target), 'Assign to a variable.')}")


def set_name(value: Value, name: str) -> None:
    """Let a value that has no name yet carry that of its variable, in the IR and in its location."""
    if not isinstance(value, Tensor) or value.handle.name_hint is not None:
        return
    give_name(value.handle, name)
    if isinstance(value.handle.owner, Operation):
        value.handle.owner.location = _named(value.handle.owner.location, name)


def _named(location: LocationAttr, name: str) -> LocationAttr:
    if isinstance(location, CallSiteLoc):
        return CallSiteLoc(_named(location.callee, name), location.caller)
    return location if isinstance(location, NameLoc) else NameLoc(StringAttr(name), location)


EXPRESSIONS = {ast.NamedExpr: named_expression}
