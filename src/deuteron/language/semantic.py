"""What Triton's `_semantic`, before 3.4 the module `triton.language.semantic`, can be asked for by name.

    _semantic.add(x, y, True)            x + y, where the kernel calls the function of Python that says so
    semantic.cast(x, tl.int32, builder)  the same of older programs: `of_module` takes it out of the arguments

Each is a function of the language, of the same arguments; what makes ops of Triton's own is not there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from deuteron import language as tl
from deuteron.errors import UsageError
from deuteron.language.builtin import CALLS, KernelCalls

_OPERATORS = {
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "and_": operator.and_,
    "or_": operator.or_,
    "xor_": operator.xor,
    "shl": operator.lshift,
    "not_": operator.not_,
    "plus": operator.pos,
    "minus": operator.neg,
    "invert": operator.invert,
    "greater_than": operator.gt,
    "greater_equal": operator.ge,
    "less_than": operator.lt,
    "less_equal": operator.le,
    "equal": operator.eq,
    "not_equal": operator.ne,
}
_OF_THE_LANGUAGE = (
    *("abs", "add", "arange", "assume", "cast", "cat", "ceil", "clamp", "cos", "debug_barrier", "dot", "erf", "exp"),
    *("exp2", "expand_dims", "fdiv", "floor", "fma", "full", "gather", "histogram", "join", "load", "log", "log2"),
    *("make_block_ptr", "make_tensor_descriptor", "max_constancy", "max_contiguous", "maximum", "minimum", "mul"),
    *("multiple_of", "num_programs", "permute", "program_id", "rsqrt", "sin", "split", "sqrt", "store", "sub"),
    *("to_tensor", "umulhi", "where", "atomic_add", "atomic_and", "atomic_cas", "atomic_max", "atomic_min"),
    *("atomic_or", "atomic_xchg", "atomic_xor"),
)
_CALLED_OTHERWISE = {
    "broadcast_impl_shape": tl.broadcast_to,
    "broadcast_impl_value": tl.broadcast,
    "logical_and": tl.tensor.logical_and,
    "logical_or": tl.tensor.logical_or,
}


def _reshape(kernel: KernelCalls, input: Any, shape: Any, can_reorder: Any = False) -> Any:
    return kernel.call(tl.reshape, (input, shape), {"can_reorder": can_reorder})


def _bitcast(kernel: KernelCalls, input: Any, dtype: Any) -> Any:
    return kernel.call(tl.cast, (input, dtype), {"bitcast": True})


def _scalar_constant(kernel: KernelCalls, value: Any, dtype: Any) -> Any:
    return kernel.call(tl.full, ((), value, dtype), {})


def _splat(kernel: KernelCalls, value: Any, shape: Any) -> Any:
    return kernel.call(tl.broadcast_to, (value, shape), {})


def _function(callee: Callable[..., Any]) -> Callable[..., Any]:
    return lambda kernel, *args, **kwargs: kernel.call(callee, args, kwargs)


NAMED: dict[str, Callable[..., Any]] = {
    **{name: _function(callee) for name, callee in (_OPERATORS | _CALLED_OTHERWISE).items()},
    **{name: _function(getattr(tl, name)) for name in _OF_THE_LANGUAGE},
    "reshape": _reshape,
    "bitcast": _bitcast,
    "scalar_constant": _scalar_constant,
    "splat": _splat,
}


def of_module(name: str) -> Callable[..., Any]:
    """The function of this name as it was in a module: what calls the language is the last argument, or a keyword."""

    def function(*args: Any, **kwargs: Any) -> Any:
        found = [value for value in (*args, *kwargs.values()) if isinstance(value, KernelCalls)]
        if not found:
            raise UsageError(
                f"semantic.{name} is called in a function of Python that a kernel calls, with its `_builder`"
            )
        known = {name: value for name, value in kwargs.items() if name not in (*CALLS, "builder")}
        return NAMED[name](found[0], *(value for value in args if value is not found[0]), **known)

    function.__name__ = name
    return function
