"""Calls: the callee is found by object identity and is one of

    a function written in the language      inlined: its body is compiled here, in a frame of its own
    a stub of the language, an operator     its semantic function from `semantics.RULES` runs
    a method of a Tensor                    one of the above from `semantics.METHODS`, with the Tensor as first argument
    a function of Python                    called now, with compile-time arguments

Whatever a callee's arguments are, they have been evaluated before, from left to right.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType, BuiltinMethodType, FunctionType, MethodType
from typing import Any

from deuteron import language
from deuteron.errors import DeuteronError, InternalError
from deuteron.frontend.context import Context
from deuteron.frontend.inline import inline
from deuteron.frontend.semantics import RULES
from deuteron.frontend.values import Descriptor, Tensor, Value, describe, is_runtime
from deuteron.language.builtin import Builtin
from deuteron.language.constant import constexpr, unwrap
from deuteron.language.function import CompileTimeFunction, Function

_PYTHON_BUILTINS = (abs, bool, divmod, enumerate, float, getattr, hasattr, int, len, max, min, pow, range, round, str)
_COMPILE_TIME_TYPES = (CompileTimeFunction, BuiltinFunctionType, BuiltinMethodType, MethodType)


@dataclass(frozen=True)
class BoundMethod:
    """A method together with the Tensor or Descriptor that it was taken from."""

    function: Callable[..., Value]
    receiver: Tensor | Descriptor


def call(ctx: Context, node: ast.Call) -> Value:
    callee = ctx.evaluate(node.func)
    args: list[Value] = []
    for arg in node.args:
        args.extend(_starred(ctx, arg) if isinstance(arg, ast.Starred) else [ctx.evaluate(arg)])
    kwargs = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise ctx.error("'**' in a call is not supported in a kernel. Write the keywords out.")
        kwargs[keyword.arg] = ctx.evaluate(keyword.value)
    return apply(ctx, callee, args, kwargs)


def _starred(ctx: Context, node: ast.Starred) -> tuple[Value, ...]:
    value = ctx.evaluate(node.value)
    if not isinstance(value, tuple):
        raise ctx.error(f"'*' in a call unpacks a tuple, got {describe(value)}.")
    return value


def apply(ctx: Context, callee: Any, args: Sequence[Value], kwargs: Mapping[str, Value] | None = None) -> Value:
    """The result of a call on evaluated arguments."""
    kwargs = kwargs or {}
    if isinstance(callee, BoundMethod):
        return _call_method(ctx, callee.function, (callee.receiver, *args), kwargs)
    if isinstance(callee, Function):
        return inline(ctx, callee, args, kwargs)
    if callable(callee) and callee in _RULES and _needs_rule(callee, args, kwargs):
        return run_rule(ctx, callee, _RULES[callee], args, kwargs)
    return _call_python(ctx, callee, args, kwargs)


def _call_method(
    ctx: Context, function: Callable[..., Value], args: Sequence[Value], kwargs: Mapping[str, Value]
) -> Value:
    """A method is a function of the language or a semantic function."""
    if isinstance(function, Function):
        return inline(ctx, function, args, kwargs)
    return run_rule(ctx, function, function, args, kwargs)


def _needs_rule(callee: Any, args: Sequence[Value], kwargs: Mapping[str, Value]) -> bool:
    """Whether only a rule can answer: Python's own functions answer on compile-time values themselves."""
    return callee not in _PYTHON_BUILTINS or is_runtime((*args, *kwargs.values()))


def run_rule(
    ctx: Context, name: Any, rule: Callable[..., Value], args: Sequence[Value], kwargs: Mapping[str, Value]
) -> Value:
    """Run a semantic function; what goes wrong in it otherwise than by an error of ours is a defect, and is located."""
    ctx.stamp()
    try:
        return rule(ctx, *args, **kwargs)
    except DeuteronError:
        raise
    except TypeError as error:
        _check_arguments(ctx, name, rule, args, kwargs)
        raise _internal_error(ctx, name, error) from error
    except Exception as error:
        raise _internal_error(ctx, name, error) from error


