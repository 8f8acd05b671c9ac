"""Calls: the callee is found by object identity and is one of

    a function written in the language      inlined: its body is compiled here, in a frame of its own
    a stub of the language, an operator     its semantic function from `semantics.RULES` runs
    a method of a Tensor                    one of the above from `semantics.METHODS`, with the Tensor as first argument
    a function of Python                    called now, with compile-time arguments; one with `__triton_builtin__`
                                            also with run-time ones

Whatever a callee's arguments are, they have been evaluated before, from left to right.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import (
    BuiltinFunctionType,
    BuiltinMethodType,
    FunctionType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    UnionType,
)
from typing import Any

from deuteron import language
from deuteron.errors import CompilationError
from deuteron.frontend import attributes
from deuteron.frontend.advice import for_function
from deuteron.frontend.context import Context
from deuteron.frontend.inline import inline
from deuteron.frontend.rules import call_at_compile_time, name_of, run_rule
from deuteron.frontend.semantics import RULES
from deuteron.frontend.semantics.python import checked_aggregate
from deuteron.frontend.values import (
    RUNTIME,
    BlockPointer,
    BoundMethod,
    Descriptor,
    Tensor,
    Value,
    describe,
    is_runtime,
    known_items,
)
from deuteron.language.aggregate import Aggregate
from deuteron.language.builtin import Builtin
from deuteron.language.constant import constexpr, unwrap
from deuteron.language.functions.function import Function
from deuteron.language.functions.source_functions import CompileTimeFunction, PlainFunction, source_function
from deuteron.language.tuple import tuple as tl_tuple
from deuteron.language.types import dtype

_PYTHON_BUILTINS = (
    abs, all, any, bool, chr, divmod, enumerate, float, getattr, hasattr, int, len, list, ord, pow, range,
    repr, reversed, round, slice, sorted, str, sum, tuple, type, zip,
)  # fmt: skip
_PURE_MODULES = ("math", "cmath", "operator", "_operator")
_COMPILE_TIME_TYPES = (CompileTimeFunction, BuiltinFunctionType, BuiltinMethodType, MethodType, MethodWrapperType)


def call(ctx: Context, node: ast.Call) -> Value:
    return _call(ctx, node, ctx.evaluate(node.func))


def _call(ctx: Context, node: ast.Call, callee: Any) -> Value:
    args: list[Value] = []
    for arg in node.args:
        args.extend(_starred(ctx, arg) if isinstance(arg, ast.Starred) else [ctx.evaluate(arg)])
    kwargs = {}
    for keyword in node.keywords:
        for name, value in _keywords(ctx, keyword).items():
            if name in kwargs:
                raise ctx.error(f"The argument '{name}' is given twice.")
            kwargs[name] = value
    return apply(ctx, callee, args, kwargs)


def drop_result(ctx: Context, node: ast.Call) -> None:
    """A call as a statement; raises CompilationError where the function says that its result must be used."""
    callee = ctx.evaluate(node.func)
    function = callee.function if isinstance(callee, BoundMethod) else callee
    reason = getattr(function, "must_use_result", False)
    if reason:
        more = f" {reason}" if isinstance(reason, str) else ""
        raise ctx.error(f"The result of '{ast.unparse(node.func)}' is not used. Assign it to a variable.{more}")
    _call(ctx, node, callee)


def _starred(ctx: Context, node: ast.Starred) -> tuple[Value, ...]:
    value = ctx.evaluate(node.value)
    items = known_items(ctx, value)
    if items is None:
        raise ctx.error(f"'*' in a call unpacks a tuple, got {describe(value)}.")
    return items


def _keywords(ctx: Context, keyword: ast.keyword) -> Mapping[str, Value]:
    """What a keyword gives: one argument, or with '**' those of a dictionary."""
    value = ctx.evaluate(keyword.value)
    if keyword.arg is not None:
        return {keyword.arg: value}
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return value
    raise ctx.error(f"'**' in a call unpacks the keywords of a function, got {describe(value)}. Write them out.")


def apply(ctx: Context, callee: Any, args: Sequence[Value], kwargs: Mapping[str, Value] | None = None) -> Value:
    """The result of a call on evaluated arguments."""
    kwargs = kwargs or {}
    if isinstance(callee, BoundMethod):
        return _call_method(ctx, callee.function, (callee.receiver, *args), kwargs)
    if isinstance(callee, Function):
        return inline(ctx, callee, args, kwargs)
    if isinstance(callee, partial):
        return apply(ctx, *_bound(ctx, callee, args, kwargs))
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


def _bound(
    ctx: Context, callee: partial, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> tuple[Any, Sequence[Value], Mapping[str, Value]]:
    """What a `functools.partial` calls, and with what; a function of Python in it is known by its source."""
    function = source_function(constexpr(callee.func)) or callee.func
    return function, (*unwrap(callee.args), *args), {**{k: unwrap(v) for k, v in callee.keywords.items()}, **kwargs}


def _needs_rule(callee: Any, args: Sequence[Value], kwargs: Mapping[str, Value]) -> bool:
    """Whether only a rule can answer: Python's own functions answer on compile-time values themselves."""
    return callee not in _PYTHON_BUILTINS or is_runtime((*args, *kwargs.values()))


