"""Operators: each is a call of Python's function for it, on numbers at compile time and on Tensors through its rule.

    BLOCK * 2            operator.mul(128, 2) = 256
    pid * BLOCK          RULES[operator.mul](ctx, pid, 128)
    a < b < c            (a < b) & (b < c), each evaluated once
    FLAG and mask        mask or False where FLAG is known; (a & b) of truth values where both are Tensors
    n or FLAG            the truth of n, or True

Tuples are compile-time values here, even where they hold Tensors.
"""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from deuteron import language
from deuteron.frontend.calls import apply
from deuteron.frontend.carried import as_runtime, can_join
from deuteron.frontend.context import Context
from deuteron.frontend.rules import call_at_compile_time, name_of
from deuteron.frontend.values import BlockPointer, Tensor, Value, describe, is_number, is_runtime, is_same
from deuteron.language.aggregate import Aggregate
from deuteron.language.functions.source_functions import CompileTimeFunction, SourceFunction

BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.MatMult: operator.matmul,
}
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}
COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def operate(ctx: Context, function: Callable[..., Any], *operands: Value) -> Value:
    """An operator on its operands: its rule where one is a Tensor, Python otherwise (tuples may hold Tensors)."""
    if any(isinstance(operand, Aggregate) for operand in operands):
        return _by_method(ctx, function, operands)
    for operand in operands:
        if isinstance(operand, BlockPointer):
            raise ctx.error(f"{name_of(function)} is not defined for {operand.type}. Move it with tl.advance.")
    if any(isinstance(operand, Tensor) for operand in operands):
        return apply(ctx, function, operands)
    if any(operand is None for operand in operands) and function not in (
        operator.eq,
        operator.ne,
        operator.not_,
        operator.getitem,
    ):
        shown = " and ".join(describe(operand) for operand in operands)
        raise ctx.error(
            f"{name_of(function)} is not defined for {shown}. An argument that is None, or a function that ends "
            "without `return`, gives None: ask with `is None` first."
        )
    if not is_runtime(operands) or function in (operator.add, operator.mul):
        return call_at_compile_time(ctx, function, operands)
    if function in (operator.eq, operator.ne) and all(isinstance(operand, tuple) for operand in operands):
        return _same_items(ctx, function, *operands)
    shown = " and ".join(describe(operand) for operand in operands)
    raise ctx.error(f"{name_of(function)} is not defined for {shown}. Take the items of the tuple apart.")


def _same_items(ctx: Context, function: Callable[..., Any], left: tuple, right: tuple) -> Value:
    """Whether tuples are equal, or differ, of which some items are known only at run time."""
    is_equal = function is operator.eq
    if len(left) != len(right):
        return not is_equal
    result: Value = is_equal
    for pair in zip(left, right, strict=True):
        result = (both if is_equal else either)(ctx, result, operate(ctx, function, *pair))
    return result


def _by_method(ctx: Context, function: Callable[..., Any], operands: Sequence[Value]) -> Value:
    """An operator of an aggregate is its method: `__add__` of the left operand, or `__radd__` of the right one."""
    name = function.__name__.strip("_")
    for receiver, other, method in ((operands[0], operands[1:], name), (operands[-1], operands[:-1], f"r{name}")):
        found = receiver._written.get(f"__{method}__") if isinstance(receiver, Aggregate) else None
        if found is not None:
            callee = found if isinstance(found, SourceFunction) else CompileTimeFunction(found)
            return apply(ctx, callee, (receiver, *other))
    shown = " and ".join(describe(operand) for operand in operands)
    raise ctx.error(f"{name_of(function)} is not defined for {shown}. Write a method `__{name}__` with @jit.")


def binary(ctx: Context, node: ast.BinOp) -> Value:
    return operate(ctx, BINARY[type(node.op)], *_sides(ctx, node))


def _sides(ctx: Context, node: ast.BinOp) -> tuple[Value, Value]:
    return ctx.evaluate(node.left), ctx.evaluate(node.right)


def unary(ctx: Context, node: ast.UnaryOp) -> Value:
    return operate(ctx, UNARY[type(node.op)], ctx.evaluate(node.operand))


def compare(ctx: Context, node: ast.Compare) -> Value:
    _check_precedence(ctx, node)
    operand = partial(_operand, ctx, node)
    left, result = operand(node.left), True
    for comparison, right_node in zip(node.ops, node.comparators, strict=True):
        right = _evaluate_where(ctx, result, True, right_node, operand)
        result = both(ctx, result, compare_two(ctx, comparison, left, right))
        if result is False:
            return False
        left = right
    return result


def _check_precedence(ctx: Context, node: ast.Compare) -> None:
    """Refuse `a < m & b < n`, which to Python is `a < (m & b) < n`, unless the parentheses are there."""
    for operand in node.comparators[:-1]:
        if _is_joined_bare(ctx, node, operand):
            raise ctx.error(_order_of(operand))


def _operand(ctx: Context, node: ast.Compare, operand: ast.expr) -> Value:
    """A side of a comparison, with a warning where it joins a number with what is true or false, as does
    `a < m & (b < n)`, which to Python is `a < (m & (b < n))`, and no parentheses say so.
    """
    if not _is_joined_bare(ctx, node, operand):
        return ctx.evaluate(operand)
    with ctx.at(operand):
        sides = _sides(ctx, operand)
        if len({_is_truth(side) for side in sides}) > 1:
            warnings.warn(f"{ctx.frame.location()}: {_order_of(operand)}", stacklevel=2)
        return operate(ctx, BINARY[type(operand.op)], *sides)


