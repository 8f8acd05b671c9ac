"""Compile-time constants: `constexpr`, which marks and holds them, and `const`.

    def kernel(x, n, BLOCK: tl.constexpr): ...      a parameter that is known when the kernel is compiled
    WIDTH = tl.constexpr(128)                       a global that kernels may use
    half = WIDTH // 2                               constexpr[64]: on the host it computes like what it holds

Inside a kernel compile-time values are plain Python values; a constexpr is unwrapped where it is read.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from deuteron.language.types import constexpr_type


class const:
    """Annotation of a pointer parameter that a kernel must not store through."""


class constexpr:
    """A value known at compile time. Operators give a constexpr of the result; `.value` is what it holds."""

    def __init__(self, value: Any):
        self.value = value.value if isinstance(value, constexpr) else value

    @property
    def type(self) -> constexpr_type:
        """What this is for a type in a kernel."""
        return constexpr_type(unwrap(self.value))

    def __repr__(self) -> str:
        return f"constexpr[{self.value}]"

    def __hash__(self) -> int:
        return hash(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __index__(self) -> int:
        return operator.index(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.value)

    def __getitem__(self, index: Any) -> Any:
        return self.value[unwrap(index)]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.value(*args, **kwargs)

    def logical_and(self, other: Any) -> constexpr:
        return constexpr(self.value and unwrap(other))

    def logical_or(self, other: Any) -> constexpr:
        return constexpr(self.value or unwrap(other))


def unwrap(value: Any) -> Any:
    """What a constexpr holds, in tuples and lists too; of a scalar of NumPy the number; anything else as it is."""
    if isinstance(value, constexpr):
        return unwrap(value.value)
    if isinstance(value, list):
        return [unwrap(item) for item in value]
    if isinstance(value, tuple):
        return rebuild(value, [unwrap(item) for item in value])
    is_numpy_scalar = type(value).__module__ == "numpy" and hasattr(value, "item") and not getattr(value, "shape", (0,))
    return value.item() if is_numpy_scalar else value


def rebuild(value: tuple, items: Sequence[Any]) -> tuple:
    """A tuple of the kind of `value` (it may be a named tuple or an aggregate) with other items."""
    return value._make(items) if hasattr(value, "_make") else tuple(items)


def _unary(operation: Callable[[Any], Any]) -> Callable[[constexpr], constexpr]:
    return lambda self: constexpr(operation(self.value))


def _binary(operation: Callable[[Any, Any], Any]) -> Callable[[constexpr, Any], constexpr]:
    return lambda self, other: constexpr(operation(self.value, unwrap(other)))


def _reflected(operation: Callable[[Any, Any], Any]) -> Callable[[constexpr, Any], constexpr]:
    return lambda self, other: constexpr(operation(unwrap(other), self.value))


for _name in ("neg", "pos", "invert"):
    setattr(constexpr, f"__{_name}__", _unary(getattr(operator, _name)))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(constexpr, f"__{_name}__", _binary(getattr(operator, _name)))
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor"):
    _operation = getattr(operator, _name)
    setattr(constexpr, f"__{_name.rstrip('_')}__", _binary(_operation))
    setattr(constexpr, f"__r{_name.rstrip('_')}__", _reflected(_operation))
