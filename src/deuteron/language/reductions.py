"""The reductions and scans that kernels use, written in the language on `reduce` and `associative_scan`.

    tl.sum(x, 1)                                  x.sum(1)
    values, indices = tl.max(x, 0, return_indices=True)
    tl.cumsum(x, 0)

Integers narrower than 32 bits are summed as int32 or uint32, and compared as int32; floats narrower than 32 bits are
compared as fp32, and a running sum or product of bf16, or its greatest with the index, is fp32, as in Triton. A NaN is
not propagated: the maximum of NaN and 1 is 1.
"""

from __future__ import annotations

from deuteron.language.arithmetic import maximum, minimum
from deuteron.language.constant import constexpr
from deuteron.language.creation import arange
from deuteron.language.debug import static_assert
from deuteron.language.functions.function import Function
from deuteron.language.reduce import associative_scan, reduce
from deuteron.language.select import where
from deuteron.language.shape import broadcast_to, reshape
from deuteron.language.types import float32, int32, uint32


@Function
def _sum_type(dtype, requested):
    if requested is not None:
        return requested
    elif dtype.is_int() and dtype.primitive_bitwidth < 32:  # noqa: RET505
        return int32 if dtype.is_int_signed() else uint32
    else:
        return dtype


@Function
def _without_bfloat16(input):
    if input.dtype.is_bf16():
        return input.to(float32)
    else:  # noqa: RET505
        return input


@Function
def _comparable(input):
    if input.dtype.primitive_bitwidth >= 32:
        return input
    else:  # noqa: RET505
        return input.to(float32 if input.dtype.is_floating() else int32)


@Function
def _indices_along(input, axis):
    static_assert(axis is not None, "return_indices needs an axis; ravel the tile for the index among all elements")
    static_assert(isinstance(axis, int), "an index is along one axis, an integer known at compile time")
    rank: constexpr = len(input.shape)
    positive: constexpr = axis + rank if axis < 0 else axis
    extent: constexpr = input.shape[axis]
    indices = reshape(arange(0, extent), (1,) * positive + (extent,) + (1,) * (rank - 1 - positive))
    return broadcast_to(indices, input.shape)


@Function
def _add(a, b):
    return a + b


@Function
def _multiply(a, b):
    return a * b


@Function
def _xor(a, b):
    return a ^ b


@Function
def _or(a, b):
    return a | b


@Function
def _larger(a, b):
    return maximum(a, b)


@Function
def _smaller(a, b):
    return minimum(a, b)


@Function
def _larger_left(value1, index1, value2, index2):
    first = (value1 > value2) | ((value1 == value2) & (index1 < index2))
    return where(first, value1, value2), where(first, index1, index2)


@Function
def _larger_any(value1, index1, value2, index2):
    first = value1 > value2
    return where(first, value1, value2), where(first, index1, index2)


@Function
def _smaller_left(value1, index1, value2, index2):
    first = (value1 < value2) | ((value1 == value2) & (index1 < index2))
    return where(first, value1, value2), where(first, index1, index2)


@Function
def _smaller_any(value1, index1, value2, index2):
    first = value1 < value2
    return where(first, value1, value2), where(first, index1, index2)


@Function
def sum(input, axis=None, keep_dims=False, dtype: constexpr = None):
    """The sum along an axis.

    :param axis: the dimension that goes; None for all, which gives a scalar.
    :param keep_dims: whether the dimension stays, with extent 1.
    :param dtype: type to convert to and sum in.
    """
    return reduce(input.to(_sum_type(input.dtype, dtype)), axis, _add, keep_dims=keep_dims)


@Function
def xor_sum(input, axis=None, keep_dims=False):
    """The bitwise exclusive or along an axis. Error: floats, pointers."""
    static_assert(input.dtype.is_int(), "it is for integers")
    return reduce(input, axis, _xor, keep_dims=keep_dims)


@Function
def reduce_or(input, axis, keep_dims=False):
    """The bitwise or along an axis. Error: floats, pointers."""
    static_assert(input.dtype.is_int(), "reduce_or is for integers")
    return reduce(input, axis, _or, keep_dims=keep_dims)


@Function
def max(input, axis=None, return_indices=False, return_indices_tie_break_left=True, keep_dims=False):
    """The largest element along an axis.

    :param axis: the dimension that goes; None for all, which gives a scalar.
    :param return_indices: whether the result is `(values, indices)`; needs an axis.
    :param return_indices_tie_break_left: whether of equal elements the first one's index is given, or any.
    :param keep_dims: whether the dimension stays, with extent 1.
    """
    if return_indices:
        combine = _larger_left if return_indices_tie_break_left else _larger_any
        return reduce((_without_bfloat16(input), _indices_along(input, axis)), axis, combine, keep_dims=keep_dims)
    else:  # noqa: RET505
        return reduce(_comparable(input), axis, _larger, keep_dims=keep_dims)


@Function
def min(input, axis=None, return_indices=False, return_indices_tie_break_left=True, keep_dims=False):
    """The smallest element along an axis; parameters as `max`."""
    if return_indices:
        combine = _smaller_left if return_indices_tie_break_left else _smaller_any
        return reduce((_without_bfloat16(input), _indices_along(input, axis)), axis, combine, keep_dims=keep_dims)
    else:  # noqa: RET505
        return reduce(_comparable(input), axis, _smaller, keep_dims=keep_dims)


@Function
def argmax(input, axis, tie_break_left=True, keep_dims=False):
    """The index of the largest element along an axis, int32.

    :param tie_break_left: whether of equal elements the first one's index is given, or any.
    :param keep_dims: whether the dimension stays, with extent 1.
    """
    _, indices = max(input, axis, True, tie_break_left, keep_dims)
    return indices


@Function
def argmin(input, axis, tie_break_left=True, keep_dims=False):
    """The index of the smallest element along an axis, int32; parameters as `argmax`."""
    _, indices = min(input, axis, True, tie_break_left, keep_dims)
    return indices


@Function
def cumsum(input, axis=0, reverse=False, dtype: constexpr = None):
    """The running sum along an axis; the shape stays.

    :param reverse: whether it goes from the last element to the first.
    :param dtype: type to convert to and sum in.
    """
    wide = _without_bfloat16(input)
    return associative_scan(wide.to(_sum_type(wide.dtype, dtype)), axis, _add, reverse)


@Function
def cumprod(input, axis=0, reverse=False, dtype: constexpr = None):
    """The running product along an axis; parameters as `cumsum`."""
    wide = _without_bfloat16(input)
    return associative_scan(wide.to(_sum_type(wide.dtype, dtype)), axis, _multiply, reverse)
