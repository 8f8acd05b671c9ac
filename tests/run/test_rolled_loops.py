"""Unrolled loops that are rolled again compute what they did: their index in every type, in ranges and in branches."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.passes.tile.roll_loops import RollLoops

pytestmark = pytest.mark.each_gpu


@pytest.fixture(autouse=True)
def rolled(monkeypatch):
    """However short."""
    monkeypatch.setattr("deuteron.passes.tile.RollLoops", lambda: RollLoops(least_cost=1))


@triton.jit
def taps(x, w, out, n, W: tl.constexpr, B: tl.constexpr):
    """A convolution, of which each tap has a mask of its own, and a column that is the index in bytes."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    acc = tl.zeros((B,), tl.float32)
    last = acc
    for k in tl.static_range(W):
        at = i + k - W + 1
        last = tl.load(x + at, mask=(at >= 0) & (at < n), other=0.0)
        acc += last * tl.load(w + k)
    tl.store(out + i, acc, mask=i < n)
    tl.store(out + n + i, last, mask=i < n)


def test_taps(draw, poisoned, check_norm):
    n, W = 301, 12
    x, w, out = draw("float32", n), draw("float32", W), poisoned("float32", 2 * n)
    taps[(triton.cdiv(n, 64),)](x, w, out, n, W=W, B=64)
    assert (out[n:] == x).all()
    check_norm(out[:n], np.convolve(x.astype(np.float64), w[::-1].astype(np.float64))[:n], 1e-6)


@triton.jit
def floats(x, out, M: tl.constexpr):
    """The index as a float: compared, added, and taken for a bound."""
    at = tl.arange(0, 32)
    tile = tl.load(x + at)
    total = tile * 0
    for i in tl.static_range(M):
        total = tl.where(tile > i - 3, total + (5 - 2 * i), tl.maximum(total, i * 1.0))
    tl.store(out + at, total)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_floats(draw, poisoned, check, dtype):
    x, out = draw("int32", 32, -6, 12).astype(poisoned(dtype, 1).dtype), poisoned(dtype, 32)
    floats[(1,)](x, out, M=12)
    total = np.zeros(32)
    for i in range(12):
        total = np.where(x.astype(np.float64) > i - 3, total + (5 - 2 * i), np.maximum(total, i))
    check(out, total.astype(out.dtype))


@triton.jit
def indices(x, out, n, M: tl.constexpr):
    """The index as a number of several types, under a condition, where an iteration is found in a tile by it."""
    j = tl.arange(0, 16)
    found = tl.zeros((16,), tl.int32)
    small, large = tl.full((), 0, tl.int8), tl.full((), 1, tl.int64)
    for i in tl.static_range(M - 1, -1, -1):
        if i < n:
            v = tl.load(x + i)
            found = tl.where(j == i, v * i, found)
            small = (small * 3 + i).to(tl.int8)
            large = large * 7 + i
    tl.store(out + j, found.to(tl.int64))
    tl.store(out + 16, small.to(tl.int64))
    tl.store(out + 17, large)


@pytest.mark.share(2)
@pytest.mark.parametrize("n", [0, 11, 16])
def test_indices(draw, poisoned, n):
    x, out = draw("int32", 16, -1000, 1000), poisoned("int64", 18)
    indices[(1,)](x, out, n, M=16)
    small, large = np.int8(0), np.int64(1)
    with np.errstate(over="ignore"):
        for i in reversed(range(n)):
            small, large = np.int8(small * np.int8(3)) + np.int8(i), large * np.int64(7) + np.int64(i)
    assert out[:16].tolist() == [x[i] * i if i < n else 0 for i in range(16)]
    assert (out[16], out[17]) == (small, large)


@triton.jit
def normalized(x, out, R: tl.constexpr, B: tl.constexpr):
    """Rows and columns in turns, in loops within a loop."""
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tile = tl.exp(tl.load(x + at))
    for _ in tl.static_range(R):
        tile = tile / tl.sum(tile, axis=1)[:, None]
        for _ in tl.static_range(8):
            tile = tile * 0.5 + 0.25 * tl.trans(tile)
        tile = tile / tl.sum(tile, axis=0)[None, :]
    tl.store(out + at, tile)


def test_loops_in_loops(draw, poisoned, check_norm):
    x, out = draw("float32", (8, 8)), poisoned("float32", (8, 8))
    normalized[(1,)](x, out, R=8, B=8)
    tile = np.exp(x.astype(np.float64))
    for _ in range(8):
        tile = tile / tile.sum(axis=1, keepdims=True)
        for _ in range(8):
            tile = tile * 0.5 + 0.25 * tile.T
        tile = tile / tile.sum(axis=0, keepdims=True)
    check_norm(out, tile, 1e-5)