def is_instance(ctx: Context, value: Value, classes: Any) -> bool:
    """isinstance as kernels ask it: what is known is a constexpr."""
    accepted = tuple(_classes(ctx, classes))
    if isinstance(value, RUNTIME):
        return issubclass(_type_of(value), accepted)
    if isinstance(value, tuple) and not isinstance(value, Aggregate) and language.tuple in accepted:
        return True
    if any(issubclass(constexpr, cls) for cls in accepted if cls is not object) and not is_runtime(value):
        return True
    return isinstance(value, tuple(cls for cls in accepted if cls is not language.tuple))


def _classes(ctx: Context, classes: Any) -> Iterator[type]:
    """The classes in what `isinstance` takes: one, tuples of them, and unions."""
    if isinstance(classes, tuple | UnionType):
        for each in classes if isinstance(classes, tuple) else classes.__args__:
            yield from _classes(ctx, each)
    elif isinstance(classes, type):
        yield classes
    else:
        raise ctx.error(f"isinstance asks for classes, got {describe(classes)}.")


def type_(ctx: Context, value: Value) -> type:
    """type(x): of a run-time value the class that `isinstance` knows."""
    return _type_of(value)


def _type_of(value: Value) -> type:
    if isinstance(value, Tensor | BlockPointer):
        return language.tensor
    return language.tensor_descriptor if isinstance(value, Descriptor) else type(value)


def make_constexpr(ctx: Context, value: Value) -> Value:
    if is_runtime(value):
        raise ctx.error(f"tl.constexpr needs a compile-time value, got {describe(value)}.")
    return value


_RULES = RULES | attributes.RULES | {isinstance: is_instance, type: type_, constexpr: make_constexpr}


