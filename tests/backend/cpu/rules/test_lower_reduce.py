"""Reductions and scans: along each axis, of each kind, several operands, several in one loop."""

import numpy as np
import pytest

import deuteron.language as tl
from deuteron.language.functions.function import Function


def reduce_rows(x, out, n, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, KIND: tl.constexpr, OUT: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    mask = j[None, :] < n
    neutral = 0 if KIND == 0 else -1000 if KIND == 1 else 1000
    a = tl.load(x + i[:, None] * n + j[None, :], mask=mask, other=neutral)
    if KIND == 0:
        r = tl.sum(a, AXIS)
    elif KIND == 1:
        r = tl.max(a, AXIS)
    else:
        r = tl.min(a, AXIS)
    k = tl.arange(0, OUT)
    tl.store(out + k, r)


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("kind", [0, 1, 2])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("m, n, columns", [(4, 128, 101), (64, 16, 16), (1, 32, 17), (16, 2, 2), (8, 1, 1)])
def test_reductions_along_each_axis(compare, rng, dtype, kind, axis, m, n, columns):
    """Of whole numbers, whose sums are exact in any order, those that nearly cancel as well."""
    x = np.round(rng.standard_normal((m, columns)) * 100).astype(dtype)
    extent = n if axis == 0 else m
    constexprs = {"M": m, "N": n, "AXIS": axis, "KIND": kind, "OUT": extent}
    compare(reduce_rows, [x, np.zeros(extent, dtype), columns], constexprs, cpus=("native",))


def reduce_to_scalar(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0.0)
    mean = tl.sum(a, 0) / n
    centred = tl.where(i < n, a - mean, 0.0)
    tl.store(out, mean)
    tl.store(out + 1, tl.sum(centred * centred, 0))
    tl.store(out + 2, tl.max(a, 0) - tl.min(a, 0))


@pytest.mark.parametrize("block, n", [(1024, 1000), (8, 5), (2, 2), (64, 64)])
def test_reductions_to_scalars(compare, rng, block, n):
    compare(reduce_to_scalar, [rng.standard_normal(n).astype(np.float32), np.zeros(3, np.float32), n], {"BLOCK": block})


def arg_reductions(x, out, n, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    a = tl.load(x + i[:, None] * N + j[None, :])
    tl.store(out + i, tl.argmax(a, 1))
    tl.store(out + M + i, tl.argmin(a, 1))
    tl.store(out + 2 * M + j, tl.argmax(a, 0))


@pytest.mark.parametrize("m, n", [(8, 64), (32, 16), (2, 256)])
def test_argmax_takes_the_first(compare, rng, m, n):
    x = rng.integers(0, 9, (m, n)).astype(np.float32)
    out = compare(arg_reductions, [x, np.zeros(2 * m + n, np.int32), 0], {"M": m, "N": n})[1]
    np.testing.assert_array_equal(out[:m], x.argmax(1))
    np.testing.assert_array_equal(out[2 * m :], x.argmax(0))


def nan_maximum(x, out, BLOCK: tl.constexpr):
    a = tl.load(x + tl.arange(0, BLOCK))
    tl.store(out, tl.max(a, 0))


def test_maximum_of_nans(compare, rng):
    x = np.full(64, np.nan, np.float32)
    compare(nan_maximum, [x, np.zeros(1, np.float32)], {"BLOCK": 64})
    x[11] = -3
    compare(nan_maximum, [x, np.zeros(1, np.float32)], {"BLOCK": 64})


def scans(x, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    at = i[:, None] * N + j[None, :]
    tl.store(out + at, tl.cumsum(tl.load(x + at) * 2, AXIS, reverse=REVERSE))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("m, n", [(4, 64), (64, 8), (1, 32), (16, 1)])
def test_scans(compare, rng, axis, reverse, m, n):
    x = rng.integers(-9, 9, (m, n)).astype(np.int32)
    constexprs = {"M": m, "N": n, "AXIS": axis, "REVERSE": reverse}
    compare(scans, [x, np.zeros((m, n), np.int32)], constexprs, cpus=("native",))


@Function
def follow(a, b, c, d):
    return c * a, c * b + d


def recurrence(x, y, out, M: tl.constexpr, N: tl.constexpr, REVERSE: tl.constexpr):
    """out[j] = x[j] * out[j - 1] + y[j], which depends on the order of its operands."""
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    _, total = tl.associative_scan((tl.load(x + at), tl.load(y + at)), 1, follow, reverse=REVERSE)
    tl.store(out + at, total)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("m, n, dtype", [(1, 128, np.int32), (2, 64, np.int64), (1, 16, np.int32), (4, 4, np.int32)])
def test_a_scan_along_the_vectors_keeps_the_order(compare, rng, m, n, dtype, reverse):
    x, y = (rng.integers(-3, 4, (m, n)).astype(dtype) for _ in range(2))
    compare(recurrence, [x, y, np.zeros((m, n), dtype)], {"M": m, "N": n, "REVERSE": reverse})


def softmax(x, out, n, BLOCK: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BLOCK)
    a = tl.load(x + row * n + j, mask=j < n, other=-float("inf"))
    p = tl.exp(a - tl.max(a, 0))
    tl.store(out + row * n + j, p / tl.sum(p, 0), mask=j < n)


@pytest.mark.parametrize("n, block", [(781, 1024), (64, 64), (3, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_softmax(compare, rng, n, block, dtype):
    x = rng.standard_normal((5, n)).astype(dtype)
    compare(softmax, [x, np.zeros((5, n), dtype), n], {"BLOCK": block}, grid=(5,))


def softmax_of_rows(x, out, n, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    at, mask = i[:, None] * n + j[None, :], j[None, :] < n
    a = tl.load(x + at, mask=mask, other=-float("inf"))
    p = tl.exp(a - tl.max(a, 1)[:, None])
    tl.store(out + at, p / tl.sum(p, 1)[:, None], mask=mask)


def test_softmax_of_several_rows(compare, rng):
    x = rng.standard_normal((8, 50)).astype(np.float32)
    compare(softmax_of_rows, [x, np.zeros((8, 50), np.float32), 50], {"M": 8, "N": 64})


@Function
def the_same_whatever_comes(a0, a1, b0, b1):
    return 1, 1


def scan_to_constants(x, out):
    first, second = tl.associative_scan(
        (tl.load(x + tl.arange(0, 16)), tl.zeros((16,), tl.int1)), 0, the_same_whatever_comes
    )
    tl.store(out + tl.arange(0, 16), first + second)


def test_a_scan_whose_combination_reads_nothing(compare, rng):
    compare(scan_to_constants, [rng.integers(5, 9, 16), np.full(16, 77)], {})
