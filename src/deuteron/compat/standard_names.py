"""What Triton's `language.standard` has besides the public names, as far as projects use it.

tl.reduce(x, 0, tl.standard._elementwise_max)
n_dims: tl.constexpr = tl.standard._log2(x.shape[0])
x = tl.standard._bitonic_merge(x, stage, 2, n_dims)
"""

from __future__ import annotations

from typing import Any

from deuteron.compat.core_names import CORE_NAMES, unwrap_if_constexpr
from deuteron.language import creation, reductions, sorting, types
from deuteron.language.constant import constexpr
from deuteron.language.creation import arange, full
from deuteron.language.functions.function import Function
from deuteron.language.functions.source_functions import constexpr_function
from deuteron.language.iterators import static_range
from deuteron.language.reductions import _larger_any, _larger_left, _smaller_any, _smaller_left
from deuteron.language.select import where
from deuteron.language.shape import broadcast_to, reshape
from deuteron.language.sorting import sort, topk
from deuteron.language.types import int32

get_int_dtype = CORE_NAMES["get_int_dtype"]


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
def indicator(n_dims: constexpr, j: constexpr, place: constexpr = constexpr(1)):  # noqa: B008
    """0 and 1 along one of many dimensions of extent 2, counted from the last; for place 0, of Triton 3.2, 1 and 0."""
    places = arange(0, 2) ^ (1 - place)
    return reshape(places, (1,) * (n_dims - j - 1) + (2,) + (1,) * j)


@Function
def take_slice(x, n_dims: constexpr, j: constexpr, place: constexpr, keep_dim: constexpr = constexpr(True)):  # noqa: B008
    """The elements at a place of a dimension of extent 2, counted from the last, which stays with extent 1."""
    kept = where(indicator(n_dims, j, place) != 0, x, 0)
    return reductions.sum(kept, n_dims - 1 - j, keep_dim, x.dtype)


@Function
def cast_to_int(x):
    """The bits of a float as an integer; integers are as they are."""
    if x.dtype.is_floating():
        return x.to(get_int_dtype(x.dtype.primitive_bitwidth, True), bitcast=True)
    else:  # noqa: RET505
        return x


@Function
def sort_impl(x, k: constexpr = None, dim: constexpr = None, descending: constexpr = constexpr(0)):  # noqa: B008
    if k is None:
        return sort(x, dim, descending)
    else:  # noqa: RET505
        return topk(x, k, dim, descending)


@Function
def compare_and_swap(x, flip, i: constexpr, n_dims: constexpr = None):
    """Order each two elements that differ in one bit of their place: the i-th from the last, with `n_dims` from the
    first, as before Triton 3.6. `flip` says where the larger one comes first.
    """
    bit: constexpr = i if n_dims is None else n_dims - 1 - i
    pairs: constexpr = (x.numel >> (bit + 1), 2, 1 << bit)
    partners = reshape(sorting.flip(reshape(x, pairs), 1), x.shape)
    is_right = reshape(broadcast_to(reshape(arange(0, 2), (1, 2, 1)), pairs), x.shape)
    return where((x > partners) != ((flip ^ is_right) != 0), partners, x)


@Function
def bitonic_merge(x, stage: constexpr, order: constexpr, n_dims: constexpr = None):
    """Sort bitonic runs of `2 ** stage` neighbours: ascending, descending (1), or in turn (2)."""
    if order == 2:  # noqa: PLR2004
        pairs: constexpr = (x.numel >> (stage + 1), 2, 1 << stage)
        flip = reshape(broadcast_to(reshape(arange(0, 2), (1, 2, 1)), pairs), x.shape)
    else:
        flip = full(x.shape, order, int32)
    for step in static_range(stage):
        x = compare_and_swap(x, flip, stage - 1 - step)
    return x


@constexpr_function
def sum_type(type: Any, wanted: Any) -> Any:
    """The type that elements are summed in."""
    if wanted is None and type.is_int() and type.int_bitwidth < 32:  # noqa: PLR2004
        return types.int32 if type.is_int_signed() else types.uint32
    return type if wanted is None else wanted


STANDARD_NAMES = {
    "_log2": sorting.exponent,
    "_is_power_of_two": is_power_of_two,
    "_get_flip_dim": flip_dim,
    "_get_sort_dim": flip_dim,
    "_indicator": indicator,
    "_take_slice": take_slice,
    "_cast_to_int": cast_to_int,
    "_compare_and_swap": compare_and_swap,
    "_bitonic_merge": bitonic_merge,
    "_bitonic_merge_hypercube": bitonic_merge,
    "_get_int_dtype": get_int_dtype,
    "_pick_sum_dtype": sum_type,
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
