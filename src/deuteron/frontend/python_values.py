"""Values of a kernel as functions of Python see them, which it calls while it is compiled, and back.

    to_python(calls, (Tensor, 2))      (a tl.tensor, 2): it has the attributes, methods and operators of one
    from_python((a tl.tensor, 2))      (Tensor, 2)

A function with a parameter `_semantic` (before Triton 3.4 `_builder`) can call functions of the language, and methods
of its arguments; any other can ask these for their attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from deuteron import language
from deuteron.frontend.context import Context
from deuteron.frontend.values import BoundMethod, Descriptor, Value, is_runtime
from deuteron.language.builtin import CALLS, KernelCalls
from deuteron.language.constant import rebuild, unwrap
from deuteron.language.semantic import NAMED
from deuteron.language.traced import Traced, traced


def semantic_of(function: Callable[..., Any]) -> str | None:
    """Its parameter that functions of the language are called with, if it has one."""
    if isinstance(function, type):
        function = getattr(getattr(function, "_draft", None), "__init__", None)
    function = getattr(function, "__func__", function)
    code = getattr(getattr(function, "fn", function), "__code__", None)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()
    return next((name for name in CALLS if name in names), None)


def kernel_calls(ctx: Context, can_call: bool) -> KernelCalls:
    """What functions of Python call the language with; without `can_call` it knows attributes only."""
    target = ctx.target
    backend = "cpu" if target is None else target.backend
    arch = f"sm{target.arch}" if backend == "cuda" else backend
    options = SimpleNamespace(num_warps=ctx.asked.num_warps, arch=arch, backend_name=backend)
    return KernelCalls(partial(_call, ctx) if can_call else _refuse, partial(_attribute, ctx, can_call), options, NAMED)


def to_python(kernel: KernelCalls, value: Value) -> Any:
    """A value with what is known only at run time in it as objects of `tl.tensor`, `tl.tensor_descriptor`."""
    if not is_runtime(value):
        return value
    if isinstance(value, dict):
        return {name: to_python(kernel, item) for name, item in value.items()}
    if isinstance(value, tuple):
        items = [to_python(kernel, item) for item in value]
        return language.tuple(items) if type(value) is language.tuple else rebuild(value, items)
    return traced(language.tensor_descriptor if isinstance(value, Descriptor) else language.tensor, value, kernel)


def from_python(value: Any) -> Value:
    """What a function of Python gave, or calls a function of the language on."""
    if isinstance(value, Traced):
        return value._value
    if isinstance(value, dict):
        return {name: from_python(item) for name, item in value.items()}
    if isinstance(value, list):
        return [from_python(item) for item in value]
    if isinstance(value, tuple):
        return rebuild(value, [from_python(item) for item in value])
    return unwrap(value)


def _call(ctx: Context, callee: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The result of what a kernel may call, for a function of Python."""
    given = {name: from_python(value) for name, value in kwargs.items()}
    return to_python(kernel_calls(ctx, True), ctx.call(callee, [from_python(arg) for arg in args], given))


def _refuse(callee: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    raise TypeError(
        "run-time values have attributes only, in a function of Python without a parameter `_semantic`. Add "
        "`_semantic=None` to it and mark it with @triton.language.core.builtin, or write it with @jit"
    )


def _attribute(ctx: Context, can_call: bool, value: Value, name: str) -> Any:
    if not ctx.call(hasattr, (value, name), {}):
        raise AttributeError(f"a value of type {value.type} has no '{name}'")
    found = ctx.call(getattr, (value, name), {})
    calls = kernel_calls(ctx, can_call)
    if not isinstance(found, BoundMethod):
        return to_python(calls, found)
    return lambda *args, _semantic=None, _builder=None, **kwargs: calls.call(found, args, kwargs)
