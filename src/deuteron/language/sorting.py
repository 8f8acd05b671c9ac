"""Sorting networks and reversal, written in the language.

    tl.sort(x)                       each row ascending: the last dimension
    tl.sort(x, 0, descending=True)
    tl.topk(x, 8)                    the 8 largest of each row, largest first
    tl.flip(x, 0)

Bitonic networks (K. Batcher, 1968): n elements are compared in log2(n) * (log2(n) + 1) / 2 steps, each of all pairs at
one distance. The partner of an element is gathered from the place that differs in one bit, which is a shuffle or stays
within a thread or vector wherever the layout allows it.

The order of elements that compare equal is unspecified. A NaN compares with nothing: in its presence what comes out is
what Triton gives, which is no permutation of what came in. Replace NaN first where it may occur.
"""

from __future__ import annotations

from deuteron.language.constant import constexpr
from deuteron.language.creation import arange
from deuteron.language.debug import static_assert
from deuteron.language.functions.function import Function
from deuteron.language.functions.source_functions import CompileTimeFunction
from deuteron.language.indexing import gather
from deuteron.language.iterators import static_range
from deuteron.language.reductions import max, min
from deuteron.language.select import where
from deuteron.language.shape import broadcast_to, reshape

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
    return dim % rank if hasattr(dim, "__index__") and -rank <= dim < rank else -1


@CompileTimeFunction
def _is_power_of_two(extent):
    return hasattr(extent, "__index__") and extent > 0 and (extent & (extent - 1)) == 0


@Function
def _axis_of(x, dim):
    axis: constexpr = _positive_dim(dim, len(x.shape))
    static_assert(axis >= 0, f"there is no dimension {dim!r} in the shape {x.shape}")
    return axis


@Function
def _places(x, axis: constexpr):
    """The coordinate of each element along an axis."""
    before: constexpr = (1,) * axis
    behind: constexpr = (1,) * (len(x.shape) - axis - 1)
    return broadcast_to(reshape(arange(0, x.shape[axis]), before + (x.shape[axis],) + behind), x.shape)


@Function
def _merge(x, places, axis: constexpr, extent: constexpr, order: constexpr):
    """Sort bitonic runs of `extent` elements along an axis; in turn one up, one down if that is the order."""
    rises = (places & extent) == 0 if order == _ALTERNATING else order == _ASCENDING
    for step in static_range(exponent(extent)):
        distance: constexpr = extent >> (step + 1)
        partners = gather(x, places ^ distance, axis)
        wants_smaller = ((places & distance) == 0) == rises
        x = where((x > partners) == wants_smaller, partners, x)
    return x


@Function
def _sort_runs(x, places, axis: constexpr, extent: constexpr, last_order: constexpr):
    """Sort runs of `extent` elements along an axis, of ever longer bitonic runs."""
    for doubling in static_range(1, exponent(extent) + 1):
        order: constexpr = last_order if doubling == exponent(extent) else _ALTERNATING
        x = _merge(x, places, axis, 1 << doubling, order)
    return x


@Function
def _halve(x, axis: constexpr, k: constexpr, descending: constexpr):
    """Of each two neighbouring runs of k elements along an axis one: the larger (or smaller) one of each pair."""
    before: constexpr = x.shape[:axis]
    behind: constexpr = x.shape[axis + 1 :]
    runs: constexpr = x.shape[axis] // (2 * k)
    pairs = reshape(x, before + (runs, 2, k) + behind)
    chosen = max(pairs, axis + 1) if descending else min(pairs, axis + 1)
    return reshape(chosen, before + (runs * k,) + behind)


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
    return _sort_runs(x, _places(x, axis), axis, x.shape[axis], order)


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
    static_assert(_is_power_of_two(k), f"k is a power of two, got {k}. Take more, and mask the rest.")
    static_assert(k <= extent, f"k is at most the extent {extent} of the dimension, got {k}")
    order: constexpr = _DESCENDING if descending else _ASCENDING
    halvings: constexpr = exponent(extent // k)
    result = _sort_runs(x, _places(x, axis), axis, k, _ALTERNATING if halvings > 0 else order)
    for halving in static_range(halvings):
        result = _halve(result, axis, k, descending)
        result = _merge(result, _places(result, axis), axis, k, order if halving == halvings - 1 else _ALTERNATING)
    return result


@Function
def bitonic_merge(x, dim: constexpr = None, descending: constexpr = _ASCENDING):
    """`x` sorted along a dimension along which it first rises and then falls, or the reverse: one merge of `sort`.

    Parameters and errors as `sort`.
    """
    axis: constexpr = _axis_of(x, dim)
    order: constexpr = _DESCENDING if descending else _ASCENDING
    return _merge(x, _places(x, axis), axis, x.shape[axis], order)


@Function
def flip(x, dim=None):
    """`x` with its elements along a dimension in reverse order.

    :param dim: the dimension; None is the last. Negative counts from the end.

    Error: a dimension that does not exist, a scalar.
    """
    axis: constexpr = _axis_of(x, dim)
    return gather(x, _places(x, axis) ^ (x.shape[axis] - 1), axis)