def _check_arguments(ctx: Context, name: Any, rule: Callable, args: Sequence[Value], kwargs: Mapping) -> None:
    try:
        inspect.signature(rule).bind(ctx, *args, **kwargs)
    except TypeError as error:
        raise ctx.error(f"{_name_of(name)}: {error}. {_usage(name, rule)}") from None


def _usage(name: Any, rule: Callable[..., Value]) -> str:
    parameters = list(inspect.signature(rule).parameters)[1:]
    return f"Its parameters are ({', '.join(parameters)})."


def _internal_error(ctx: Context, name: Any, error: Exception) -> InternalError:
    message = f"compiling {_name_of(name)} failed with {type(error).__name__}: {error}. This is a defect of Deuteron."
    return InternalError(message, ctx.frame.location(), ctx.call_chain)


def _name_of(callee: Any) -> str:
    return f"'{getattr(callee, '__name__', callee)}'"


def is_instance(ctx: Context, value: Value, classes: Any) -> bool:
    """isinstance as kernels ask it: what is no Tensor is a constexpr."""
    accepted = classes if isinstance(classes, tuple) else (classes,)
    if isinstance(value, Tensor):
        return language.tensor in accepted
    if isinstance(value, Descriptor):
        return language.tensor_descriptor in accepted
    return constexpr in accepted or isinstance(value, tuple(cls for cls in accepted if isinstance(cls, type)))


def make_constexpr(ctx: Context, value: Value) -> Value:
    if is_runtime(value):
        raise ctx.error(f"tl.constexpr needs a compile-time value, got {describe(value)}.")
    return value


_RULES = RULES | {isinstance: is_instance, constexpr: make_constexpr}


def _call_python(ctx: Context, callee: Any, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    if isinstance(callee, type) and issubclass(callee, tuple) and callee is not tuple:
        return call_at_compile_time(ctx, callee, args, kwargs)
    if isinstance(callee, Builtin):
        raise ctx.error(f"tl.{callee.__name__} is not supported yet.")
    if not callable(callee):
        raise ctx.error(f"{describe(callee)} cannot be called.")
    if not _runs_at_compile_time(callee):
        is_user_function = isinstance(callee, FunctionType)
        way_out = " Decorate it with @jit to call it in a kernel." if is_user_function else _namesake(callee)
        raise ctx.error(f"{_name_of(callee)} is a function of Python.{way_out}")
    if callee is not len and is_runtime((*args, *kwargs.values())):
        shown = ", ".join(describe(value) for value in (*args, *kwargs.values()))
        needs = "runs at compile time and needs compile-time values"
        raise ctx.error(f"{_name_of(callee)} {needs}, got ({shown}).{_namesake(callee)}")
    return call_at_compile_time(ctx, callee, args, kwargs)


def _namesake(callee: Any) -> str:
    """Where the language has a function of that name, the advice to use it."""
    name = getattr(callee, "__name__", "")
    return f" Use tl.{name}." if hasattr(language, name) else ""


def _runs_at_compile_time(callee: Any) -> bool:
    """Some builtins, functions of modules written in C (math), methods of compile-time values, classes, and
    what is decorated so."""
    if getattr(callee, "__module__", None) == "builtins":
        return callee in _PYTHON_BUILTINS
    return isinstance(callee, (*_COMPILE_TIME_TYPES, type))


def call_at_compile_time(
    ctx: Context, function: Callable[..., Any], args: Sequence[Value], kwargs: Mapping[str, Value] | None = None
) -> Value:
    """The result of a function of Python; its exception is an error of the kernel."""
    try:
        result = function(*args, **(kwargs or {}))
    except Exception as error:
        shown = ", ".join(describe(value) for value in args)
        raise ctx.error(
            f"{_name_of(function)} of ({shown}) fails at compile time: {type(error).__name__}: {error}"
        ) from error
    return unwrap(tuple(result) if isinstance(result, (list, enumerate)) else result)


EXPRESSIONS = {ast.Call: call}
