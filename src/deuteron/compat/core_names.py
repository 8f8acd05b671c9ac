"""What Triton's `language.core` has besides the public names, as far as projects use it; `semantic`, `target_info` too.

@core.builtin
def warps(_semantic=None): ...                           a function of Python that kernels call
isinstance(x, core.base_value)
shape = core._unwrap_shape(shape)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import deuteron
from deuteron.compat.base_classes import base_type, base_value
from deuteron.compat.nested import NESTED_NAMES
from deuteron.language import constant, types
from deuteron.language.builtin import Builtin
from deuteron.language.constant import constexpr
from deuteron.language.extern_elementwise import extern_elementwise
from deuteron.language.functions.source_functions import constexpr_function
from deuteron.language.semantic import NAMED, of_module

MARK = "__triton_builtin__"


@constexpr_function
def unwrap_if_constexpr(value: Any) -> Any:
    """What a constexpr holds; anything else as it is."""
    return constant.unwrap(value)


def marked_as_builtin(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the user's own that runs while a kernel is compiled, and is given what is known as constexprs."""
    setattr(fn, MARK, True)
    return fn


def is_builtin(fn: Any) -> bool:
    """Whether it is a function of the language that is not written in it, or one that is marked so."""
    return isinstance(fn, Builtin) or getattr(fn, MARK, False)


def unwrap_shape(shape: Any) -> list[int]:
    """The extents of a shape, in which each, and the whole, may be a constexpr."""
    return [constant.unwrap(extent) for extent in constant.unwrap(shape)]


def checked_shape(shape: Any) -> list[int]:
    """The same; raises TypeError or ValueError for extents that no tile has."""
    extents = unwrap_shape(shape)
    NESTED_NAMES["validate_block_shape"](extents)
    return extents


def unwrap_iterable(items: Any) -> Any:
    """Of `f(1, 2)` and `f((1, 2))` the items."""
    items = constant.unwrap(items)
    return items[0] if len(items) == 1 and isinstance(items[0], tuple | list) else items


def wrap_axis(axis: int, ndim: int) -> int:
    """A dimension counted from the first."""
    if not -ndim <= axis < ndim:
        raise ValueError(f"there is no dimension {axis} among {ndim}")
    return axis % ndim


def documented(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """What writes a docstring in Triton; here the function has its own."""
    return lambda fn: fn


def as_it_is(fn: Any) -> Any:
    """What makes a function a method of tensors in Triton; here it is called as a function."""
    return fn


@constexpr_function
def never() -> bool:
    """Whether the target is a GPU of AMD."""
    return False


TARGET_NAMES = dict.fromkeys(("is_hip_cdna3", "is_hip_cdna4", "is_hip_gfx1250"), never)
SEMANTIC_NAMES = {name: of_module(name) for name in NAMED}

CORE_NAMES = {
    "base_value": base_value,
    "base_type": base_type,
    "TRITON_BUILTIN": MARK,
    "is_builtin": is_builtin,
    "CONSTEXPR_0": constexpr(0),
    "_aggregate": deuteron.aggregate,
    "builtin": marked_as_builtin,
    "extern": marked_as_builtin,
    "extern_elementwise": extern_elementwise,
    "must_use_result": deuteron.must_use_result,
    "get_int_dtype": constexpr_function(types.get_int_dtype),
    "constexpr_type": types.constexpr_type,
    "constexpr_function": constexpr_function,
    "_unwrap_if_constexpr": unwrap_if_constexpr,
    "_constexpr_to_value": unwrap_if_constexpr,
    "_unwrap_shape": unwrap_shape,
    "_shape_check_impl": checked_shape,
    "_unwrap_iterable": unwrap_iterable,
    "_wrap_axis": wrap_axis,
    "_to_tensor": deuteron.language.to_tensor,
    "_tensor_member_fn": as_it_is,
    **dict.fromkeys((f"_add_{kind}_docstr" for kind in ("atomic", "binary_op", "reduction", "scan")), documented),
    "tensor_descriptor_base": deuteron.language.tensor_descriptor,
    "tensor_descriptor_base_type": types.tensor_descriptor_type,
    **{name: NESTED_NAMES[name] for name in ("validate_block_shape", "get_primitive_bitwidth")},
}
