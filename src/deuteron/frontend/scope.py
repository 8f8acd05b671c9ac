"""The variables of one function while it is compiled, and what the names that are no variables mean.

    x = tl.load(p)      assign("x", Tensor)
    x                   lookup: the variable, else a variable of an enclosing function, a global, a builtin
    for ...: y = x      after the loop `y` is lost: the loop may not have run; a use of it says so

Of the globals only those can be used that do not change behind a compiled kernel's back.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from types import ModuleType
from typing import TYPE_CHECKING, Any

from deuteron.frontend.advice import for_name
from deuteron.frontend.values import Value, describe
from deuteron.language.constant import constexpr, unwrap
from deuteron.language.functions.function import Function
from deuteron.language.functions.references import is_local
from deuteron.language.functions.source_functions import source_function
from deuteron.language.types import dtype
from deuteron.settings import settings

if TYPE_CHECKING:
    from deuteron.frontend.context import Context


_UNDEFINED: Any = object()


class Scope:
    """Variables of a function. `lost` holds names that were assigned but have no value here, with the reason, and
    `declared` those of which an annotation without a value says that they are constexprs; `numbers` has the variables
    that were assigned numbers, which made run-time values of them, with these and expressions for the numbers.
    """

    def __init__(self, function: Function, variables: Mapping[str, Value]):
        self.function = function
        self.variables = dict(variables)
        self.lost: dict[str, str] = {}
        self.declared: set[str] = set()
        self.numbers: dict[str, tuple[Value, ast.expr]] = {}

    def assign(self, name: str, value: Value) -> None:
        self.variables[name] = value
        self.lost.pop(name, None)

    def lose(self, name: str, reason: str) -> None:
        """From here on the name has no value."""
        self.variables.pop(name, None)
        self.lost[name] = reason

    def snapshot(self) -> tuple[dict[str, Value], dict[str, str]]:
        """The state to return to with `restore`."""
        return dict(self.variables), dict(self.lost)

    def restore(self, snapshot: tuple[dict[str, Value], dict[str, str]]) -> None:
        variables, lost = snapshot
        self.variables, self.lost = dict(variables), dict(lost)

    def lookup(self, ctx: Context, name: str) -> Value:
        """What the name means; raises CompilationError, with names that are alike, where it means nothing."""
        if name in self.variables:
            return self.variables[name]
        if name in self.lost:
            raise ctx.error(self.lost[name])
        if is_local(self.function.fn, name):
            raise ctx.error(f"'{name}' is used before it is assigned.{self._if_global(name)}")
        value = _UNDEFINED
        with suppress(KeyError):
            value = self.function.resolve(name)
        if value is _UNDEFINED:
            raise ctx.error(f"'{name}' is not defined.{self._suggestion(name)}")
        if self.function.is_builtin(name):
            return value
        if isinstance(value, constexpr) or self.function.is_annotated_constexpr(name):
            return source_function(value) or unwrap(value)
        return source_function(value) or check_global(ctx, name, value)

    def _suggestion(self, name: str) -> str:
        return for_name(name, self.variables, self.function.fn.__globals__)

    def _if_global(self, name: str) -> str:
        is_global = name in self.function.fn.__globals__
        return " What a function assigns is its own: the global of that name is another." if is_global else ""


def check_global(ctx: Context, name: str, value: Any) -> Value:
    """The value of a global, a `tl.constexpr` unwrapped; raises CompilationError for data that may change."""
    if hasattr(value, "arg_names"):  # an autotuner, or heuristics
        raise ctx.error(f"'{name}' is launched from Python only. Call the @jit function below its other decorators.")
    if not _is_fixed(value) and (_is_array(value) or not settings.allow_non_constexpr_globals):
        is_closure = name in ctx.scope.function.fn.__code__.co_freevars
        kind = "variable of an enclosing function" if is_closure else "global variable"
        raise ctx.error(
            f"'{name}' is a {kind} ({describe(value):.60}), which may change after the kernel is compiled. "
            f"{_way_in(name, value)}"
        )
    return unwrap(value)


def _way_in(name: str, value: Any) -> str:
    """How data gets into a kernel."""
    if _is_array(value):
        return "Pass it as an argument, and load from it."
    return (
        f"Write `{name} = tl.constexpr(...)` where it is defined, or pass it as an argument; for kernels of others "
        "there is TRITON_ALLOW_NON_CONSTEXPR_GLOBALS=1."
    )


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array_interface__") or hasattr(value, "data_ptr")


def _is_fixed(value: Any) -> bool:
    """Constexprs, modules, functions, classes, dtypes, members of enums, None, and tuples of these."""
    if isinstance(value, tuple):
        return all(map(_is_fixed, value))
    return value is None or isinstance(value, (constexpr, ModuleType, dtype, Enum)) or callable(value)
