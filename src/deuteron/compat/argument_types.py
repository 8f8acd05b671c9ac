"""`triton.runtime.jit`: what an argument of a launch means to a compile, in Triton's words.

mangle_type(x)                                                 "*fp32"
native_specialize_impl(BaseBackend, x, False, True, True)      ("*fp32", "D")       divisible by 16
native_specialize_impl(BaseBackend, 1, False, True, True)      ("constexpr", 1)
"""

from __future__ import annotations

from typing import Any

from deuteron.backend.arrays import split_token
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


ARGUMENT_TYPE_NAMES = {"native_specialize_impl": native_specialize_impl, "mangle_type": mangle_type}
