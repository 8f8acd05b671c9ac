"""Sums of dots in f16 that a loop carries are f32 until the loop is over."""

import numpy as np
import pytest
from backend.cuda.launching import aligned, emulate

import deuteron
import deuteron.language as tl


@deuteron.jit
def product(a, b, out, steps, ROWS: tl.constexpr, K: tl.constexpr, DOTS: tl.constexpr, IS_READ: tl.constexpr):
    m, n, k = tl.arange(0, ROWS), tl.arange(0, 32), tl.arange(0, K)
    acc = tl.full((ROWS, 32), 0.5, tl.float16)
    for step in range(steps):
        x = tl.load(a + m[:, None] * K * steps + step * K + k[None, :])
        y = tl.load(b + (step * K + k[:, None]) * 32 + n[None, :])
        acc = tl.dot(x, y, acc, out_dtype=tl.float16)
        if DOTS == 2:
            acc = tl.dot(x, y, acc, out_dtype=tl.float16)
        if IS_READ:
            acc = tl.maximum(acc, -1.0)
    tl.store(out + m[:, None] * 32 + n[None, :], acc)


def run(rng, rows: int, steps: int, target: str, dots: int = 1, is_read: bool = False):
    """Products of 0 to 49: sums beyond 2048, of which f16 does not have all."""
    a = aligned(rng.integers(0, 8, (rows, 32 * steps)).astype(np.float16))
    b = aligned(rng.integers(0, 8, (32 * steps, 32)).astype(np.float16))
    out = aligned(np.zeros((rows, 32), np.float16))
    given = {"ROWS": rows, "K": 32, "DOTS": dots, "IS_READ": is_read, "num_warps": 4, "target": target}
    kernel = emulate(product, a, b, out, steps, **given)
    return kernel, out, 0.5 + dots * (a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
@pytest.mark.parametrize(("rows", "steps", "dots"), [(64, 7, 1), (64, 3, 2), (16, 5, 2), (64, 0, 1)])
def test_sums_are_rounded_once(rng, target, rows, steps, dots):
    _, out, sums = run(rng, rows, steps, target, dots)
    np.testing.assert_array_equal(out, sums.astype(np.float16))


def test_what_the_loop_reads_is_f16(rng):
    kernel, out, sums = run(rng, 64, 5, "cuda:90", is_read=True)
    np.testing.assert_allclose(out, sums, rtol=2e-3)
    assert "truncf" not in kernel.asm["ttgir"]
