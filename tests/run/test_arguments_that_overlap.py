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
