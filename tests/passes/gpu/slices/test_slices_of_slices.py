"""Slices of slices are taken where these are: nothing is copied to be cut again."""

import re

import numpy as np
from backend.cuda.launching import aligned, compile_for, emulate_compiled

import deuteron
import deuteron.language as tl

T, K, N = 16, 64, 2048


@deuteron.jit
def products(x, y, out, T: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    """A dot whose columns are cut first, and then what it adds up."""
    t, k, n = tl.arange(0, T), tl.arange(0, K), tl.arange(0, N)
    right = tl.load(y + k[:, None] * N + n[None, :])
    right = right * right + right
    product = tl.dot(tl.load(x + t[:, None] * K + k[None, :]), right, input_precision="ieee")
    tl.store(out + t[:, None] * N + n[None, :], product)


def test_a_dot(rng):
    x, y = (aligned(rng.integers(-2, 3, shape).astype(np.float32)) for shape in ((T, K), (K, N)))
    out = aligned(np.full((T, N), 77, np.float32))
    kernel = compile_for("cuda:90", products, x, y, out, T=T, K=K, N=N, num_warps=4)
    assert re.search(r'"ttg.private_view"\(%\w+, %slice\w*\)', kernel.asm["ttgir"])
    emulate_compiled(kernel, x, y, out)
    np.testing.assert_array_equal(out, x @ (y * y + y))
