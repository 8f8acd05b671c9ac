"""Layouts of loads whose tiles go on into shared memory with their dimensions exchanged, and of multiply-adds: blocks
of elements.
"""

import itertools
from math import prod

import ml_dtypes
import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, instructions_with

import deuteron
import deuteron.language as tl
from deuteron.emulator import profile
from deuteron.layout.distributed import blocked, square_blocked, transposing_blocked
from deuteron.layout.linear import LANE, REGISTER, WARP

FP8 = ml_dtypes.float8_e4m3fn


@deuteron.jit
def dot(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + i[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + j[None, :])
    tl.store(out + i[:, None] * N + j[None, :], tl.dot(x, y))


@pytest.mark.parametrize(
    ("dtype", "k", "num_warps", "stores", "conflicts"),
    [
        (np.float32, 32, 4, 48, 0),
        (np.float32, 64, 8, 32, 0),
        (FP8, 128, 4, 56, 400),
        (FP8, 64, 8, 20, 500),
        (np.int8, 64, 4, 40, 500),
    ],
)
def test_operands_that_are_not_contiguous_along_k(rng, dtype, k, num_warps, stores, conflicts):
    """By 4 or 16 bytes; stores count those of `a` and of the result, too."""
    a, b = (aligned(rng.integers(-3, 4, shape).astype(dtype)) for shape in ((128, k), (k, 128)))
    out = aligned(np.zeros((128, 128), np.int32 if dtype == np.int8 else np.float32))
    kernel = compile_for("cuda:90", dot, a, b, out, M=128, N=128, K=k, num_warps=num_warps)
    threads, shared = 32 * num_warps, kernel.metadata.shared
    counts = profile(kernel.asm["ptx"], kernel.metadata.symbol, 1, threads, shared, (a, b, out)).total
    np.testing.assert_array_equal(out, a.astype(np.float64) @ b.astype(np.float64))
    assert len(instructions_with(kernel, "st.shared") + instructions_with(kernel, "stmatrix")) <= stores
    assert counts.bank_conflicts <= conflicts


@pytest.mark.parametrize("shape", [(32, 128), (128, 32), (4, 8), (16, 256), (2, 1024)])
@pytest.mark.parametrize("read_along", [0, 1])
@pytest.mark.parametrize("num_warps", [1, 8])
@pytest.mark.parametrize("apart", [1, 2, 4])
def test_every_element_has_a_place(shape, read_along, num_warps, apart):
    layout = transposing_blocked(shape, num_warps, read_along, min(4, shape[read_along]), 2, apart)
    places = {
        layout(**{REGISTER: register, LANE: lane, WARP: warp})
        for register in range(layout.in_size(REGISTER))
        for lane in range(32)
        for warp in range(num_warps)
    }
    assert places == {(i, j) for i in range(shape[0]) for j in range(shape[1])}


@deuteron.jit
def exact(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + i[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + j[None, :])
    tl.store(out + i[:, None] * N + j[None, :], tl.dot(x, y, input_precision="ieee"))


@pytest.mark.parametrize(
    ("m", "n", "k", "num_warps"),
    [(16, 16, 16, 1), (16, 16, 16, 4), (16, 16, 16, 8), (32, 32, 16, 4), (64, 64, 8, 8), (16, 64, 8, 8), (64, 2, 8, 4)],
)
def test_threads_that_multiply_share_the_work(rng, m, n, k, num_warps):
    a, b = (aligned(rng.integers(-3, 4, shape).astype(np.float32)) for shape in ((m, k), (k, n)))
    kernel = compile_for(
        "cuda:90", exact, a, b, out := aligned(np.zeros((m, n), np.float32)), M=m, N=n, K=k, num_warps=num_warps
    )
    profile(kernel.asm["ptx"], kernel.metadata.symbol, 1, 32 * num_warps, kernel.metadata.shared, (a, b, out))
    np.testing.assert_array_equal(out, a @ b)
    assert len(instructions_with(kernel, "fma.rn.f32")) == m * n * k // (32 * num_warps)


@pytest.mark.parametrize(
    "shape", [(64, 64), (32, 64), (16, 16), (1, 64), (8, 128), (128, 8), (64, 1), (4, 16, 16), (16, 8, 8)]
)
@pytest.mark.parametrize("num_warps", [1, 4, 8])
def test_threads_multiply_no_element_twice(shape, num_warps):
    """64x64 sums were held by twice the threads that 8 warps have, those of a batch of 8x8 by 64 times as many."""
    layout, size = square_blocked(shape, num_warps), prod(shape)
    hardware = itertools.product(range(layout.in_size(REGISTER)), range(32), range(num_warps))
    places = {layout(**dict(zip((REGISTER, LANE, WARP), one, strict=True))) for one in hardware}
    assert len(places) == size
    assert layout.in_size(REGISTER) == max(size // (32 * num_warps), 1)


def test_blocks_of_multiply_adds_are_as_square_as_they_may_be():
    assert square_blocked((128, 64), 8) == blocked((128, 64), [4, 4], [2, 16], [8, 1], [1, 0])
    assert square_blocked((64, 64), 8) == blocked((64, 64), [4, 4], [2, 16], [8, 1], [1, 0])
    assert square_blocked((16, 16), 1) == blocked((16, 16), [2, 4], [8, 4], [1, 1], [1, 0])
