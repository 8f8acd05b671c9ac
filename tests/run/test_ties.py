"""Extremes and their indices among elements that are equal, zeros of both signs, infinities and NaN.

Of equal elements the first one's index is given, or any with `tie_break_left=False`. A NaN compares with nothing: where
there is one, the result is one of the elements with its index, which one depends on the order.
"""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl


@triton.jit
def extreme_kernel(x_ptr, values_ptr, indices_ptr, IS_MAX: tl.constexpr, LEFT: tl.constexpr, AXIS: tl.constexpr):
    rows, columns = tl.arange(0, 32), tl.arange(0, 64)
    x = tl.load(x_ptr + rows[:, None] * 64 + columns[None, :])
    if IS_MAX:
        values, indices = tl.max(x, AXIS, return_indices=True, return_indices_tie_break_left=LEFT)
    else:
        values, indices = tl.min(x, AXIS, return_indices=True, return_indices_tie_break_left=LEFT)
    offsets = columns if AXIS == 0 else rows
    tl.store(values_ptr + offsets, values)
    tl.store(indices_ptr + offsets, indices)


def extremes(poisoned, x, is_max, axis, left=True):
    """The values, the indices, and the elements that these lead to."""
    count = x.shape[1 - axis]
    values, indices = poisoned(x.dtype.name, count), poisoned("int32", count)
    extreme_kernel[(1,)](x, values, indices, IS_MAX=is_max, LEFT=left, AXIS=axis)
    assert (indices >= 0).all() and (indices < x.shape[axis]).all()
    found = np.take_along_axis(x, np.expand_dims(indices, axis), axis).squeeze(axis)
    return values, indices, found


def few(rng, dtype, *more):
    """A tile of few numbers, each of them many times."""
    numbers = np.array([0, -0.0, 1, 2, 3, *more])
    return rng.choice(numbers if dtype[0] in "fb" else np.abs(numbers), (32, 64)).astype(dtype)


@pytest.mark.share(2)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("is_max", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "int64"])
def test_of_equal_elements_the_first(rng, poisoned, dtype, is_max, axis):
    x = few(rng, dtype, *((np.inf, -np.inf) if dtype[0] == "f" else (100,)))
    values, indices, found = extremes(poisoned, x, is_max, axis)
    np.testing.assert_array_equal(indices, x.argmax(axis) if is_max else x.argmin(axis))
    np.testing.assert_array_equal(values, found)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("is_max", [True, False])
def test_any_of_equal_elements(rng, poisoned, is_max, axis):
    x = few(rng, "float32")
    values, _, found = extremes(poisoned, x, is_max, axis, left=False)
    np.testing.assert_array_equal(values, x.max(axis) if is_max else x.min(axis))
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("axis", [0, 1])
def test_with_nan_one_of_the_elements(rng, poisoned, axis, left):
    x = few(rng, "float32", np.nan, np.inf)
    values, _, found = extremes(poisoned, x, True, axis, left)
    np.testing.assert_array_equal(found, values)


@triton.jit
def row_of_extreme(x_ptr, rows_ptr, out_ptr, sum_ptr, COLUMNS: tl.constexpr, N: tl.constexpr, LEFT: tl.constexpr):
    """The row that an index says, and, for some indices, its sum: all threads have to have the same index."""
    index = tl.argmax(tl.load(x_ptr + tl.arange(0, N)), 0, tie_break_left=LEFT)
    columns = tl.arange(0, COLUMNS)
    row = tl.load(rows_ptr + index * COLUMNS + columns)
    tl.store(out_ptr + columns, row)
    if index >= N // 2:
        tl.store(sum_ptr, tl.sum(row, 0))


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize(("value", "left"), [(1.0, False), (np.nan, True), (np.nan, False)])
def test_all_threads_have_one_index(poisoned, value, left, num_warps):
    """Of elements that are all equal, or no numbers, each lane of a warp began with its own."""
    x, rows = np.full(64, value, np.float32), np.repeat(np.arange(64, dtype=np.int32), 128)
    out, total = poisoned("int32", 128), np.zeros(1, np.int32)
    row_of_extreme[(1,)](x, rows, out, total, COLUMNS=128, N=64, LEFT=left, num_warps=num_warps)
    assert 0 <= out[0] < 64
    np.testing.assert_array_equal(out, out[0])
    assert total[0] == (out[0] * 128 if out[0] >= 32 else 0)
