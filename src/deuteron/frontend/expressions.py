"""Expressions other than operators and calls: names, constants, tuples, attributes, subscripts, f-strings.

    x[:, None]          operator.getitem(x, (slice(None), None)), by its rule
    x.to(tl.float16)    the method `to` of `semantics.METHODS`, bound to x
    ptr.dtype           the attribute `dtype` of `semantics.ATTRIBUTES`; of descriptors there are own tables
    math.inf            an attribute of a module, at compile time
    BLOCK.value         what a constexpr parameter holds, as Triton's users write it

Compile-time values are Python objects; what they are asked for is asked of Python.
"""

from __future__ import annotations

import ast
import operator
from types import ModuleType
from typing import Any

from deuteron.frontend.calls import BoundMethod, call_at_compile_time, run_rule
from deuteron.frontend.context import Context
from deuteron.frontend.operators import operate
from deuteron.frontend.scope import suggest
from deuteron.frontend.semantics import ATTRIBUTES, DESCRIPTOR_ATTRIBUTES, DESCRIPTOR_METHODS, METHODS
from deuteron.frontend.values import Descriptor, Tensor, Value, describe, is_runtime
from deuteron.language.constant import unwrap


def name(ctx: Context, node: ast.Name) -> Value:
    return ctx.scope.lookup(ctx, node.id)


def constant(ctx: Context, node: ast.Constant) -> Value:
    if isinstance(node.value, (complex, bytes)) or node.value is Ellipsis:
        raise ctx.error(
            f"{node.value!r} is not supported in a kernel. Constants are numbers, booleans, strings and None."
        )
    return node.value


def display(ctx: Context, node: ast.Tuple | ast.List) -> Value:
    """A tuple; a list is one too, as nothing in a kernel can be changed in place."""
    return tuple(ctx.evaluate(item) for item in node.elts)


def attribute(ctx: Context, node: ast.Attribute) -> Value:
    owner = ctx.evaluate(node.value)
    if isinstance(owner, Tensor):
        return tensor_attribute(ctx, owner, node.attr)
    if isinstance(owner, Descriptor):
        return descriptor_attribute(ctx, owner, node.attr)
    found = getattr(owner, node.attr, _ABSENT)
    if found is not _ABSENT:
        return unwrap(found)
    if node.attr == "value":
        return owner
    where = f"Module '{owner.__name__}'" if isinstance(owner, ModuleType) else describe(owner)
    raise ctx.error(f"{where} has no '{node.attr}'.{suggest(node.attr, dir(owner))}")


_ABSENT: Any = object()


def tensor_attribute(ctx: Context, tensor: Tensor, name: str) -> Value:
    """An attribute of a Tensor, or a method bound to it."""
    if name in ATTRIBUTES:
        return run_rule(ctx, name, ATTRIBUTES[name], (tensor,), {})
    if name in METHODS:
        return BoundMethod(METHODS[name], tensor)
    if name == "value":
        raise ctx.error(f"'.value' is of a constexpr, got {describe(tensor)}, which is known only at run time.")
    raise ctx.error(f"A value of type {tensor.type} has no '{name}'.{suggest(name, [*ATTRIBUTES, *METHODS])}")


def descriptor_attribute(ctx: Context, descriptor: Descriptor, name: str) -> Value:
    """An attribute of a descriptor, or a method bound to it."""
    if name in DESCRIPTOR_ATTRIBUTES:
        return run_rule(ctx, name, DESCRIPTOR_ATTRIBUTES[name], (descriptor,), {})
    if name in DESCRIPTOR_METHODS:
        return BoundMethod(DESCRIPTOR_METHODS[name], descriptor)
    known = [*DESCRIPTOR_ATTRIBUTES, *DESCRIPTOR_METHODS]
    raise ctx.error(f"A value of type {descriptor.type} has no '{name}'.{suggest(name, known)}")


def subscript(ctx: Context, node: ast.Subscript) -> Value:
    owner, index = ctx.evaluate(node.value), ctx.evaluate(node.slice)
    if isinstance(owner, Tensor):
        return operate(ctx, operator.getitem, owner, index)
    if is_runtime(index):
        raise ctx.error(
            f"{describe(owner)} is indexed at compile time, got the run-time index {describe(index)}. Use a constant."
        )
    return call_at_compile_time(ctx, operator.getitem, (owner, index))


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
    ast.Attribute: attribute,
    ast.Subscript: subscript,
    ast.Slice: slice_,
    ast.JoinedStr: f_string,
}
