"""What Triton's `language.core` and `language.standard` have besides the public names, as far as projects use it.

tl.reduce(x, 0, tl.standard._elementwise_max)
n_dims: tl.constexpr = tl.standard._log2(x.shape[0])
def merge(x, descending: tl.constexpr = tl.core.CONSTEXPR_0): ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import deuteron
from deuteron.compat.base_classes import base_type, base_value
from deuteron.language import constant, creation, reductions, sorting, types
from deuteron.language.builtin import Builtin
from deuteron.language.constant import constexpr
from deuteron.language.creation import arange
from deuteron.language.extern_elementwise import extern_elementwise
from deuteron.language.function import Function
from deuteron.language.reductions import _larger_any, _larger_left, _smaller_any, _smaller_left
from deuteron.language.semantic import NAMED, of_module
from deuteron.language.shape import reshape
from deuteron.language.sorting import sort, topk
from deuteron.language.source_functions import constexpr_function

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


@constexpr_function
def is_power_of_two(number: Any) -> bool:
    """Whether it is a power of two, as Triton's sorting asks, for which 0 is one."""
    return number & (number - 1) == 0


@constexpr_function
def flip_dim(dim: Any, shape: Any) -> int:
    """A dimension counted from the first; None is the last."""
    return len(shape) - 1 if dim is None else dim % len(shape)


@Function
def larger_of_pairs(value1, index1, value2, index2, tie_break_left):
    if tie_break_left:
        return _larger_left(value1, index1, value2, index2)
    else:  # noqa: RET505
        return _larger_any(value1, index1, value2, index2)


@Function
def smaller_of_pairs(value1, index1, value2, index2, tie_break_left):
    if tie_break_left:
        return _smaller_left(value1, index1, value2, index2)
    else:  # noqa: RET505
        return _smaller_any(value1, index1, value2, index2)


@Function
def indicator(n_dims: constexpr, j: constexpr):
    """0 and 1 along one of many dimensions of extent 2, counted from the last."""
    return reshape(arange(0, 2), (1,) * (n_dims - j - 1) + (2,) + (1,) * j)


@Function
def sort_impl(x, k: constexpr = None, dim: constexpr = None, descending: constexpr = constexpr(0)):  # noqa: B008
    if k is None:
        return sort(x, dim, descending)
    else:  # noqa: RET505
        return topk(x, k, dim, descending)


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
}

STANDARD_NAMES = {
    "_log2": sorting.exponent,
    "_is_power_of_two": is_power_of_two,
    "_get_flip_dim": flip_dim,
    "_get_sort_dim": flip_dim,
    "_indicator": indicator,
    "sort_impl": sort_impl,
    "_unwrap_if_constexpr": unwrap_if_constexpr,
    "_sum_combine": reductions._add,
    "_prod_combine": reductions._multiply,
    "_xor_combine": reductions._xor,
    "_or_combine": reductions._or,
    "_elementwise_max": reductions._larger,
    "_elementwise_min": reductions._smaller,
    "_argmax_combine": larger_of_pairs,
    "_argmax_combine_tie_break_left": _larger_left,
    "_argmax_combine_tie_break_fast": _larger_any,
    "_argmin_combine": smaller_of_pairs,
    "_argmin_combine_tie_break_left": _smaller_left,
    "_argmin_combine_tie_break_fast": _smaller_any,
    "zeros": creation.zeros,
}
