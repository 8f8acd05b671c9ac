"""Run-time values as functions of Python see them, which a kernel calls while it is compiled.

    @core.builtin
    def rounded(x, _semantic=None):                       isinstance(x, tl.tensor)
        if x.dtype.is_floating():                         attributes are those that kernels see
            x = x.to(tl.int32, _semantic=_semantic)       a method is an op where the kernel makes the call
        return x.__add__(1, _semantic=_semantic)          and so is an operator, which may be written `x + 1`

Whether such a value is true, or how large it is, nobody knows yet: that is a TypeError.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from deuteron.language.builtin import KernelCalls


class Traced:
    """A value of a kernel that is being compiled; `_kernel` does what it is asked for. None exists otherwise."""

    _value: Any
    _kernel: KernelCalls

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_value", "_kernel"):
            return object.__getattribute__(self, name)
        return self._kernel.attribute(self._value, name)

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{self!r} is known only when the kernel runs, and decides nothing while it is compiled")

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(f"{self!r} has no items")

    def __repr__(self) -> str:
        return f"a value of type {self.type}"

    __hash__ = object.__hash__


def traced(cls: type[Traced], value: Any, kernel: KernelCalls) -> Traced:
    """A value of the class that functions of Python know it by."""
    made = object.__new__(cls)
    made._value, made._kernel = value, kernel
    return made


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor")
_OTHERS = ("lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "invert", "getitem")

OPERATORS: dict[str, Callable[..., Any]] = {
    f"__{name.rstrip('_')}__": getattr(operator, name) for name in (*_BINARY, *_OTHERS)
}
"""What the methods that Python has for operators do."""
REFLECTED: dict[str, Callable[..., Any]] = {f"__r{name.rstrip('_')}__": getattr(operator, name) for name in _BINARY}
"""The same of those whose value is the right operand."""


def _method(operation: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Traced, *operands: Any, _semantic: Any = None, _builder: Any = None) -> Any:
        return self._kernel.call(operation, (self, *operands), {})

    return method


def _reflected(operation: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Traced, other: Any, _semantic: Any = None, _builder: Any = None) -> Any:
        return self._kernel.call(operation, (other, self), {})

    return method


for _name, _operation in OPERATORS.items():
    setattr(Traced, _name, _method(_operation))
for _name, _operation in REFLECTED.items():
    setattr(Traced, _name, _reflected(_operation))
