"""The steps of a bitonic sort under Triton's private names, from which projects build an argsort of their own."""

from importlib import import_module

import numpy as np
import pytest

import deuteron as triton
import deuteron.compat  # noqa: F401
import deuteron.language as tl

standard = import_module("triton.language.standard")
_bitonic_merge, _compare_and_swap, _log2 = standard._bitonic_merge, standard._compare_and_swap, standard._log2


@triton.jit
def sort_kernel(x_ptr, out_ptr, N: tl.constexpr, DESCENDING: tl.constexpr, OLD: tl.constexpr):
    """As before Triton 3.6 on the tile, with the number of dimensions, and as now on a hypercube."""
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    n_dims: tl.constexpr = _log2(N)
    if OLD:
        for stage in tl.static_range(1, n_dims + 1):
            x = _bitonic_merge(x, stage, 2 if stage < n_dims else DESCENDING, n_dims)
    else:
        x = tl.reshape(x, [2] * n_dims)
        for stage in tl.static_range(1, n_dims + 1):
            x = standard._bitonic_merge_hypercube(x, stage, 2 if stage < n_dims else DESCENDING)
        x = tl.reshape(x, [N])
    tl.store(out_ptr + at, x)


@triton.jit
def swap_kernel(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    n_dims: tl.constexpr = _log2(N)
    tl.store(out_ptr + at, _compare_and_swap(x, 0, 0, n_dims))
    cube = tl.reshape(x, [2] * n_dims)
    tl.store(out_ptr + N + at, tl.reshape(_compare_and_swap(cube, 1, 0), [N]))


def test_sorts(draw, poisoned, check):
    x = draw("float32", 32)
    for descending in (0, 1):
        for old in (False, True):
            out = poisoned("float32", 32)
            sort_kernel[(1,)](x, out, N=32, DESCENDING=descending, OLD=old)
            check(out, np.sort(x)[:: -1 if descending else 1], ulps=0)


def test_one_step(draw, poisoned, check):
    """Of elements half the tile apart, ascending; of neighbours, descending."""
    x, out = draw("int32", 16), poisoned("int32", 32)
    swap_kernel[(1,)](x, out, N=16)
    halves, pairs = np.sort(x.reshape(2, 8), axis=0), -np.sort(-x.reshape(8, 2).astype(np.int64), axis=1)
    check(out, np.concatenate([halves.ravel(), pairs.ravel()]))


@triton.jit
def argsort_kernel(x_ptr, values_ptr, places_ptr, N: tl.constexpr, DESCENDING: tl.constexpr):
    """As of Triton 3.0: pairs by their slices, exchanged as bits, in runs that turn with `_indicator(n, stage, 1)`."""
    n_dims: tl.constexpr = _log2(N)
    x = tl.reshape(tl.load(x_ptr + tl.arange(0, N)), [2] * n_dims)
    places = tl.reshape(tl.arange(0, N), [2] * n_dims)
    for stage in tl.static_range(1, n_dims + 1):
        turned = standard._indicator(n_dims, stage, 1) if stage < n_dims else DESCENDING
        for step in tl.static_range(stage):
            j: tl.constexpr = stage - 1 - step
            bits = standard._cast_to_int(x)
            low, high = standard._take_slice(bits, n_dims, j, 0), standard._take_slice(bits, n_dims, j, 1)
            is_swapped = (low.to(x.dtype, bitcast=True) > high.to(x.dtype, bitcast=True)) ^ (turned != 0)
            x = (bits ^ tl.where(is_swapped, low ^ high, 0)).to(x.dtype, bitcast=True)
            first = standard._take_slice(places, n_dims, j, 0)
            places ^= tl.where(is_swapped, first ^ standard._take_slice(places, n_dims, j, 1), 0)
    tl.store(values_ptr + tl.arange(0, N), tl.reshape(x, [N]))
    tl.store(places_ptr + tl.arange(0, N), tl.reshape(places, [N]))


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64"])
def test_argsort_by_slices(draw, poisoned, check, dtype):
    x = draw(dtype, 32)
    for descending in (0, 1):
        values, places = poisoned(dtype, 32), poisoned("int32", 32)
        argsort_kernel[(1,)](x, values, places, N=32, DESCENDING=descending)
        expected = np.sort(x)[:: -1 if descending else 1]
        check(values, expected, ulps=0)
        check(x[places], expected, ulps=0)
