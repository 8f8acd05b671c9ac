"""Which variables control flow carries, and how the values of two paths become one.

    acc = 0.0                      `acc` is assigned in the body and exists before: the loop carries it.
    for k in range(n):             `x` does not exist before: it is lost after the loop, which may not have run.
        x = tl.load(p + k)
        acc += tl.sum(x)

A number that meets a Tensor, or a different number, becomes a Tensor. Types must then agree: nothing is cast silently.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from xdsl.dialects.builtin import UnitAttr

from deuteron.frontend.context import Context
from deuteron.frontend.semantics.constant import number, to_tensor
from deuteron.frontend.semantics.convert import convert
from deuteron.frontend.values import (
    RUNTIME,
    Tensor,
    Value,
    fixed_items,
    give_name,
    is_number,
    is_runtime,
    is_same,
    is_same_kind,
    kept_items,
    tensors_in,
    with_handles,
)
from deuteron.ir.tt.convert import UNREAD
from deuteron.language.constant import rebuild
from deuteron.language.types import int64

_BLOCKS = (ast.If, ast.For, ast.While)


def assigned_names(statements: Sequence[ast.stmt]) -> tuple[str, ...]:
    """The variables that these statements assign, in the order of the source.

    Without the variables of `for` loops, which have no value after their loop, and without those that are only
    annotated as constexpr, which cannot be carried.
    """
    return tuple(dict.fromkeys(name for statement in statements for name in _names_assigned_by(statement)))


def is_constexpr_annotation(annotation: ast.expr) -> bool:
    """Whether an annotation is `tl.constexpr`, also as a string."""
    text = annotation.value if isinstance(annotation, ast.Constant) else ast.unparse(annotation)
    return str(text).rpartition(".")[2] == "constexpr"


def _names_assigned_by(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, _BLOCKS):
        for inner in (*statement.body, *statement.orelse):
            yield from _names_assigned_by(inner)
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _names_in_target(target)
    elif isinstance(statement, ast.AugAssign) or (
        isinstance(statement, ast.AnnAssign) and not is_constexpr_annotation(statement.annotation)
    ):
        yield from _names_in_target(statement.target)
    for node in ast.walk(statement):
        if isinstance(node, ast.NamedExpr):
            yield node.target.id


def _names_in_target(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Starred):
        yield from _names_in_target(target.value)
    for item in getattr(target, "elts", ()):
        yield from _names_in_target(item)


def inner_loop_variables(loop: ast.For | ast.While) -> dict[str, ast.For]:
    """The variables of `for` loops within a loop, each with a loop that has it."""
    loops = [node for statement in loop.body for node in ast.walk(statement) if isinstance(node, ast.For)]
    return {name: node for node in loops for name in _names_in_target(node.target)}


def is_read(node: ast.AST, name: str) -> bool:
    """Whether a variable is read where it is not that of a loop."""
    if isinstance(node, ast.Name):
        return node.id == name and isinstance(node.ctx, ast.Load)
    is_its_own = isinstance(node, ast.For) and name in _names_in_target(node.target)
    parts = (node.iter, *node.orelse) if is_its_own else ast.iter_child_nodes(node)
    return any(is_read(part, name) for part in parts)


def as_runtime(ctx: Context, value: Value) -> Value:
    """The value with its numbers as Tensors."""
    if isinstance(value, tuple):
        pairs = zip(value, kept_items(value), strict=True)
        return rebuild(value, [item if is_kept else as_runtime(ctx, item) for item, is_kept in pairs])
    return to_tensor(ctx, value) if is_number(value) else value


def promote(ctx: Context, value: Value, other: Value) -> Value:
    """The value, with the numbers as Tensors where `other`, which it is to be joined with, has another value."""
    if isinstance(value, tuple) and isinstance(other, tuple) and is_same_kind(value, other):
        items = zip(value, other, fixed_items(value), strict=True)
        return rebuild(value, [item if is_fixed else promote(ctx, item, its) for item, its, is_fixed in items])
    return value if is_same(value, other) else as_runtime(ctx, value)


def can_join(left: Value, right: Value) -> bool:
    """Whether two promoted values can become one: of one type, equal compile-time values, tuples of such."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return is_same_kind(left, right) and all(map(can_join, left, right))
    if type(left) is type(right) and isinstance(left, RUNTIME):
        return left.type == right.type
    return is_same(left, right)


def placeholder(ctx: Context, like: Tensor) -> Tensor:
    """A Tensor of that type which nobody reads: zeros, or null pointers."""
    if not like.dtype.is_ptr():
        return number(ctx, 0, like.dtype, like.shape)
    pointer = convert(ctx, number(ctx, 0, int64, like.shape), like.dtype)
    pointer.handle.owner.attributes[UNREAD] = UnitAttr()
    return pointer


def bind_results(value: Value, results: Iterator, name: str | None) -> Value:
    """The value with the next SSA values in place of its own, which take the name of the variable."""
    bound = with_handles(value, results)
    if name is not None:
        for tensor in tensors_in(bound):
            give_name(tensor.handle, name)
    return bound


def how_to_agree(left: Value, right: Value) -> str:
    """The way out of a disagreement of types."""
    for value, other in ((left, right), (right, left)):
        if is_number(value) and isinstance(other, Tensor) and other.shape and not other.dtype.is_ptr():
            shape = list(other.shape)
            return f"Make the number a tile too: tl.full({shape}, {value}, {python_name(other.dtype)})."
    if not (is_runtime(left) and is_runtime(right)):
        return "A value that is known only at compile time cannot depend on what happens at run time."
    if isinstance(left, Tensor) and isinstance(right, Tensor) and left.shape != right.shape:
        return "Give both the same shape, with tl.full or tl.broadcast_to."
    if not (isinstance(left, Tensor) and isinstance(right, Tensor)) or left.dtype.is_ptr() or right.dtype.is_ptr():
        return "Use variables of their own."
    wider = max(left.dtype, right.dtype, key=lambda dtype: (dtype.is_floating(), dtype.primitive_bitwidth))
    return f"Convert one of them, for instance with .to({python_name(wider)})."


def python_name(dtype: Any) -> str:
    """How a kernel names a type of numbers."""
    return f"tl.{dtype.codegen_name()}"
