"""`triton.runtime.jit`: what an argument of a launch means to a compile, in Triton's words.

mangle_type(x)                                                 "*fp32"
native_specialize_impl(BaseBackend, x, False, True, True)      ("*fp32", "D")       divisible by 16
native_specialize_impl(BaseBackend, 1, False, True, True)      ("constexpr", 1)
bind = create_function_from_signature(add.signature, add.params, backend)
bind(x, 1, BLOCK=128, num_warps=4)          {"x": x, "n": 1, "BLOCK": 128}, [("*fp32", "D"), ...], {"num_warps": 4}
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from deuteron.backend.arrays import split_token
from deuteron.language.functions.function import Parameter
from deuteron.runtime.specialise import specialise


def native_specialize_impl(
    backend: Any, arg: Any, is_const: bool, specialize_value: bool, align: bool
) -> tuple[str, Any]:
    """The type of an argument, and the value of one that becomes a constant, or `D`, or None."""
    token, _ = specialise(arg)
    if not isinstance(token, str):
        return "constexpr", arg
    type, hint, _ = split_token(token)
    if hint == "1" and specialize_value:
        return "constexpr", arg
    is_aligned = hint == "16" and specialize_value and align
    return type.replace("*", "*k") if is_const else type, "D" if is_aligned else None


def mangle_type(arg: Any, specialize: bool = False) -> str:
    """The type of an argument in a signature."""
    return native_specialize_impl(None, arg, False, specialize, True)[0]


def create_function_from_signature(
    sig: inspect.Signature, kparams: Sequence[Parameter], backend: Any
) -> Callable[..., tuple[dict[str, Any], list[tuple[str, Any]], dict[str, Any]]]:
    """A function of a launch's arguments that gives them by name, what each means to a compile, and the options."""

    def bind(*args: Any, **kwargs: Any) -> tuple[dict[str, Any], list[tuple[str, Any]], dict[str, Any]]:
        options = {name: value for name, value in kwargs.items() if name not in sig.parameters}
        bound = sig.bind(*args, **{name: value for name, value in kwargs.items() if name not in options})
        bound.apply_defaults()
        values = zip(kparams, bound.arguments.values(), strict=True)
        return bound.arguments, [_specialised(param, value) for param, value in values], options

    return bind


def _specialised(param: Parameter, value: Any) -> tuple[str, Any]:
    if param.is_constexpr:
        return "constexpr", value
    is_aligned = not param.do_not_specialize_on_alignment
    return native_specialize_impl(None, value, param.is_const, not param.do_not_specialize, is_aligned)


ARGUMENT_TYPE_NAMES = {
    "native_specialize_impl": native_specialize_impl,
    "mangle_type": mangle_type,
    "create_function_from_signature": create_function_from_signature,
}
