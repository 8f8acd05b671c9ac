"""Calls of functions written in the language: the body is compiled where the call is, with variables of its own.

    @jit
    def scaled(x, FACTOR: tl.constexpr):        y = scaled(n, 2)      %y = arith.muli(%n, 2)
        return x * FACTOR                                             located in `scaled`, called from here

There are no calls in the IR, so that the two sides are optimised together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deuteron.errors import CompilationError
from deuteron.frontend.context import Context, Frame
from deuteron.frontend.scope import Scope
from deuteron.frontend.values import Value, describe, is_runtime
from deuteron.language.constant import unwrap
from deuteron.language.function import Function

MAX_CALL_DEPTH = 64


def inline(ctx: Context, fn: Function, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    """Compile the body of a function of the language on these arguments; what it returns."""
    if len(ctx.frames) >= MAX_CALL_DEPTH:
        raise CompilationError(
            f"'{fn.__name__}' is called {MAX_CALL_DEPTH} levels deep. Functions of kernels are inlined; use a loop.",
            ctx.frame.location(),
            ctx.call_chain[:3],
        )
    variables = bind_arguments(ctx, fn, args, kwargs)
    call_chain = (ctx.frame.location(), *ctx.call_chain)
    location = ctx.builder.location
    ctx.frames.append(Frame(Scope(fn, variables), fn.tree, call_chain))
    returned = ctx.execute(fn.tree.body)
    ctx.frames.pop()
    ctx.builder.location = location
    return returned.value if returned else None


def bind_arguments(ctx: Context, fn: Function, args: Sequence[Value], kwargs: Mapping[str, Value]) -> dict[str, Value]:
    """The arguments by parameter; raises CompilationError where they do not fit."""
    try:
        bound = fn.signature.bind(*args, **kwargs)
    except TypeError as error:
        raise ctx.error(f"'{fn.__name__}': {error}. Its parameters are ({', '.join(fn.arg_names)}).") from None
    bound.apply_defaults()
    for param in fn.params:
        if param.is_constexpr and is_runtime(bound.arguments[param.name]):
            shown = describe(bound.arguments[param.name])
            raise ctx.error(
                f"'{param.name}' of '{fn.__name__}' is a constexpr, got {shown}, which is known only at run time. "
                "Pass a constant, or drop the annotation."
            )
    return {name: unwrap(value) for name, value in bound.arguments.items()}
