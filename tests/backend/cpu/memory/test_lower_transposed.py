"""Tiles that are read along another dimension than they are written: blocks of vectors, lanes and vectors exchanged."""

from __future__ import annotations

import re

import numpy as np
import pytest

import deuteron.language as tl


def transpose_and_add(x, y, out, rows, columns, M: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(1) * M + tl.arange(0, M)[:, None]
    j = tl.program_id(0) * N + tl.arange(0, N)[None, :]
    mask = (i < rows) & (j < columns)
    a = tl.load(x + i + rows * j, mask)
    b = tl.load(y + i * columns + j, mask, other=2)
    tl.store(out + i * columns + j, a + b, mask)


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64, np.int8, np.int16, np.bool_])
@pytest.mark.parametrize("rows, columns, m, n", [(41, 57, 32, 16), (64, 64, 64, 64), (16, 7, 16, 16), (9, 40, 4, 32)])
def test_a_transpose_through_registers(compare, rng, dtype, rows, columns, m, n):
    x, y = (rng.integers(0, 2 if dtype == np.bool_ else 50, rows * columns).astype(dtype) for _ in range(2))
    out = np.zeros(rows * columns, dtype)
    grid = (-(-columns // n), -(-rows // m))
    made = compare(transpose_and_add, [x, y, out, rows, columns], {"M": m, "N": n}, grid=grid)[2]
    add = np.logical_xor if dtype == np.bool_ else np.add  # in one bit
    exact = add(x.reshape(columns, rows).T, y.reshape(rows, columns))
    np.testing.assert_array_equal(made.reshape(rows, columns), exact)


def blocks_of_three_dimensions(x, out, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    i, j = tl.arange(0, A)[:, None, None], tl.arange(0, B)[None, :, None]
    k = tl.arange(0, C)[None, None, :]
    tl.store(out + (i * B + j) * C + k, tl.load(x + (k * B + j) * A + i) * 2)


@pytest.mark.parametrize("shape", [(16, 2, 32), (32, 8, 16), (8, 4, 8), (2, 16, 16)])
def test_dimensions_exchanged_around_another(compare, rng, shape):
    x = rng.standard_normal(shape[::-1]).astype(np.float32)
    made = compare(blocks_of_three_dimensions, [x, np.zeros(shape, np.float32)], dict(zip("ABC", shape, strict=True)))
    np.testing.assert_array_equal(made[1], 2 * x.T)


def blocks_up_to_limits(x, whole, out, rows, columns, first, M: tl.constexpr, N: tl.constexpr):
    """Limits along both dimensions, of a load alone and of the store as well."""
    j, i, k = tl.arange(0, M)[:, None, None], tl.arange(0, 2)[None, :, None], tl.arange(0, N)[None, None, :]
    inside = (j < rows) & (k < columns - i) & (k >= first)
    a = tl.load(x + (k * 2 + i) * M + j, inside, other=-7)
    tl.store(whole + (j * 2 + i) * N + k, a)
    b = tl.load(x + (k * 2 + i) * M + j, inside, other=3)
    tl.store(out + (j * 2 + i) * N + k, b, (j < rows) & (k < columns))


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.int8])
@pytest.mark.parametrize("m, n", [(128, 16), (16, 128), (64, 64), (128, 128)])
def test_blocks_end_at_limits(compare, rng, dtype, m, n):
    """The loop over blocks runs in parts along the one dimension or the other, the one that is long."""
    x = rng.integers(-99, 99, m * n * 2).astype(dtype)
    outputs = [np.zeros(m * n * 2, dtype) for _ in range(2)]
    for limits in ((m, n, 0), (m - 3, n - 15, 0), (1, n, -1), (m, 2, 1), (0, n, 0), (m // 2, n // 2 + 1, 5)):
        compare(blocks_up_to_limits, [x, *outputs, *limits], {"M": m, "N": n})


def test_blocks_before_limits_have_no_masks(lower_python, lower_module):
    """16 lines that are exchanged and 16 that are not: each is there twice, with a mask and without."""
    x = np.zeros(1, np.float32)
    llir = lower_module(lower_python(transpose_and_add, [x, x, x, 64, 64], {"M": 128, "N": 32})).llir
    assert len(re.findall(" load <16 x float>", llir)) == 16 + 16
    assert len(re.findall("call <16 x float> @llvm.masked.load", llir)) == 16 + 16


def transposed_twice(x, out, N: tl.constexpr):
    """Of a tile that is in memory, as a sum needs it first; its quotients are not regular along the other dimension."""
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    a = tl.load(x + i * N + j)
    total = tl.sum(a, 1)
    b = tl.load(x + 32 * i + (j % 32) + 32 * N * (j // 32), mask=(i + j) % 3 != 0, other=1)
    tl.store(out + i * N + j, tl.trans(a) - total[:, None] + tl.trans(b))


@pytest.mark.parametrize("n", [8, 16, 32, 64])
def test_a_kept_tile_is_read_across(compare, rng, n):
    x = rng.integers(-9, 9, 32 * n + n * n).astype(np.float32)
    compare(transposed_twice, [x, np.zeros((n, n), np.float32)], {"N": n})


def kept_and_stored(x, y, out, also, M: tl.constexpr, N: tl.constexpr):
    """A tile is kept for a product by the nest that reads it across, and stored from there or not."""
    left = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N))
    right = tl.load(y + tl.arange(0, N)[:, None] + tl.arange(0, M) * N)
    at = tl.arange(0, M)[:, None] * M + tl.arange(0, M)
    tl.store(out + at, tl.dot(left, right))
    tl.store(also + tl.arange(0, N)[:, None] * M + tl.arange(0, M), right)


@pytest.mark.parametrize("m, n", [(16, 32), (32, 16), (64, 64)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_what_is_kept_is_read_across(compare, rng, m, n, dtype):
    x, y = (rng.integers(-9, 9, m * n).astype(dtype) for _ in range(2))
    compare(kept_and_stored, [x, y, np.full((m, m), 77, np.float32), np.full((n, m), 77, dtype)], {"M": m, "N": n})


def product_of_transposes(x, y, out, k, N: tl.constexpr):
    """Tiles that are loaded across and kept, for a product: what is turned is what is about to be kept."""
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    total = tl.zeros((N, N), tl.float32)
    for first in range(0, k, N):
        total += tl.dot(tl.load(x + i + N * (first + j)), tl.load(y + first + i + k * j))
    tl.store(out + i * N + j, total)


@pytest.mark.parametrize("n", [16, 32])
def test_operands_of_a_product_that_are_loaded_across(compare, rng, n):
    x, y = (rng.integers(-4, 4, (2 * n, n)).astype(np.float32) for _ in range(2))
    out = np.zeros((n, n), np.float32)
    made = compare(product_of_transposes, [x, y.T.copy().reshape(n, 2 * n), out, 2 * n], {"N": n})[2]
    np.testing.assert_array_equal(made, x.T @ y)


def test_no_lane_is_loaded_by_itself(lower_python, lower_module):
    x = np.zeros(1, np.float32)
    llir = lower_module(lower_python(transpose_and_add, [x, x, x, 64, 64], {"M": 64, "N": 64})).llir
    assert "gather" not in llir
    assert "shufflevector <16 x float>" in llir


def product_of_columns(x, y, out, M, K, BM: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr):
    """A is loaded down its columns: x.T @ y."""
    m, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BK)
    acc = tl.zeros((BM, 16), ACC)
    for start in range(0, K, BK):
        mask = (k + start < K)[None, :] & (m < M)[:, None]
        a = tl.load(x + (k + start)[None, :] * M + m[:, None], mask=mask, other=3)
        b = tl.load(y + (k + start)[:, None] * 16 + tl.arange(0, 16)[None, :], mask=(k + start < K)[:, None], other=1)
        acc = tl.dot(a, b, acc, out_dtype=ACC)
    tl.store(out + m[:, None] * 16 + tl.arange(0, 16)[None, :], acc, mask=(m < M)[:, None])


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", [np.int8, "bfloat16", np.float16])
@pytest.mark.parametrize("m, k, bm, bk", [(64, 64, 32, 32), (41, 70, 16, 64), (33, 0, 16, 16), (20, 130, 64, 128)])
def test_a_that_is_loaded_down_its_columns(compare, rng, bfloat16, dtype, m, k, bm, bk):
    type, is_int = bfloat16 if dtype == "bfloat16" else dtype, dtype == np.int8
    x, y = rng.integers(-9, 9, (max(k, 1), m)).astype(type), rng.integers(-9, 9, (max(k, 1), 16)).astype(type)
    out = np.full((m, 16), 77, np.int32 if is_int else np.float32)
    constexprs = {"BM": bm, "BK": bk, "ACC": tl.int32 if is_int else tl.float32}
    cpus = ("native", "x86-64-v4", "x86-64-v3")
    compare(product_of_columns, [x, y, out, m, k], constexprs, grid=(-(-m // bm),), cpus=cpus, tolerance=0)
