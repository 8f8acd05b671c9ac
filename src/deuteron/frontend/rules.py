"""Running what a call or an attribute means: a semantic function on evaluated arguments, or a function of Python now.

    run_rule(ctx, tl.load, RULES[tl.load], (pointer,), {})       the ops of a load, its result
    call_at_compile_time(ctx, math.log2, (8,))                   3.0

What goes wrong otherwise than by an error of ours is located: it is a defect of a rule, or a kernel's own mistake.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import inf
from types import BuiltinFunctionType
from typing import Any

from deuteron.errors import DeuteronError, InternalError
from deuteron.frontend.context import Context
from deuteron.frontend.inline import misfit
from deuteron.frontend.python_values import from_python, kernel_calls, semantic_of, to_python
from deuteron.frontend.values import Tensor, Value, describe
from deuteron.language.builtin import Builtin
from deuteron.language.constant import unwrap
from deuteron.language.target_info import asked_for

_ITERATORS = (list, enumerate, zip, reversed, type(reversed(range(0))))


def run_rule(
    ctx: Context, name: Any, rule: Callable[..., Value], args: Sequence[Value], kwargs: Mapping[str, Value]
) -> Value:
    """Run a semantic function; what goes wrong in it otherwise than by an error of ours is a defect, and is located."""
    ctx.stamp()
    _check_flags(ctx, name, args, kwargs)
    try:
        return rule(ctx, *args, **kwargs)
    except DeuteronError:
        raise
    except TypeError as error:
        _check_arguments(ctx, name, rule, args, kwargs)
        raise _internal_error(ctx, name, error) from error
    except Exception as error:
        raise _internal_error(ctx, name, error) from error


def _check_flags(ctx: Context, name: Any, args: Sequence[Value], kwargs: Mapping[str, Value]) -> None:
    """What a rule asks of in Python is no value of the kernel, which Python takes for true."""
    for place, flag in _flags(name):
        value = args[place] if place < len(args) else kwargs.get(flag)
        if isinstance(value, Tensor):
            got = f"'{flag}' of {name_of(name)} is True or False, got {describe(value)}"
            if value.type.is_block():
                raise ctx.error(f"{got}. Its parameters are ({', '.join(inspect.signature(name).parameters)}).")
            raise ctx.error(
                f"{got}, which is known only at run time. Annotate the kernel's parameter as tl.constexpr, or call it "
                "in both branches of an `if`."
            )


@cache
def _flags(name: Any) -> tuple[tuple[float, str], ...]:
    """The parameters of a function of the language that are annotated as bool, and their places, if they have one."""
    if not isinstance(name, Builtin):
        return ()
    parameters = enumerate(inspect.signature(name).parameters.values())
    flags = ((place, one) for place, one in parameters if one.annotation in ("bool", "bool | None"))
    return tuple((inf if one.kind is one.KEYWORD_ONLY else place, one.name) for place, one in flags)


def _check_arguments(ctx: Context, name: Any, rule: Callable, args: Sequence[Value], kwargs: Mapping) -> None:
    signature = inspect.signature(rule)
    try:
        signature.bind(ctx, *args, **kwargs)
    except TypeError as error:
        raise misfit(ctx, name_of(name).strip("'"), list(signature.parameters)[1:], args, kwargs, error) from None


def _internal_error(ctx: Context, name: Any, error: Exception) -> InternalError:
    message = f"compiling {name_of(name)} failed with {type(error).__name__}: {error}. This is a defect of Deuteron."
    return InternalError(message, ctx.frame.location(), ctx.call_chain)


_SYMBOLS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "matmul": "@",
    "lshift": "<<",
    "rshift": ">>",
    "and_": "&",
    "or_": "|",
    "xor": "^",
    "invert": "~",
    "neg": "-",
    "pos": "+",
    "lt": "<",
    "le": "<=",
    "eq": "==",
    "ne": "!=",
    "ge": ">=",
    "gt": ">",
    "getitem": "[]",
    "contains": "in",
}


def name_of(callee: Any) -> str:
    """The name of what is called, of an operator its symbol, in quotes."""
    name = getattr(callee, "__name__", callee)
    is_operator = getattr(callee, "__module__", None) == "_operator"
    return f"'{_SYMBOLS.get(name, name) if is_operator else name}'"


def call_at_compile_time(
    ctx: Context, function: Callable[..., Any], args: Sequence[Value], kwargs: Mapping[str, Value] | None = None
) -> Value:
    """The result of a function of Python; its exception is an error of the kernel.

    One with a parameter `_semantic`, as Triton's own functions have it, can call functions of the language with it.
    """
    try:
        with asked_for(ctx.target):
            result = from_python(_run(ctx, function, args, kwargs or {}))
    except DeuteronError:
        raise
    except Exception as error:
        shown = ", ".join(describe(value) for value in args)
        raise ctx.error(
            f"{name_of(function)} of ({shown}) fails at compile time: {type(error).__name__}: {error}"
        ) from error
    return unwrap(tuple(result) if isinstance(result, _ITERATORS) else result)


def _run(ctx: Context, function: Callable[..., Any], args: Sequence[Value], kwargs: Mapping[str, Value]) -> Any:
    """Python's own functions get values as they are; those of users what they know values by."""
    if isinstance(function, BuiltinFunctionType) or getattr(function, "__module__", None) == "builtins":
        return function(*args, **kwargs)
    semantic = semantic_of(function)
    calls = kernel_calls(ctx, can_call=semantic is not None)
    given = {name: to_python(calls, value) for name, value in kwargs.items()}
    if semantic is not None:
        given.setdefault(semantic, calls)
    return function(*(to_python(calls, value) for value in args), **given)
