"""What a function of libdevice is in Python: its types and the symbol for each of them, and a docstring, without logic.

    sqrt = extern("The square root of `x`.", "fp32 -> fp32: sqrtf", "fp64 -> fp64: sqrt")
    sqrt.overloads[0]        Overload(parameters=(fp32,), result=fp32, symbol="__nv_sqrtf")
    SYMBOLS["__nv_sqrtf"]    the function's name and that overload

A symbol is what an op `tt.extern_elementwise` calls the function by: `__nv_` and the name that CUDA gives it.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from deuteron.language.builtin import Builtin
from deuteron.language.types import dtype, int1

PREFIX = "__nv_"


class Overload(NamedTuple):
    """The types that a function takes together, the type that it gives for them, and what it is called then."""

    parameters: tuple[dtype, ...]
    result: dtype
    symbol: str

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.parameters))}) -> {self.result}"


class Extern(Builtin):
    """A function of libdevice. All overloads take the same number of arguments.

    `result`: the type that a kernel gets, where it is not that of the overload: int1 for a predicate.
    """

    def __init__(self, doc: str, overloads: tuple[Overload, ...], result: dtype | None = None):
        self.__doc__ = f"{doc}\n\nTypes: {'; '.join(map(str, overloads))}; any other is an error."
        self.overloads, self.result = overloads, result

    @property
    def arity(self) -> int:
        return len(self.overloads[0].parameters)

    @property
    def signature(self) -> inspect.Signature:  # type: ignore[override]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(f"arg{i}", kind) for i in range(self.arity)])


def extern(doc: str, *overloads: str) -> Extern:
    """A function; each overload as `types -> type: symbol`, the symbol without its prefix."""
    return Extern(doc, tuple(map(_overload, overloads)))


def predicate(doc: str, *overloads: str) -> Extern:
    """A function whose int32 is true or false."""
    return Extern(doc, tuple(map(_overload, overloads)), int1)


def of_floats(doc: str, name: str, arity: int = 1) -> Extern:
    """A function of float and of double, as C's library names them."""
    return extern(doc, *(f"{', '.join([t] * arity)} -> {t}: {name}{suffix}" for t, suffix in _C_SUFFIXES.items()))


def to_whole(doc: str, name: str, result: str) -> Extern:
    """A function of float and of double that gives an integer."""
    return extern(doc, *(f"{t} -> {result}: {name}{suffix}" for t, suffix in _C_SUFFIXES.items()))


def rounded(doc: str, name: str, arity: int) -> tuple[Extern, ...]:
    """An operation on float and on double in each rounding: to nearest, towards zero, down, up."""
    names = [("fp32", f"{name}f" if name == "fma" else f"f{name}"), ("fp64", "fma" if name == "fma" else f"d{name}")]
    return tuple(
        extern(f"{doc}, {words}.", *(f"{', '.join([t] * arity)} -> {t}: {root}_{mode}" for t, root in names))
        for mode, words in ROUNDINGS.items()
    )


def converted(doc: str, name: str, source: str, result: str) -> tuple[Extern, ...]:
    """A conversion in each rounding."""
    return tuple(
        extern(f"{doc}, {words}.", f"{source} -> {result}: {name}_{mode}") for mode, words in ROUNDINGS.items()
    )


def name_all(namespace: dict[str, Any]) -> dict[str, tuple[str, Overload]]:
    """Name the functions of a module after its variables; gives name and overload of each symbol."""
    symbols = {}
    for name, function in namespace.items():
        if isinstance(function, Extern):
            function.__name__ = function.__qualname__ = name
            function.__module__ = namespace["__name__"]
            symbols.update({overload.symbol: (name, overload) for overload in function.overloads})
    return symbols


ROUNDINGS = {
    "rn": "rounded to nearest even",
    "rz": "rounded towards zero",
    "rd": "rounded down",
    "ru": "rounded up",
}
_C_SUFFIXES = {"fp32": "f", "fp64": ""}


def _overload(text: str) -> Overload:
    types, _, symbol = text.partition(": ")
    parameters, _, result = types.partition(" -> ")
    return Overload(tuple(map(dtype, parameters.split(", "))), dtype(result), PREFIX + symbol)
