"""Sorting networks and reversal, written in the language.

    tl.sort(x)                       each row ascending: the last dimension
    tl.sort(x, 0, descending=True)
    tl.topk(x, 8)                    the 8 largest of each row, largest first
    tl.flip(x, 0)

Bitonic networks (K. Batcher, 1968): n elements are compared in log2(n) * (log2(n) + 1) / 2 steps, each of all pairs at
one distance. A step sees the tile as (before, 2, distance); the partner of an element is the exclusive or of its pair
without the element, which on a GPU is a shuffle or stays within a thread wherever the layout allows it.

The order of elements that compare equal is unspecified. A NaN compares with nothing: in its presence what comes out is
what Triton gives, which is no permutation of what came in. Replace NaN first where it may occur.
"""

from __future__ import annotations

from deuteron.language.constant import constexpr
from deuteron.language.creation import arange
from deuteron.language.debug import static_assert
from deuteron.language.function import CompileTimeFunction, Function
from deuteron.language.iterators import static_range
from deuteron.language.reductions import max, min, xor_sum
from deuteron.language.select import where
from deuteron.language.shape import reshape
from deuteron.language.types import get_int_dtype

# How a merge orders its runs: all one way, or one up, one down in turn.
_ASCENDING, _DESCENDING, _ALTERNATING = constexpr(0), constexpr(1), constexpr(2)


@CompileTimeFunction
def exponent(extent):
    """The logarithm of a power of two."""
    return extent.bit_length() - 1


@CompileTimeFunction
def _positive_dim(dim, rank):
    """The dimension counted from the first one; None is the last; -1 if there is no such dimension."""
    if dim is None:
        return rank - 1
    return dim % rank if -rank <= dim < rank else -1


@CompileTimeFunction
def _extent_behind(shape, dim):
    """How far two neighbours along a dimension are apart in row-major order."""
    distance = 1
    for extent in shape[dim + 1 :]:
        distance *= extent
    return distance


@CompileTimeFunction
def _integer_of(dtype):
    """The integer type of as many bits."""
    return get_int_dtype(dtype.primitive_bitwidth, True)


@Function
def _axis_of(x, dim):
    axis: constexpr = _positive_dim(dim, len(x.shape))
    static_assert(axis >= 0, f"there is no dimension {dim} in the shape {x.shape}")
    return axis


@Function
def _partners(pairs):
    """Of shape (n, 2, m): the other element of each pair."""
    bits = pairs.to(_integer_of(pairs.dtype), bitcast=True)
    return (bits ^ xor_sum(bits, 1, keep_dims=True)).to(pairs.dtype, bitcast=True)


@Function
def _compare_exchange(x, distance: constexpr, run: constexpr, order: constexpr):
    """Put each pair of elements `distance` apart in order; runs of `run` elements alternate if that is the order."""
    pairs = reshape(x, (x.numel // (2 * distance), 2, distance))
    partners = _partners(pairs)
    is_right = arange(0, 2)[None, :, None] == 1
    if order == _ALTERNATING:
        first = arange(0, x.numel // (2 * distance))[:, None, None] * (2 * distance)
        wants_smaller = is_right == ((first & run) != 0)
    else:
        wants_smaller = is_right == (order == _DESCENDING)
    return where((pairs > partners) == wants_smaller, partners, pairs)


@Function
def _merge(x, extent: constexpr, behind: constexpr, order: constexpr):
    """Sort bitonic runs of `extent` elements that are `behind` apart, in row-major order."""
    for step in static_range(exponent(extent)):
        x = _compare_exchange(x, (extent >> (step + 1)) * behind, extent * behind, order)
    return x


@Function
def _sort_runs(x, extent: constexpr, behind: constexpr, last_order: constexpr):
    """Sort runs of `extent` elements, of ever longer bitonic runs."""
    for doubling in static_range(1, exponent(extent) + 1):
        order: constexpr = last_order if doubling == exponent(extent) else _ALTERNATING
        x = _merge(x, 1 << doubling, behind, order)
    return x


@Function
def _halve(x, distance: constexpr, descending: constexpr):
    """The larger (or smaller) one of each pair of elements."""
    pairs = reshape(x, (x.numel // (2 * distance), 2, distance))
    if descending:
        return max(pairs, 1)
    else:  # noqa: RET505
        return min(pairs, 1)


@Function
def sort(x, dim: constexpr = None, descending: constexpr = _ASCENDING):
    """`x` with its elements sorted along a dimension.

    :param x: a tile of numbers of any type but fp8.
    :param dim: the dimension; None is the last. Negative counts from the end.
    :param descending: whether the largest comes first.

    Error: a dimension that does not exist, a scalar.
    """
    axis: constexpr = _axis_of(x, dim)
    order: constexpr = _DESCENDING if descending else _ASCENDING
    return reshape(_sort_runs(x, x.shape[axis], _extent_behind(x.shape, axis), order), x.shape)


@Function
def topk(x, k: constexpr, dim: constexpr = None, descending: constexpr = True):
    """The `k` largest elements along a dimension, the largest first; or the `k` smallest, the smallest first.

    :param x: a tile of numbers of any type but fp8.
    :param k: a power of two, no larger than the extent. Where it is smaller, types narrower than 32 bits are compared
        as fp32 or int32 and come out so.
    :param dim: the dimension; None is the last. Negative counts from the end.
    :param descending: whether the largest are wanted.

    Errors: a `k` that is no power of two or too large, a dimension that does not exist, a scalar.
    """
    axis: constexpr = _axis_of(x, dim)
    extent: constexpr = x.shape[axis]
    static_assert(k > 0 and (k & (k - 1)) == 0, f"k is a power of two, got {k}. Take more, and mask the rest.")
    static_assert(k <= extent, f"k is at most the extent {extent} of the dimension, got {k}")
    behind: constexpr = _extent_behind(x.shape, axis)
    order: constexpr = _DESCENDING if descending else _ASCENDING
    halvings: constexpr = exponent(extent // k)
    result = _sort_runs(x, k, behind, _ALTERNATING if halvings > 0 else order)
    for halving in static_range(halvings):
        result = _halve(result, k * behind, descending)
        result = _merge(result, k, behind, order if halving == halvings - 1 else _ALTERNATING)
    return reshape(result, x.shape[:axis] + (k,) + x.shape[axis + 1 :])


@Function
def bitonic_merge(x, dim: constexpr = None, descending: constexpr = _ASCENDING):
    """`x` sorted along a dimension along which it first rises and then falls, or the reverse: one merge of `sort`.

    Parameters and errors as `sort`.
    """
    axis: constexpr = _axis_of(x, dim)
    order: constexpr = _DESCENDING if descending else _ASCENDING
    return reshape(_merge(x, x.shape[axis], _extent_behind(x.shape, axis), order), x.shape)


@Function
def flip(x, dim=None):
    """`x` with its elements along a dimension in reverse order.

    :param dim: the dimension; None is the last. Negative counts from the end.

    Error: a dimension that does not exist, a scalar.
    """
    axis: constexpr = _axis_of(x, dim)
    behind: constexpr = _extent_behind(x.shape, axis)
    flipped = x
    for step in static_range(exponent(x.shape[axis])):
        distance: constexpr = behind << step
        flipped = _partners(reshape(flipped, (x.numel // (2 * distance), 2, distance)))
    return reshape(flipped, x.shape)
