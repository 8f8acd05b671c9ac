"""Combine functions of reductions and scans: several values, types of their own, branches, loops, calls, any order."""

import ml_dtypes
import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl


@triton.jit
def compose(a0, a1, b0, b1):
    """x -> x * a0 + a1, then x -> x * b0 + b1: associative, not commutative."""
    return a0 * b0, a1 * b0 + b1


@triton.jit
def compose_kernel(
    x_ptr, y_ptr, out_ptr, sum_ptr, AXIS: tl.constexpr, REVERSE: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
    BY_COLUMNS: tl.constexpr,
):  # fmt: skip
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    places = i + j * M if BY_COLUMNS else i * N + j
    x, y = tl.load(x_ptr + places), tl.load(y_ptr + places)
    scanned, offset = tl.associative_scan((x, y), AXIS, compose, reverse=REVERSE)
    tl.store(out_ptr + places, scanned)
    tl.store(sum_ptr + places, offset)


@pytest.mark.parametrize(
    ("m", "n", "axis", "reverse", "by_columns"),
    [(1, 1024, 1, False, False), (64, 16, 0, False, True), (64, 16, 0, True, False), (8, 64, 1, True, True)],
)
def test_the_order_of_a_scan(draw, poisoned, check, m, n, axis, reverse, by_columns):
    shape = (n, m) if by_columns else (m, n)
    x, y = draw("int32", shape), draw("int32", shape)
    out, offsets = poisoned("int32", shape), poisoned("int32", shape)
    compose_kernel[(1,)](x, y, out, offsets, axis, reverse, m, n, by_columns)
    along = 1 - axis if by_columns else axis
    step = -1 if reverse else 1
    columns = [np.moveaxis(tile, along, 0)[::step] for tile in (x, y)]
    factor, offset = columns[0][0], columns[1][0]
    got = [np.moveaxis(tile, along, 0)[::step] for tile in (out, offsets)]
    for index in range(columns[0].shape[0]):
        if index:
            factor, offset = factor * columns[0][index], offset * columns[0][index] + columns[1][index]
        check(got[0][index], factor)
        check(got[1][index], offset)


@triton.jit
def reduce_in_order(
    x_ptr, y_ptr, factor_ptr, offset_ptr, first_ptr, AXIS: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
    L: tl.constexpr,
):  # fmt: skip
    places = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x, y = tl.load(x_ptr + places), tl.load(y_ptr + places)
    factor, offset = tl.reduce((x, y), AXIS, compose)
    out = tl.arange(0, L)
    tl.store(factor_ptr + out, factor)
    tl.store(offset_ptr + out, offset)
    tl.store(first_ptr, tl.reduce(tl.where(places % 7 < 3, 0, y), None, first_nonzero))


@triton.jit
def first_nonzero(a, b):
    return tl.where(a != 0, a, b)


@pytest.mark.parametrize(("m", "n", "axis"), [(2, 512, 1), (64, 16, 0), (8, 64, 1)])
def test_the_order_of_a_reduction(draw, poisoned, check, m, n, axis):
    """A function that is associative only combines neighbours, on every executor."""
    x, y = draw("int32", (m, n)), draw("int32", (m, n))
    length = n if axis == 0 else m
    factors, offsets, first = poisoned("int32", length), poisoned("int32", length), poisoned("int32", 1)
    reduce_in_order[(1,)](x, y, factors, offsets, first, axis, m, n, length)
    x, y = np.moveaxis(x, axis, 0), np.moveaxis(y, axis, 0)
    factor, offset = x[0], y[0]
    for index in range(1, x.shape[0]):
        factor, offset = factor * x[index], offset * x[index] + y[index]
    check(factors, factor)
    check(offsets, offset)
    kept = np.moveaxis(y, 0, axis).reshape(-1)
    kept = kept[(np.arange(m * n) % 7 >= 3) & (kept != 0)]
    check(first, kept[:1])


@triton.jit
def is_better(value, index, other, other_index):
    return (value > other) | ((value == other) & (index < other_index))


@triton.jit
def best_two(v0, i0, v1, n, w0, j0, w1, m):
    """The largest with its index, the second largest, how many; with branches, and a call."""
    if is_better(v0, i0, w0, j0):
        best, index = v0, i0
        second = tl.maximum(v1, w0)
    else:
        best, index = w0, j0
        second = tl.maximum(v0, w1)
    return best, index, second, n + m


@triton.jit
def best_two_kernel(
    x_ptr, best_ptr, index_ptr, second_ptr, count_ptr, AXIS: tl.constexpr, M: tl.constexpr, N: tl.constexpr
):
    i, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + j[None, :])
    index = (j[None, :] + i[:, None] * 0) if AXIS == 1 else (i[:, None] + j[None, :] * 0)
    lowest = tl.full([M, N], float("-inf"), tl.float32)
    ones = tl.full([M, N], 1, tl.uint8)
    best, where, second, count = tl.reduce((x, index, lowest, ones), AXIS, best_two, keep_dims=True)
    kept = i[:, None] if AXIS == 1 else j[None, :]
    tl.store(best_ptr + kept, best)
    tl.store(index_ptr + kept, where)
    tl.store(second_ptr + kept, second)
    tl.store(count_ptr + kept, count)


