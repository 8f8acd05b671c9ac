"""Calls of functions written in the language: the body is compiled where the call is, with variables of its own.

    @jit
    def scaled(x, FACTOR: tl.constexpr):        y = scaled(n, 2)      %y = arith.muli(%n, 2)
        return x * FACTOR                                             located in `scaled`, called from here

There are no calls in the IR, so that the two sides are optimised together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from deuteron.errors import CompilationError, suggest
from deuteron.frontend.completion import NOTHING, EndOfFunction, ended_by
from deuteron.frontend.context import Context, Frame
from deuteron.frontend.scope import Scope
from deuteron.frontend.values import Value
from deuteron.language.constant import unwrap
from deuteron.language.functions.function import Function

MAX_CALL_DEPTH = 64


def inline(ctx: Context, fn: Function, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    """Compile the body of a function of the language on these arguments; what it returns."""
    if len(ctx.frames) >= MAX_CALL_DEPTH:
        calls = sum(frame.scope.function is fn for frame in ctx.frames)
        itself = f", {calls} of them by itself" if calls > 1 else ""
        raise CompilationError(
            f"'{fn.__name__}' is called {MAX_CALL_DEPTH} levels deep{itself}. Functions of kernels are inlined; use a "
            "loop, or end the recursion by what is known at compile time.",
            ctx.frame.location(),
            ctx.call_chain[:3],
        )
    variables = bind_arguments(ctx, fn, args, kwargs)
    call_chain = (ctx.frame.location(), *ctx.call_chain)
    location = ctx.builder.location
    ctx.frames.append(Frame(Scope(fn, variables), fn.tree, call_chain))
    returned = ctx.execute(ended_by(EndOfFunction(), fn.tree.body)).value
    ctx.frames.pop()
    ctx.builder.location = location
    return None if returned is NOTHING else returned


def bind_arguments(ctx: Context, fn: Function, args: Sequence[Value], kwargs: Mapping[str, Value]) -> dict[str, Value]:
    """The arguments by parameter; raises CompilationError where they do not fit.

    A constexpr parameter that is given a run-time value is that value, as in Triton: whoever needs it at compile time
    refuses it there.
    """
    try:
        bound = fn.signature.bind(*args, **kwargs)
    except TypeError as error:
        raise misfit(ctx, fn.__name__, fn.signature.parameters, args, kwargs, error) from None
    bound.apply_defaults()
    return {name: unwrap(value) for name, value in bound.arguments.items()}


def misfit(
    ctx: Context,
    name: str,
    parameters: Iterable[str],
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    error: TypeError,
) -> CompilationError:
    """The error for arguments that do not fit a function: a keyword that it does not know, or what Python says."""
    known = list(parameters)
    shown = f"Its parameters are ({', '.join(known)})."
    free = [parameter for parameter in known[len(args) :] if parameter not in kwargs]
    for keyword in kwargs:
        if keyword not in known:
            return ctx.error(f"'{name}' has no parameter '{keyword}'.{suggest(keyword, free)} {shown}")
    return ctx.error(f"'{name}': {error}. {shown}")
