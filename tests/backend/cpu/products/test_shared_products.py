"""Products of one kind are one function; a product that a kernel has once is where it is."""

from __future__ import annotations

import numpy as np
import pytest
from backend.cuda.launching import compile_for

import deuteron
import deuteron.language as tl


@deuteron.jit
def chained(x, y, out, n, N: tl.constexpr, K: tl.constexpr, DTYPE: tl.constexpr):
    """Three of N x N x N, begun at zero or not, of which a loop keeps one; one that is another shape."""
    i, k = tl.arange(0, N), tl.arange(0, K)
    square, wide = i[:, None] * N + i[None, :], i[:, None] * K + k[None, :]
    a, b, c = tl.load(x + square), tl.load(y + square), tl.load(x + wide)
    total = tl.dot(a, b, out_dtype=DTYPE)
    total = tl.dot(b, tl.trans(a), total, out_dtype=DTYPE)
    for step in range(n):
        total += tl.dot(a, tl.load(y + step + square), out_dtype=DTYPE)
    tl.store(out + square, tl.dot(c, tl.trans(c), total, out_dtype=DTYPE))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_several_products(rng, dtype):
    N, K, n, sums = 32, 16, 3, "int32" if dtype == "int8" else "float32"
    x, y = rng.integers(-4, 4, N * N).astype(dtype), rng.integers(-4, 4, N * N + n).astype(dtype)
    out = np.full((N, N), 77, sums)
    chained[(1,)](x, y, out, n, N=N, K=K, DTYPE=getattr(tl, sums))
    wide_x, wide_y = x.astype(np.int64), y.astype(np.int64)
    a, c = wide_x.reshape(N, N), wide_x[: N * K].reshape(N, K)
    b = [wide_y[step : step + N * N].reshape(N, N) for step in range(n)]
    expected = a @ b[0] + b[0] @ a.T + sum(a @ each for each in b) + c @ c.T
    np.testing.assert_array_equal(out, expected)


@deuteron.jit
def once(x, y, out, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + at, tl.dot(tl.load(x + at), tl.load(y + at)))


def test_what_is_a_function():
    x = np.zeros(4096, np.float32)
    text = compile_for("cpu:x86-64-v3", chained, x, x, x, 3, N=32, K=16, DTYPE=tl.float32).asm["llir"]
    functions = [line for line in text.splitlines() if line.startswith("define") and "@product." in line]
    assert functions and all("@product.32x32x32" in line for line in functions)
    calls = [line for line in text.splitlines() if " call " in line and "@product.32x32x32" in line]
    assert len(calls) == 2  # the first one begins at zero
    assert "@product." not in compile_for("cpu:x86-64-v3", once, x, x, x, N=32).asm["llir"]
