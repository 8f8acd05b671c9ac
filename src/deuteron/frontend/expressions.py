"""Expressions other than operators, attributes and calls: names, constants, tuples, subscripts, f-strings.

    x[:, None]                   operator.getitem(x, (slice(None), None)), by its rule
    pair[0]                      an item of a tuple, which is found at compile time
    [x + 1 for x in pair]        a tuple of as many

Compile-time values are Python objects; what they are asked for is asked of Python.
"""

from __future__ import annotations

import ast
import operator

from deuteron.errors import counted
from deuteron.frontend.advice import NO_EXTENTS
from deuteron.frontend.context import Context
from deuteron.frontend.operators import operate
from deuteron.frontend.rules import call_at_compile_time
from deuteron.frontend.values import Tensor, Value, describe, is_runtime, known_items
from deuteron.language.aggregate import Aggregate
from deuteron.language.functions.function import Function


def name(ctx: Context, node: ast.Name) -> Value:
    return ctx.scope.lookup(ctx, node.id)


def constant(ctx: Context, node: ast.Constant) -> Value:
    if isinstance(node.value, (complex, bytes)):
        raise ctx.error(
            f"{node.value!r} is not supported in a kernel. Constants are numbers, booleans, strings and None."
        )
    return node.value


def display(ctx: Context, node: ast.Tuple | ast.List) -> Value:
    """A tuple; a list is one too, as nothing in a kernel can be changed in place."""
    items: list[Value] = []
    for item in node.elts:
        items.extend(_unpacked(ctx, item) if isinstance(item, ast.Starred) else [ctx.evaluate(item)])
    return tuple(items)


def _unpacked(ctx: Context, node: ast.Starred) -> tuple[Value, ...]:
    value = ctx.evaluate(node.value)
    items = known_items(ctx, value)
    if items is None:
        raise ctx.error(f"'*' unpacks a tuple, got {describe(value)}.")
    return items


def subscript(ctx: Context, node: ast.Subscript) -> Value:
    owner, index = ctx.evaluate(node.value), ctx.evaluate(node.slice)
    if isinstance(owner, Function):
        name = owner.__name__
        raise ctx.error(f"A kernel launches no other: '{name}[...]' is for Python. Call the function, as {name}(...).")
    if isinstance(owner, Tensor) and owner.dtype.is_ptr() and _has_offset(index):
        offset = "offset" if isinstance(index, tuple) else ast.unparse(node.slice)
        raise ctx.error(f"A pointer is not indexed. Load with tl.load({ast.unparse(node.value)} + {offset}).")
    if isinstance(owner, Tensor | Aggregate):
        return operate(ctx, operator.getitem, owner, index)
    if isinstance(owner, int | float):
        raise ctx.error(f"{owner} is a number, which is not indexed. Make a tile of it with tl.full.")
    if is_runtime(index):
        raise ctx.error(
            f"{describe(owner)} is indexed at compile time, got the run-time index {describe(index)}. Use a constant."
        )
    if isinstance(owner, tuple) and isinstance(index, int) and not -len(owner) <= index < len(owner):
        raise ctx.error(_no_item(ctx, node, owner, index))
    return call_at_compile_time(ctx, operator.getitem, (owner, index))


def _has_offset(index: Value) -> bool:
    return any(isinstance(part, int | Tensor) for part in (index if isinstance(index, tuple) else (index,)))


def _no_item(ctx: Context, node: ast.Subscript, items: tuple, index: int) -> str:
    """Also of the shape of a pointer, which is none, however many dimensions its array has."""
    if not items and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        scalar = ctx.evaluate(node.value.value)
        way_out = f" {NO_EXTENTS}" if isinstance(scalar, Tensor) and scalar.dtype.is_ptr() else ""
        return f"{describe(scalar)} has no dimensions, and none of index {index}.{way_out}"
    return f"{describe(items)} has {counted(len(items), 'item')}, and none of index {index}."


def slice_(ctx: Context, node: ast.Slice) -> slice:
    return slice(*(part and ctx.evaluate(part) for part in (node.lower, node.upper, node.step)))


def f_string(ctx: Context, node: ast.JoinedStr) -> str:
    """Python up to 3.11 and later ones differ in where the parts are: errors are about the whole string."""
    return "".join(
        _formatted(ctx, part) if isinstance(part, ast.FormattedValue) else ctx.evaluate(part) for part in node.values
    )


def _formatted(ctx: Context, node: ast.FormattedValue) -> str:
    value = ctx.evaluate(node.value)
    if is_runtime(value):
        raise ctx.error(
            f"An f-string is made at compile time, got {describe(value)}. Print a run-time value with tl.device_print."
        )
    convert = {ord("r"): repr, ord("s"): str, ord("a"): ascii}.get(node.conversion, lambda value: value)
    spec = ctx.evaluate(node.format_spec) if node.format_spec else ""
    return call_at_compile_time(ctx, format, (convert(value), spec))


EXPRESSIONS = {
    ast.Name: name,
    ast.Constant: constant,
    ast.Tuple: display,
    ast.List: display,
    ast.Subscript: subscript,
    ast.Slice: slice_,
    ast.JoinedStr: f_string,
}
