"""What a name or an expression stands for while a kernel is compiled.

A `Tensor` is a value of the program that is being compiled: a scalar or a tile. Everything else is a compile-time value
and is held as the Python object itself: numbers, strings, None, dtypes, functions, modules, and tuples, which may mix.

    BLOCK                   128                                    (an int)
    tl.arange(0, BLOCK)     Tensor(%0, <['128'], int32>)
    (BLOCK, pid)            (128, Tensor(%pid, int32))
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

from deuteron.ir.builder import MOST_OPS
from deuteron.language.aggregate import Aggregate
from deuteron.language.constant import rebuild
from deuteron.language.types import dtype

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from deuteron.frontend.context import Context

Value = Any
"""A Tensor, BlockPointer or Descriptor, a compile-time Python value, or a tuple of values."""


@dataclass(frozen=True)
class Tensor:
    """A value of the program; `type` is the language's type (signedness lives in it), `handle` the SSA value."""

    handle: SSAValue
    type: Any

    @property
    def dtype(self) -> Any:
        """The type of one element."""
        return self.type.scalar

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents, () for a scalar."""
        return tuple(self.type.shape) if self.type.is_block() else ()


@dataclass(frozen=True)
class BlockPointer:
    """A pointer to a block of a tensor in memory; `type` is a `pointer_type` of a `block_type`."""

    handle: SSAValue
    type: Any

    @property
    def block(self) -> Any:
        """The type of the block."""
        return self.type.element_ty


@dataclass(frozen=True)
class Descriptor:
    """A descriptor of a tensor in memory; `type` is a `tensor_descriptor_type`, shape and strides are scalars."""

    handle: SSAValue
    type: Any
    shape: tuple[Tensor, ...]
    strides: tuple[Tensor, ...]


@dataclass(frozen=True)
class BoundMethod:
    """A method together with the value that it was taken from: a Tensor, a Descriptor, an aggregate."""

    function: Callable[..., Value]
    receiver: Value


RUNTIME = (Tensor, BlockPointer, Descriptor)


_ITERABLES = (tuple, list, range, dict, type({}.keys()), type({}.values()), type({}.items()))


def known_items(ctx: Context, value: Value) -> tuple[Value, ...] | None:
    """The items of what has as many while the kernel is compiled, in the order that Python has them; else None.

    Raises CompilationError on a range of more than a kernel may have ops: they would take all memory.
    """
    if isinstance(value, range) and value[MOST_OPS:]:
        raise ctx.error(
            f"{value} has more than {MOST_OPS} items, too many to go over one by one while a kernel is compiled. Use "
            "tl.range for loops that run often."
        )
    return tuple(value) if isinstance(value, _ITERABLES) else None


def is_number(value: Value) -> bool:
    """Whether a compile-time value is a number, so that it can become a Tensor."""
    return isinstance(value, (bool, int, float))


def is_runtime(value: Value) -> bool:
    """Whether any part of a value is known only when the program runs."""
    if isinstance(value, tuple):
        return any(is_runtime(item) for item in value)
    if isinstance(value, dict):
        return any(is_runtime(item) for item in value.values())
    return isinstance(value, RUNTIME)


def tensors_in(value: Value) -> list[Tensor]:
    """The Tensors in a value, from left to right; what else has a handle counts as one, before its parts."""
    if isinstance(value, tuple):
        return [tensor for item in value for tensor in tensors_in(item)]
    if isinstance(value, Descriptor):
        return [Tensor(value.handle, value.type), *value.shape, *value.strides]
    if isinstance(value, BlockPointer):
        return [Tensor(value.handle, value.type)]
    return [value] if isinstance(value, Tensor) else []


def with_handles(value: Value, handles: Iterator[SSAValue]) -> Value:
    """The value with the next handles in the places of those of `tensors_in(value)`."""
    if isinstance(value, tuple):
        return rebuild(value, [with_handles(item, handles) for item in value])
    if isinstance(value, Descriptor):
        handle, shape = next(handles), with_handles(value.shape, handles)
        return Descriptor(handle, value.type, shape, with_handles(value.strides, handles))
    return replace(value, handle=next(handles)) if isinstance(value, RUNTIME) else value


def fixed_items(value: tuple) -> tuple[bool, ...]:
    """Which items of a tuple stay known at compile time: the constexpr fields of an aggregate."""
    return value._fixed if isinstance(value, Aggregate) else (False,) * len(value)


def kept_items(value: tuple) -> tuple[bool, ...]:
    """Which items keep their numbers in an assignment: of an aggregate the constexpr fields, and its tuples."""
    if not isinstance(value, Aggregate):
        return (False,) * len(value)
    pairs = zip(value, value._fixed, strict=True)
    return tuple(is_fixed or (isinstance(item, tuple) and not isinstance(item, Aggregate)) for item, is_fixed in pairs)


def is_same_kind(left: tuple, right: tuple) -> bool:
    """Whether two tuples have as many items, of the same names and, where they are aggregates, the same class."""
    if isinstance(left, Aggregate) or isinstance(right, Aggregate):
        return type(left) is type(right)
    return len(left) == len(right) and getattr(left, "_fields", None) == getattr(right, "_fields", None)


def is_same(left: Value, right: Value) -> bool:
    """Whether two values cannot be told apart: the same Tensors, the same compile-time values of the same types."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return is_same_kind(left, right) and all(map(is_same, left, right))
    if isinstance(left, RUNTIME) and isinstance(right, RUNTIME):
        return left.handle is right.handle and left.type == right.type
    if isinstance(left, float) and isinstance(right, float):
        return type(left) is type(right) and left.hex() == right.hex()  # 0.0 == -0.0
    return left is right or (type(left) is type(right) and bool(left == right))


def give_name(handle: SSAValue, name: str) -> None:
    """Let the IR show a value under the name of its variable, unless that has letters that MLIR's names have not.

    A number at the end is not part of such a name: nothing is left of `_1`.
    """
    if handle.is_valid_name(name) and handle.extract_valid_name(name):
        handle.name_hint = name


def left_over_comma(value: Value) -> str:
    """The way out of a tuple of one, `x = (y,)`: before version 3.2 of the language that was `y`."""
    is_one = type(value) is tuple and len(value) == 1
    return " A comma made it a tuple of one: leave it out." if is_one else ""


def describe(value: Value) -> str:
    """How a value is shown in an error: the type of a Tensor, the Python value of anything else."""
    if isinstance(value, RUNTIME):
        return str(value.type)
    if isinstance(value, tuple):
        names = [f"{name}=" for name in getattr(value, "_fields", ())] or [""] * len(value)
        shown = ", ".join(f"{name}{describe(item)}" for name, item in zip(names, value, strict=True))
        if hasattr(value, "_fields"):
            return f"{type(value).__name__}({shown})"
        return f"({shown},)" if len(value) == 1 else f"({shown})"
    if isinstance(value, type | ModuleType):
        return f"{'class' if isinstance(value, type) else 'module'} '{value.__name__}'"
    if isinstance(value, dtype):
        return re.sub(r"\b\w+\.language\.", "tl.", repr(value))
    if callable(value) and hasattr(value, "__name__"):
        return f"function {value.__name__}"
    shown = repr(value)
    return f"a value of type {type(value).__name__}" if " at 0x" in shown else shown
