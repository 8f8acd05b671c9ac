"""Reductions and scans with functions of one's own, and what is written with them: argmax, cumsum, several tiles."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl


@triton.jit
def larger_magnitude(a, b):
    return tl.where(tl.abs(a) >= tl.abs(b), a, b)


@triton.jit
def reduce_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out_ptr + tl.arange(0, M), tl.reduce(x, 1, larger_magnitude))


def test_reduce_with_a_function(draw, poisoned, check):
    x, out = draw("float32", (16, 64)), poisoned("float32", 16)
    reduce_kernel[(1,)](x, out, M=16, N=64)
    check(out, np.take_along_axis(x, np.abs(x).argmax(axis=1)[:, None], 1)[:, 0], ulps=0)


@triton.jit
def welford(mean_a, m2_a, weight_a, mean_b, m2_b, weight_b):
    weight = weight_a + weight_b
    share = tl.where(weight == 0.0, 0.0, weight_b / weight)
    delta = mean_b - mean_a
    return mean_a + delta * share, m2_a + m2_b + delta * delta * weight_a * share, weight


@triton.jit
def variance_kernel(x_ptr, mean_ptr, variance_ptr, n, BLOCK: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + columns, mask=columns < n, other=0.0)
    weights = (columns < n).to(tl.float32)
    mean, m2, weight = tl.reduce((x, tl.zeros([BLOCK], tl.float32), weights), 0, welford)
    tl.store(mean_ptr + row, mean)
    tl.store(variance_ptr + row, m2 / weight)


def test_reduce_three_tiles_together(draw, poisoned, check_norm):
    x = draw("float32", (5, 100)) + 10
    mean, variance = poisoned("float32", 5), poisoned("float32", 5)
    variance_kernel[(5,)](x, mean, variance, 100, BLOCK=128)
    check_norm(mean, x.astype(np.float64).mean(axis=1), 1e-6)
    check_norm(variance, x.astype(np.float64).var(axis=1), 1e-5)


@triton.jit
def arg_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out_ptr + tl.arange(0, M), tl.argmax(x, 1))
    tl.store(out_ptr + M + tl.arange(0, M), tl.argmin(x, 1))
    greatest, index = tl.max(x, 1, return_indices=True)
    tl.store(out_ptr + 2 * M + tl.arange(0, M), tl.where(greatest == 3, index, -1))


def test_argmax_and_argmin_take_the_first(draw, poisoned, check):
    x, out = draw("int32", (8, 32), -3, 3), poisoned("int32", (3, 8))
    arg_kernel[(1,)](x, out, M=8, N=32)
    expected = np.where(x.max(axis=1) == 3, x.argmax(axis=1), -1)
    check(out, np.stack([x.argmax(axis=1), x.argmin(axis=1), expected]))


@triton.jit
def scan_kernel(x_ptr, out_ptr, AXIS: tl.constexpr, REVERSE: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + offsets, tl.cumsum(tl.load(x_ptr + offsets), AXIS, reverse=REVERSE))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_cumsum(draw, poisoned, check, check_norm, dtype, axis, reverse):
    x, out = draw(dtype, (16, 32), -100, 100), poisoned(dtype, (16, 32))
    scan_kernel[(1,)](x, out, AXIS=axis, REVERSE=reverse, M=16, N=32)
    exact = x.astype(np.int64 if dtype == "int32" else np.float64)
    expected = np.flip(np.flip(exact, axis).cumsum(axis), axis) if reverse else exact.cumsum(axis)
    if dtype == "int32":
        check(out, expected)
    else:
        check_norm(out, expected, 1e-5)


@triton.jit
def bfloat16_kernel(x_ptr, sums_ptr, best_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(sums_ptr + offsets, tl.cumsum(x, 0))
    best, _ = tl.max(x, 0, return_indices=True)
    tl.static_assert(best.dtype == tl.float32 and tl.cumprod(x, 0).dtype == tl.float32)
    tl.store(best_ptr, best)


def test_running_sums_of_bfloat16_are_fp32(draw, poisoned, check, check_norm):
    x, sums, best = draw("bfloat16", 64), poisoned("float32", 64), poisoned("float32", 1)
    bfloat16_kernel[(1,)](x, sums, best, BLOCK=64)
    check_norm(sums, x.astype(np.float64).cumsum(), 1e-5)
    check(best, x.max().astype(np.float32))


@triton.jit
def linear_recurrence(a_left, b_left, a_right, b_right):
    return a_left * a_right, b_left * a_right + b_right


@triton.jit
def recurrence_kernel(a_ptr, b_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    _, state = tl.associative_scan((tl.load(a_ptr + offsets), tl.load(b_ptr + offsets)), 0, linear_recurrence)
    tl.store(out_ptr + offsets, state)


def test_scan_of_two_tiles(draw, poisoned, check_norm):
    a, b, out = draw("float32", 128, 0, 1), draw("float32", 128), poisoned("float32", 128)
    recurrence_kernel[(1,)](a, b, out, BLOCK=128)
    state, expected = 0.0, []
    for factor, term in zip(a.astype(np.float64), b.astype(np.float64), strict=True):
        state = state * factor + term
        expected.append(state)
    check_norm(out, np.array(expected), 1e-5)


@triton.jit
def later(a, b):
    return b


@triton.jit
def few_columns_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    places = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + places, tl.cumsum(tl.load(x_ptr + places), 0))
    tl.store(out_ptr + M * N + tl.arange(0, N), tl.reduce(tl.load(x_ptr + places), 0, later))


@pytest.mark.parametrize("dtype", ["int64", "float64", "int8"])
def test_columns_of_fewer_elements_than_a_warp_has_lanes(draw, poisoned, check, check_norm, dtype):
    """Of 64 bits none fits into a word, which was a division by zero while layouts were chosen."""
    x, out = draw(dtype, (16, 4)), poisoned(dtype, (17, 4))
    few_columns_kernel[(1,)](x, out, M=16, N=4)
    if dtype == "float64":
        check_norm(out[:16], np.cumsum(x, 0), 1e-14)
    else:
        check(out[:16], np.cumsum(x, 0, dtype=dtype))
    check(out[16], x[-1], ulps=0)
