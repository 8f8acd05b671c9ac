"""What stands after a dot, and `getattr`, `hasattr`, which ask for the same by name.

x.to(tl.float16)    the method `to` of `semantics.METHODS`, bound to x
ptr.dtype           the attribute `dtype` of `semantics.ATTRIBUTES`; there are tables of other kinds
pair.total(2)       a method of an aggregate, bound to it
math.inf            an attribute of a module, at compile time
BLOCK.value         what a constexpr parameter holds, as Triton's users write it
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any

from deuteron.errors import CompilationError, suggest
from deuteron.frontend.advice import for_method, for_module
from deuteron.frontend.context import Context
from deuteron.frontend.rules import run_rule
from deuteron.frontend.semantics import (
    ATTRIBUTES,
    BLOCK_POINTER_ATTRIBUTES,
    BLOCK_POINTER_METHODS,
    DESCRIPTOR_ATTRIBUTES,
    DESCRIPTOR_METHODS,
    METHODS,
)
from deuteron.frontend.values import (
    RUNTIME,
    BlockPointer,
    BoundMethod,
    Descriptor,
    Tensor,
    Value,
    describe,
    is_number,
    left_over_comma,
)
from deuteron.language.aggregate import Aggregate
from deuteron.language.builtin import Builtin
from deuteron.language.constant import unwrap
from deuteron.language.functions.function import Function
from deuteron.language.functions.keys import is_kernel_class
from deuteron.language.functions.source_functions import CompileTimeFunction, source_function
from deuteron.language.types import constexpr_type, tuple_type

_ABSENT: Any = object()
# Attributes and methods of what is known only at run time.
_TABLES: dict[type, tuple[Mapping[str, Callable], Mapping[str, Callable]]] = {
    Tensor: (ATTRIBUTES, METHODS),
    BlockPointer: (BLOCK_POINTER_ATTRIBUTES, BLOCK_POINTER_METHODS),
    Descriptor: (DESCRIPTOR_ATTRIBUTES, DESCRIPTOR_METHODS),
}


def attribute(ctx: Context, node: ast.Attribute) -> Value:
    return attribute_of(ctx, ctx.evaluate(node.value), node.attr)


def attribute_of(ctx: Context, owner: Value, name: str) -> Value:
    """An attribute of a value, or a method bound to it; raises CompilationError where it has none of that name."""
    found = _find(ctx, owner, name)
    if found is _ABSENT:
        raise _missing(ctx, owner, name)
    return found


def _find(ctx: Context, owner: Value, name: str) -> Value:
    if isinstance(owner, RUNTIME):
        return _of_runtime(ctx, owner, name)
    if isinstance(owner, Aggregate) and isinstance(inspect.getattr_static(owner, name, None), Function):
        return BoundMethod(getattr(owner, name), owner)
    if (isinstance(owner, list) and name in _LIST_METHODS) or (isinstance(owner, dict | set) and name in _CHANGES):
        return _ABSENT
    found = getattr(owner, name, _ABSENT)
    if isinstance(found, FunctionType) and (isinstance(owner, Aggregate) or is_kernel_class(owner)):
        return CompileTimeFunction(found)  # a function of the class in plain Python
    if found is not _ABSENT:
        return source_function(found) or unwrap(found)
    return _of_constexpr(owner, name)


def _of_constexpr(value: Value, name: str) -> Value:
    """What a constexpr has besides the attributes of what it holds."""
    if name == "value":
        return value
    if name == "to" and is_number(value):
        return BoundMethod(METHODS["to"], value)  # an argument that is 1 is known, and converted all the same
    return type_of_value(value) if name == "type" and not isinstance(value, ModuleType) else _ABSENT


def type_of_value(value: Value) -> Any:
    """`.type` of any value: of a tuple those of its items, of what is known that it is a constexpr."""
    if isinstance(value, RUNTIME):
        return value.type
    if isinstance(value, tuple):
        return tuple_type(map(type_of_value, value), getattr(value, "_fields", None))
    return constexpr_type(value)


def _of_runtime(ctx: Context, owner: Tensor | BlockPointer | Descriptor, name: str) -> Value:
    attributes, methods = _TABLES[type(owner)]
    if name in attributes:
        return run_rule(ctx, name, attributes[name], (owner,), {})
    return BoundMethod(methods[name], owner) if name in methods else _ABSENT


def _missing(ctx: Context, owner: Value, name: str) -> CompilationError:
    if isinstance(owner, Tensor) and name == "value":
        return ctx.error(f"'.value' is of a constexpr, got {describe(owner)}, which is known only at run time.")
    if isinstance(owner, RUNTIME):
        known = [name for table in _TABLES[type(owner)] for name in table]
        way_out = for_method(owner.type, name, known) if isinstance(owner, Tensor) else suggest(name, known)
        return ctx.error(f"A value of type {owner.type} has no '{name}'.{way_out}")
    if isinstance(owner, tuple | list) and name in _LIST_METHODS:
        return ctx.error(f"A list is a tuple in a kernel and has no '{name}'. {_LIST_METHODS[name]}")
    if isinstance(owner, dict | set) and name in _CHANGES:
        changed = f"'{name}' would change a {type(owner).__name__} of the program, when the kernel is compiled"
        return ctx.error(f"{changed}. Change it before the launch.")
    if isinstance(owner, ModuleType):
        return ctx.error(f"Module '{owner.__name__}' has no '{name}'{for_module(owner, name)}")
    if is_number(owner) and (name in METHODS or name in ATTRIBUTES):
        known = "It is known when the kernel is compiled, as an argument that is 1 is"
        return ctx.error(f"{owner} has no '{name}'. {known}: take tl.cast({owner}, dtype).")
    way_out = " Call it." if isinstance(owner, Builtin) else left_over_comma(owner) or suggest(name, dir(owner))
    return ctx.error(f"{describe(owner)} has no '{name}'.{way_out}")


_LIST_METHODS = {
    "append": "Build a longer one, as in `items = items + (x,)`.",
    "extend": "Build a longer one, as in `items = items + others`.",
    "insert": "Build a new one, as in `items = items[:1] + (x,) + items[1:]`.",
    "pop": "Build a shorter one, as in `items = items[:-1]`.",
    "remove": "Build a new one without it.",
    "clear": "Assign an empty one, `items = ()`.",
    "sort": "Compare the items one by one, or sort a tile with tl.sort.",
    "reverse": "Build a new one, as in `items = items[::-1]`.",
}


# Methods of dictionaries and sets that change them.
_CHANGES = frozenset(
    ("update", "pop", "popitem", "setdefault", "clear", "add", "discard", "remove", "intersection_update")
    + ("difference_update", "symmetric_difference_update")
)


def getattr_(ctx: Context, owner: Value, name: str, *default: Value) -> Value:
    """Python's getattr, of run-time values too."""
    _check_name(ctx, name)
    found = _find(ctx, owner, name)
    if found is not _ABSENT:
        return found
    if default:
        return default[0]
    raise _missing(ctx, owner, name)


def hasattr_(ctx: Context, owner: Value, name: str) -> bool:
    """Python's hasattr, of run-time values too."""
    _check_name(ctx, name)
    return _find(ctx, owner, name) is not _ABSENT


def _check_name(ctx: Context, name: Value) -> None:
    if not isinstance(name, str):
        raise ctx.error(f"The name of an attribute is text that is known at compile time, got {describe(name)}.")


RULES = {getattr: getattr_, hasattr: hasattr_}
EXPRESSIONS = {ast.Attribute: attribute}
