"""Threads hold small matrices whole whose rows and columns are reduced."""

import numpy as np
import pytest
from backend.cuda.launching import emulate, instructions_with

import deuteron
import deuteron.language as tl


@deuteron.jit
def normalised(x, out, COUNT: tl.constexpr, N: tl.constexpr, AXES: tl.constexpr, STEPS: tl.constexpr):
    i = tl.arange(0, N)
    matrix = tl.program_id(0) * COUNT + tl.arange(0, COUNT)
    at = matrix[:, None, None] * (N * N) + i[None, :, None] * N + i[None, None, :]
    x = tl.load(x + at)
    for _ in range(STEPS):
        x = x / tl.sum(x, 2)[:, :, None]
        if AXES == 2:
            x = x / tl.sum(x, 1)[:, None, :]
    tl.store(out + at, x)


def _normalised(x, axes):
    x = x.astype(np.float64)
    for _ in range(3):
        x = x / x.sum(2, keepdims=True)
        x = x / x.sum(1, keepdims=True) if axes == 2 else x
    return x


@pytest.mark.parametrize(
    ("count", "n", "axes", "is_exchanged"),
    [
        (128, 4, 2, False),
        (128, 4, 1, False),  # coalesced: a row in each thread
        (64, 4, 2, True),  # fewer matrices than threads
        (128, 8, 2, True),  # too large for that
    ],
)
def test_lanes_exchange_nothing_of_small_matrices(count, n, axes, is_exchanged):
    x = np.random.default_rng(0).random((2 * count, n, n), np.float32) + 0.1
    out = np.zeros_like(x)
    kernel = emulate(normalised, x, out, COUNT=count, N=n, AXES=axes, STEPS=3, grid=(2,))
    np.testing.assert_allclose(out, _normalised(x, axes), rtol=1e-5)
    assert bool(instructions_with(kernel, "shfl")) == is_exchanged
    assert instructions_with(kernel, "ld.global.v4.b32")