def _call_python(ctx: Context, callee: Any, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    if isinstance(callee, type) and issubclass(callee, Aggregate):
        return checked_aggregate(ctx, call_at_compile_time(ctx, callee, args, kwargs))
    if isinstance(callee, type) and issubclass(callee, tuple) and callee is not tuple:
        return call_at_compile_time(ctx, callee, args, kwargs)
    if getattr(callee, "__triton_builtin__", False):
        return _call_marked(ctx, callee, args, kwargs)
    if isinstance(callee, PlainFunction):
        return _call_plain(ctx, callee, args, kwargs)
    if isinstance(callee, FunctionType) and isinstance(ctx.given.get(callee), PlainFunction):
        return _call_plain(ctx, ctx.given[callee], args, kwargs)
    if isinstance(callee, Builtin):
        raise ctx.error(f"tl.{callee.__name__} is not supported yet.")
    if not callable(callee):
        shown = describe(callee)
        way_out = f" Convert a value with tl.cast(x, {shown})." if isinstance(callee, dtype) else ""
        raise ctx.error(f"{shown} cannot be called.{way_out}")
    if not _runs_at_compile_time(callee):
        raise ctx.error(f"{name_of(callee)} is a function of Python.{_way_out(callee)}")
    if is_runtime((*args, *kwargs.values())) or _is_plain_method_of_runtime(callee):
        return _call_with_runtime(ctx, callee, args, kwargs)
    return call_at_compile_time(ctx, callee, args, kwargs)


def _is_plain_method_of_runtime(callee: Any) -> bool:
    """Whether it is a method without @jit, of an aggregate that holds what is known only at run time."""
    return isinstance(callee, MethodType) and isinstance(callee.__func__, FunctionType) and is_runtime(callee.__self__)


def _call_marked(ctx: Context, callee: Callable[..., Any], args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    """A function of Python that is marked as Triton marks its own: it gets what is known as constexprs."""
    given = {name: _as_constexpr(value) for name, value in kwargs.items()}
    return call_at_compile_time(ctx, callee, [_as_constexpr(value) for value in args], given)


def _call_plain(ctx: Context, callee: PlainFunction, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    if not is_runtime((*args, *kwargs.values())):
        return _call_marked(ctx, callee, args, kwargs)
    shown = ", ".join(describe(value) for value in (*args, *kwargs.values()))
    raise ctx.error(
        f"{name_of(callee)} is a function of Python, which takes what is known when the kernel is compiled, got "
        f"({shown}).{_way_out(callee.fn)}"
    )


def _way_out(callee: Any) -> str:
    if not isinstance(callee, FunctionType):
        return for_function(callee)
    if callee.__name__ == "<lambda>":
        return " Define it with `def` and @jit to call it in a kernel."
    return " Decorate it with @jit to call it in a kernel."


def _as_constexpr(value: Value) -> Value | constexpr:
    """As Triton has it: a dtype is known by itself, and the items of a tuple, its `.values`, are constexprs."""
    if type(value) is tuple:
        return tl_tuple(map(_as_constexpr, value))
    return value if is_runtime(value) or isinstance(value, dtype) else constexpr(value)


def _call_with_runtime(ctx: Context, callee: Any, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    """A function that runs now and is given run-time values: one that only asks for their types can answer."""
    if isinstance(callee, CompileTimeFunction | MethodType):
        with suppress(CompilationError):
            return call_at_compile_time(ctx, callee, args, kwargs)
    receiver = (callee.__self__,) if isinstance(callee, MethodType) else ()
    shown = ", ".join(describe(value) for value in (*receiver, *args, *kwargs.values()))
    needs = "runs at compile time and needs compile-time values"
    raise ctx.error(f"{name_of(callee)} {needs}, got ({shown}).{for_function(callee)}")


def _runs_at_compile_time(callee: Any) -> bool:
    """Some builtins, functions that give the same whenever they are called (math), methods of compile-time values,
    classes, and what is decorated so."""
    module = getattr(callee, "__module__", None)
    if module == "builtins":
        return callee in _PYTHON_BUILTINS
    if isinstance(callee, BuiltinFunctionType) and isinstance(callee.__self__, ModuleType | None):
        return module in _PURE_MODULES
    if isinstance(callee, BuiltinMethodType | MethodType) and _is_function_of_a_module(callee):
        return False
    return isinstance(callee, (*_COMPILE_TIME_TYPES, type))


def _is_function_of_a_module(method: BuiltinMethodType | MethodType) -> bool:
    """Whether a module has the method of an object of its own in the place of a function, as `random.random` is."""
    module = sys.modules.get(type(method.__self__).__module__)
    return getattr(module, method.__name__, None) == method


EXPRESSIONS = {ast.Call: call}