@pytest.mark.parametrize(("m", "n", "axis"), [(4, 128, 1), (64, 8, 0), (2, 1, 1)])
def test_several_values_with_branches(draw, poisoned, check, m, n, axis):
    x = draw("float32", (m, n)).round(1)
    size = (m, n)[1 - axis]
    best, index, second = poisoned("float32", size), poisoned("int32", size), poisoned("float32", size)
    count = poisoned("uint8", size)
    best_two_kernel[(1,)](x, best, index, second, count, axis, m, n)
    ordered = np.sort(x, axis)
    check(best, x.max(axis))
    check(index, x.argmax(axis).astype(np.int32))
    expected = np.take(ordered, -2, axis) if x.shape[axis] > 1 else np.full(size, -np.inf, np.float32)
    check(second, expected)
    check(count, np.full(size, x.shape[axis], np.uint8))


@triton.jit
def gcd(a, b):
    while b != 0:
        a, b = b, a % b
    return a


@triton.jit
def gcd_kernel(x_ptr, out_ptr, scan_ptr, M: tl.constexpr, N: tl.constexpr):
    """A loop in the function; its results in a loop of the kernel, and used again."""
    total = tl.zeros([M], tl.int32)
    places = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    for step in range(3):
        x = tl.load(x_ptr + places) * (step + 1)
        total += tl.reduce(x, 1, gcd)
    tl.store(out_ptr + tl.arange(0, M), total)
    tl.store(scan_ptr + places, tl.associative_scan(tl.load(x_ptr + places), 1, gcd))


def test_loops(draw, poisoned, check):
    x = draw("int32", (4, 32), 1, 20) * 12
    out, scanned = poisoned("int32", 4), poisoned("int32", (4, 32))
    gcd_kernel[(1,)](x, out, scanned, 4, 32)
    check(out, 6 * np.gcd.reduce(x, 1))
    check(scanned, np.gcd.accumulate(x, 1).astype(np.int32))


@triton.jit
def both(a, b):
    return a & b


@triton.jit
def earlier(a, b):
    return a


@triton.jit
def larger_of(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def types_kernel(x_ptr, any_ptr, last_ptr, max_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    wide = x.to(tl.float32)
    tl.store(any_ptr, tl.reduce(wide > -100, 0, both))
    tl.store(last_ptr + tl.arange(0, N), tl.associative_scan(x, 0, earlier, reverse=True))
    tl.store(max_ptr, tl.reduce(wide, 0, larger_of).to(x.dtype))


TYPES = ["int8", "uint16", "int64", "float16", "bfloat16", "float64", "float8_e5m2"]


@pytest.mark.parametrize("dtype", TYPES)
def test_types(draw, poisoned, dtype, executor):
    if dtype.startswith("float8"):
        x = draw("float32", 64, -8, 8).astype(ml_dtypes.float8_e5m2)
        last, largest = np.zeros(64, x.dtype), np.zeros(1, x.dtype)
    else:
        x = draw(dtype, 64, 0, 100)
        last, largest = poisoned(dtype, 64), poisoned(dtype, 1)
    every = np.zeros(1, bool)
    types_kernel[(1,)](x, every, last, largest, 64)
    assert every[0]
    np.testing.assert_array_equal(last.view(np.uint8), np.repeat(x[-1:], 64).view(np.uint8))
    assert largest[0] == x.astype(np.float32).max().astype(x.dtype)


@triton.jit
def ties_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr, tl.argmax(x, 0))
    tl.store(out_ptr + 1, tl.argmin(x, 0))
    value, index = tl.max(x, 0, return_indices=True)
    tl.store(out_ptr + 2, tl.where(value == value, index, -1))
    tl.store(out_ptr + 3, tl.argmax(x[None, :], 0).to(tl.int32).sum(0))


@pytest.mark.parametrize("n", [1, 64, 1024])
def test_the_first_of_equal_ones(draw, poisoned, check, n):
    x, out = draw("float32", n).round(0), poisoned("int32", 4)
    ties_kernel[(1,)](x, out, n)
    check(out, np.array([x.argmax(), x.argmin(), x.argmax(), 0], np.int32))


@triton.jit
def as_tile(x):
    return x + tl.zeros((1,), tl.int1)


@triton.jit
def larger_number(a, b):
    """Of a sum that nothing else uses it asks the type."""
    keeps_a = a > b
    if as_tile(a).dtype.is_floating():
        keeps_a |= a != a
    return tl.where(keeps_a, a, b)


@triton.jit
def sum_by_tiles(a, b):
    first = tl.arange(0, 4) == 0
    return tl.sum(tl.where(first, a, 0)) + tl.sum(tl.where(first, b, 0))


@triton.jit
def tiles_in_functions_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, F: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + j[None, :])
    tl.store(out_ptr + i, tl.reduce(x, 1, F))
    tl.store(out_ptr + M + i[:, None] * N + j[None, :], tl.associative_scan(x, 1, F))


@pytest.mark.parametrize("m", [1, 4, 8])
def test_functions_that_make_tiles(draw, poisoned, executor, m):
    x, out = draw("float32", (m, 16)), poisoned("float32", 17 * m)
    x[-1, 3] = np.nan
    tiles_in_functions_kernel[(1,)](x, out, m, 16, larger_number)
    np.testing.assert_array_equal(out[:m], x.max(1))
    np.testing.assert_array_equal(out[m:].reshape(m, 16), np.maximum.accumulate(x, 1))
    whole, sums = draw("int32", (m, 16), -99, 99), poisoned("int32", 17 * m)
    if executor.startswith("cuda"):
        with pytest.raises(triton.CompilationError, match="single elements, and cannot make a tile of them"):
            tiles_in_functions_kernel[(1,)](whole, sums, m, 16, sum_by_tiles)
        return
    tiles_in_functions_kernel[(1,)](whole, sums, m, 16, sum_by_tiles)
    np.testing.assert_array_equal(sums[:m], whole.sum(1))
    np.testing.assert_array_equal(sums[m:].reshape(m, 16), whole.cumsum(1))
