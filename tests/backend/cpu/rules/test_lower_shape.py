"""Reshapes, joins, splits, permutations: views of kept tiles and other indices of computed ones."""

import numpy as np
import pytest

import deuteron.language as tl


def reshape(x, out, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    a = tl.load(x + i[:, None] * N + j[None, :]) * 2.0
    flat = tl.reshape(a, (M * N,))
    k = tl.arange(0, M * N)
    tl.store(out + k, flat + k)
    back = tl.reshape(flat, (N, M))
    tl.store(out + M * N + j[:, None] * M + i[None, :], back)


@pytest.mark.parametrize("m, n", [(8, 16), (16, 2), (1, 32)])
def test_reshape(compare, rng, m, n):
    compare(reshape, [rng.random(m * n, np.float32), np.zeros(2 * m * n, np.float32)], {"M": m, "N": n})


def join_and_split(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(x + N + i)
    joined = tl.join(a, b * 2)
    pair = tl.arange(0, 2)
    tl.store(out + i[:, None] * 2 + pair[None, :], joined)
    low, high = tl.split(joined)
    tl.store(out + 2 * N + i, low - high)


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.float16])
def test_join_and_split(compare, rng, dtype):
    x = (rng.random(128) * 50).astype(dtype)
    compare(join_and_split, [x, np.zeros(192, dtype)], {"N": 64})


def permute(x, out, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    a, b, c = tl.arange(0, A)[:, None, None], tl.arange(0, B)[None, :, None], tl.arange(0, C)[None, None, :]
    tile = tl.load(x + (a * B + b) * C + c)
    turned = tl.permute(tile, (2, 0, 1))
    c, a, b = tl.arange(0, C)[:, None, None], tl.arange(0, A)[None, :, None], tl.arange(0, B)[None, None, :]
    tl.store(out + (c * A + a) * B + b, turned)


def test_permutation(compare, rng):
    x = rng.random((4, 8, 16), np.float32)
    out = compare(permute, [x, np.zeros((16, 4, 8), np.float32)], {"A": 4, "B": 8, "C": 16})[1]
    np.testing.assert_array_equal(out, x.transpose(2, 0, 1))


def broadcasts(x, y, out, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    row, column = tl.exp(tl.load(x + j)), tl.exp(tl.load(y + i))
    tl.store(out + i[:, None] * N + j[None, :], row[None, :] * column[:, None] + tl.full((M, N), 0.5, tl.float32))


@pytest.mark.parametrize("m, n", [(8, 64), (32, 2), (1, 16), (16, 1)])
def test_broadcasts_of_costly_tiles(compare, rng, m, n):
    x, y = rng.random(n, np.float32), rng.random(m, np.float32)
    compare(broadcasts, [x, y, np.zeros((m, n), np.float32)], {"M": m, "N": n})


def one_element(x, out):
    tile = tl.load(x + tl.arange(0, 1))
    tl.store(out + tl.arange(0, 1), tile + tl.sum(tile, 0))


def test_tile_of_one_element(compare):
    compare(one_element, [np.full(1, 3.0, np.float32), np.zeros(1, np.float32)])
