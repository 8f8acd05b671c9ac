"""Two arguments that are views of one array: a program loads and stores through both as its text says, tile by tile."""

import numpy as np
import pytest

import deuteron
import deuteron.language as tl

N = 128
KINDS = ["each", "flip", "roll", "transpose", "rows", "neighbours", "twice", "scalar", "loop", "atomic", "indirect"]


@deuteron.jit
def moved(x, out, stride, KIND: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    if KIND == "each":
        tl.store(out + i, tl.load(x + i) + 1)
    elif KIND == "flip":
        tl.store(out + N - 1 - i, tl.load(x + i))
    elif KIND == "roll":
        tl.store(out + (i + 5) % N, tl.load(x + i))
    elif KIND == "transpose":
        row, column = tl.arange(0, 8)[:, None], tl.arange(0, 8)[None, :]
        tl.store(out + column * stride + row, tl.load(x + row * stride + column))
    elif KIND == "rows":
        places = tl.arange(0, 16)[:, None] * stride + tl.arange(0, 8)[None, :]
        tl.store(out + places, tl.load(x + places) + 1)
    elif KIND == "neighbours":
        tl.store(out + i, tl.load(x + i) + tl.load(x + i + 1))
    elif KIND == "twice":
        tl.store(out + i, tl.load(x + i) + 1)
        tl.store(out + N - i, tl.load(x + i) * 2)
    elif KIND == "indirect":
        place = tl.load(x + i) % N
        tl.store(out + i, tl.load(x + place))
    elif KIND == "scalar":
        first = tl.load(x + 3)
        tl.store(out + i, tl.load(x + i) + first)
        tl.store(out + 1, tl.load(x + 2))
    elif KIND == "loop":
        for k in range(4):
            tl.store(out + k * 32 + i, tl.load(x + k * 8 + i) + k)
    elif KIND == "atomic":
        old = tl.atomic_add(out + N - 1 - i, tl.load(x + i), sem="relaxed")
        tl.store(out + i, old + tl.load(x + i))


def moved_by_hand(x, out, stride, kind):
    """The same on views of one array of NumPy."""
    i = np.arange(N)
    square = np.arange(8)[:, None] * stride + np.arange(8)
    rows = np.arange(16)[:, None] * stride + np.arange(8)
    if kind == "each":
        out[i] = x[i] + 1
    elif kind == "flip":
        out[N - 1 - i] = x[i]
    elif kind == "roll":
        out[(i + 5) % N] = x[i]
    elif kind == "transpose":
        out[square.T] = x[square]
    elif kind == "rows":
        out[rows] = x[rows] + 1
    elif kind == "neighbours":
        out[i] = x[i] + x[i + 1]
    elif kind == "twice":
        out[i] = x[i] + 1
        out[N - i] = x[i] * 2
    elif kind == "indirect":
        out[i] = x[x[i] % N]
    elif kind == "scalar":
        first = x[3]
        out[i] = x[i] + first
        out[1] = x[2]
    elif kind == "loop":
        for k in range(4):
            out[k * 32 + i] = x[k * 8 + i] + k
    elif kind == "atomic":
        old = out[N - 1 - i]
        out[N - 1 - i] = old + x[i]
        out[i] = old + x[i]


@pytest.mark.share(3)
@pytest.mark.parametrize("kind", KINDS)
def test_as_the_text_says(kind, rng):
    for shift in (0, 1, -int(rng.integers(2, N)), int(rng.integers(2, 2 * N)), 3 * N):
        whole = rng.integers(0, 1000, 6 * N, np.int32)
        begin = max(-shift, 0)
        expected = whole.copy()
        moved_by_hand(expected[begin:], expected[begin + shift :], 9, kind)
        views = whole[begin : begin + 2 * N], whole[begin + shift : begin + shift + 2 * N]
        moved[(1,)](*views, 9, KIND=kind, N=N, num_warps=2)
        np.testing.assert_array_equal(whole, expected)


@deuteron.jit
def product(a, b, out, n, KIND: tl.constexpr, M: tl.constexpr, K: tl.constexpr):
    """Of M x n and n x M elements in rows of 2 M; loads may be copied ahead, by TMA or other warps."""
    i = tl.arange(0, M)
    places = i[:, None] * 2 * M + i[None, :]
    total = tl.zeros((M, M), tl.float32)
    if KIND == "before":
        tl.store(out + places, (i[:, None] - i[None, :] + 0.0).to(tl.float16))
    for begin in tl.range(0, n, K, num_stages=3):
        k = begin + tl.arange(0, K)
        x, y = tl.load(a + i[:, None] * 2 * M + k[None, :]), tl.load(b + k[:, None] * 2 * M + i[None, :])
        if KIND == "inside":
            x, y = x % 2, y % 2
        total = tl.dot(x, y, total)
        if KIND == "inside":
            tl.store(out + places + begin, total.to(tl.float16))
    tl.store(out + places, total.to(tl.float16))
    if KIND == "again":
        tl.store(out + M + places, tl.load(a + i[None, :] * 2 * M + i[:, None]))


def product_by_hand(a, b, out, n, kind, m, k):
    places = np.arange(m)[:, None] * 2 * m + np.arange(m)
    total = np.zeros((m, m))
    if kind == "before":
        out[places] = np.arange(m)[:, None] - np.arange(m)
    for begin in range(0, n, k):
        x = a[np.arange(m)[:, None] * 2 * m + begin + np.arange(k)].astype(float)
        y = b[(begin + np.arange(k))[:, None] * 2 * m + np.arange(m)].astype(float)
        total = total + (np.fmod(x, 2) @ np.fmod(y, 2) if kind == "inside" else x @ y)
        if kind == "inside":
            out[places + begin] = total
    out[places] = total
    if kind == "again":
        out[m + places] = a[places].T


@pytest.mark.share(3)
@pytest.mark.parametrize("kind", ["plain", "before", "inside", "again"])
def test_products(kind, rng):
    m, k, n, size = 64, 32, 64, 64 * 130
    for shift, further in ((0, 0), (8 * int(rng.integers(1, size // 8)), 64 * int(rng.integers(0, 2)))):
        whole = rng.integers(-3, 4, 3 * size).astype(np.float16)
        expected = whole.copy()
        begins = 0, shift, further
        with np.errstate(over="ignore"):
            product_by_hand(*(expected[begin:] for begin in begins), n, kind, m, k)
        views = [whole[begin : begin + size] for begin in begins]
        product[(1,)](*views, n, KIND=kind, M=m, K=k, num_warps=4)
        np.testing.assert_array_equal(whole, expected)