def _is_joined_bare(ctx: Context, node: ast.Compare, operand: ast.expr) -> bool:
    """Whether a side of a comparison is of `&` or `|`, without parentheses around it."""
    if not isinstance(operand, ast.BinOp) or not isinstance(operand.op, ast.BitAnd | ast.BitOr):
        return False
    if operand is node.left:  # a comparison begins with the parentheses of its left side
        return (node.lineno, node.col_offset) == (operand.lineno, operand.col_offset)
    return not ctx.scope.function.source.is_in_parentheses(operand)


def _order_of(operand: ast.BinOp) -> str:
    symbol = "&" if isinstance(operand.op, ast.BitAnd) else "|"
    return (
        f"To Python this compares with `{ast.unparse(operand)}`, as {symbol} goes before comparisons. "
        f"Put these in parentheses: (a < m) {symbol} (b < n)."
    )


def _is_truth(value: Value) -> bool:
    return value.dtype == language.int1 if isinstance(value, Tensor) else isinstance(value, bool)


def compare_two(ctx: Context, comparison: ast.cmpop, left: Value, right: Value) -> Value:
    """One comparison. Identity and membership are compile-time questions: no Tensor is None."""
    if isinstance(comparison, (ast.Is, ast.IsNot)):
        for value, other in ((left, right), (right, left)):
            if isinstance(value, Tensor) and is_number(other):
                raise ctx.error(f"'is' asks for the same object, got {describe(value)} and {other}. Compare with ==.")
        return (left is right) == isinstance(comparison, ast.Is)
    if isinstance(comparison, (ast.In, ast.NotIn)):
        right = tuple(right) if isinstance(right, dict) else right
        if is_runtime((left, right)):
            raise ctx.error(
                f"'in' needs compile-time values, got {describe(left)} in {describe(right)}. Compare with ==."
            )
        return call_at_compile_time(ctx, operator.contains, (right, left)) == isinstance(comparison, ast.In)
    return operate(ctx, COMPARE[type(comparison)], left, right)


def logical(ctx: Context, node: ast.BoolOp) -> Value:
    """`and`, `or`. What is known decides without the rest being compiled; what is not known is all evaluated."""
    join, decides = (both, False) if isinstance(node.op, ast.And) else (either, True)
    result = not decides
    for operand in node.values:
        value = _evaluate_where(ctx, result, not decides, operand, ctx.evaluate)
        if not isinstance(value, Tensor) and bool(value) == decides:
            return decides if isinstance(result, Tensor) else value
        result = join(ctx, result, value)
    return result


def _evaluate_where(
    ctx: Context, decision: Value, reached: bool, node: ast.expr, evaluate: Callable[[ast.expr], Value]
) -> Value:
    """The value of an operand that Python comes to where the decision is `reached`: elsewhere nothing is assigned by
    its `:=`.
    """
    if not isinstance(decision, Tensor) or decision.shape:
        return evaluate(node)
    names = sorted({part.target.id for part in ast.walk(node) if isinstance(part, ast.NamedExpr)})
    before = {name: ctx.scope.variables[name] for name in names if name in ctx.scope.variables}
    value = evaluate(node)
    for name, old in before.items():
        if name in ctx.scope.variables:
            new = ctx.scope.variables[name]
            _assign_by(ctx, decision, name, *((new, old) if reached else (old, new)))
    return value


def _assign_by(ctx: Context, decision: Tensor, name: str, then: Value, otherwise: Value) -> None:
    if is_same(then, otherwise):
        return
    then, otherwise = as_runtime(ctx, then), as_runtime(ctx, otherwise)
    if isinstance(then, Tensor) and can_join(then, otherwise):
        ctx.scope.assign(name, apply(ctx, language.where, (truth(ctx, decision), then, otherwise)))
    else:
        ctx.scope.lose(
            name,
            f"'{name}' is {describe(then)} or {describe(otherwise)}: whether Python comes to its ':=' depends on what "
            "happens at run time. Assign it in a statement of its own.",
        )


def both(ctx: Context, left: Value, right: Value) -> Value:
    """`left and right` of evaluated values."""
    if not isinstance(left, Tensor):
        return right if left else left
    if not isinstance(right, Tensor):
        return truth(ctx, left) if right else right
    return apply(ctx, operator.and_, (truth(ctx, left), truth(ctx, right)))


def either(ctx: Context, left: Value, right: Value) -> Value:
    """`left or right` of evaluated values."""
    if not isinstance(left, Tensor):
        return left or right
    if not isinstance(right, Tensor):
        return True if right else truth(ctx, left)
    return apply(ctx, operator.or_, (truth(ctx, left), truth(ctx, right)))


def truth(ctx: Context, value: Tensor) -> Tensor:
    """Whether a number is not zero, or a pointer not null, as an i1 of the same shape."""
    return apply(ctx, language.cast, (value, language.int1))


def condition(ctx: Context, test: ast.expr, construct: str, way_out: str) -> bool | Tensor:
    """What decides between two paths: a bool where it is known, else a scalar i1, or that of a tile of one element."""
    value = ctx.evaluate(test)
    if not isinstance(value, Tensor):
        return bool(value)
    with ctx.at(test):
        if math.prod(value.shape) != 1:
            message = f"The condition of {construct} is one value for the whole program, got {value.type}."
            raise ctx.error(f"{message} {way_out}")
        return truth(ctx, apply(ctx, language.item, (value,)))


EXPRESSIONS = {ast.BinOp: binary, ast.UnaryOp: unary, ast.Compare: compare, ast.BoolOp: logical}
