"""`gather` and `histogram`: ranks, axes, types, layouts with replicas, masks, indices of every integer type."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.errors import MemoryAccessError


@triton.jit
def gather_kernel(x_ptr, index_ptr, out_ptr, AXIS: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    if AXIS == 0:
        places = tl.arange(0, K)[:, None] * N + tl.arange(0, N)[None, :]
    else:
        places = tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :]
    tl.store(out_ptr + places, tl.gather(x, tl.load(index_ptr + places), AXIS))


@pytest.mark.parametrize(
    ("dtype", "index", "axis", "m", "n", "k"),
    [
        ("float32", "int32", 0, 16, 64, 4),
        ("float16", "int64", 1, 16, 32, 64),
        ("int8", "uint8", 1, 4, 128, 8),
        ("float64", "int16", 1, 32, 4, 16),
        ("bfloat16", "uint32", 0, 128, 2, 16),
        ("int64", "int8", 0, 1, 32, 2),
    ],
)
def test_gather(draw, poisoned, check, dtype, index, axis, m, n, k):
    x = draw(dtype, (m, n))
    shape = (k, n) if axis == 0 else (m, k)
    indices = draw(index, shape, 0, min((m, n)[axis], 128) - 1)
    out = poisoned(dtype, shape)
    gather_kernel[(1,)](x, indices, out, axis, m, n, k)
    check(out, np.take_along_axis(x, indices.astype(np.int64), axis))


@triton.jit
def gather_in_loop_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Lookups of lookups; what is gathered from is carried by a loop, computed, masked; pointers are gathered, too."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    for step in range(3):
        x = x.gather((x + step) & (BLOCK - 1), 0) + step
    pointers = tl.gather(out_ptr + offsets, BLOCK - 1 - offsets, 0)
    flags = tl.gather(x > 5, offsets ^ 1, 0)
    tl.store(pointers, tl.where(flags, x, -x))


@pytest.mark.parametrize("block", [2, 64, 512])
def test_gather_in_a_loop(draw, poisoned, check, block):
    n = block - 1
    x, out = draw("int32", block, -1000, 1000), poisoned("int32", block)
    gather_in_loop_kernel[(1,)](x, out, n, block)
    found = np.where(np.arange(block) < n, x, 0)
    for step in range(3):
        found = found[(found + step) & (block - 1)] + step
    found = np.where((found > 5)[np.arange(block) ^ 1], found, -found)
    check(out, found[::-1].astype(np.int32))


@triton.jit
def gather_known_kernel(x_ptr, out_ptr, N: tl.constexpr):
    """The element before, the row rolled and reversed, pairs, triples, one for all."""
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.gather(x, tl.maximum(i - 1, 0), 0))
    tl.store(out_ptr + N + i, tl.gather(x, (i + 5) % N, 0))
    tl.store(out_ptr + 2 * N + i, tl.gather(x, N - 1 - i, 0))
    tl.store(out_ptr + 3 * N + i, tl.gather(x, i // 2 * 2, 0))
    tl.store(out_ptr + 4 * N + i, tl.gather(x, i // 3, 0))
    tl.store(out_ptr + 5 * N + i, tl.gather(x, tl.where(i < 7, 3, i), 0))


@pytest.mark.parametrize(("length", "num_warps"), [(16, 1), (128, 1), (512, 1), (128, 4)])
def test_gather_at_known_places(draw, poisoned, check, length, num_warps):
    x, out, i = draw("float16", length), poisoned("float16", (6, length)), np.arange(length)
    gather_known_kernel[(1,)](x, out, length, num_warps=num_warps)
    places = np.maximum(i - 1, 0), (i + 5) % length, i[::-1], i // 2 * 2, i // 3, np.where(i < 7, 3, i)
    check(out, x[np.stack(places)])


@triton.jit
def gather_3d_kernel(x_ptr, out_ptr, AXIS: tl.constexpr):
    i, j, k = tl.arange(0, 4)[:, None, None], tl.arange(0, 8)[None, :, None], tl.arange(0, 16)[None, None, :]
    x = tl.load(x_ptr + i * 128 + j * 16 + k)
    index = (i * 3 + j * 5 + k * 7) & (x.shape[AXIS] - 1)
    tl.store(out_ptr + i * 128 + j * 16 + k, tl.gather(x, index, axis=AXIS - 3))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_gather_of_three_dimensions(draw, poisoned, check, axis):
    x, out = draw("float32", (4, 8, 16)), poisoned("float32", (4, 8, 16))
    gather_3d_kernel[(1,)](x, out, axis)
    i, j, k = np.ogrid[:4, :8, :16]
    check(out, np.take_along_axis(x, (i * 3 + j * 5 + k * 7) & (x.shape[axis] - 1), axis))


@triton.jit
def gather_reduced_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    """The source is a reduction's result, held by many threads; the index is as well."""
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    sums, order = tl.sum(x, 1), tl.argmax(x, 1)
    tl.store(out_ptr + tl.arange(0, M), tl.gather(sums, order & (M - 1), 0))


def test_gather_of_what_many_threads_hold(draw, poisoned, check):
    x, out = draw("int32", (16, 32), -1000, 1000), poisoned("int32", 16)
    gather_reduced_kernel[(1,)](x, out, 16, 32)
    check(out, x.sum(1, dtype=np.int32)[x.argmax(1) & 15])


@triton.jit
def lookup_kernel(x_ptr, index_ptr, out_ptr):
    table = tl.load(x_ptr + tl.arange(0, 16))
    tl.store(out_ptr + tl.arange(0, 64), tl.gather(table, tl.load(index_ptr + tl.arange(0, 64)), 0))


def test_an_index_out_of_range(executor, draw, poisoned):
    """An error that names it in the interpreter; elsewhere some element of the tile, and no other memory."""
    table, out = draw("float32", 16), poisoned("float32", 64)
    indices = draw("int32", 64)
    indices[:3] = [-1, 16, 2**31 - 1]
    if executor == "interpreter":
        with pytest.raises(MemoryAccessError, match=r"the index at \[0\] is -1, and axis 0 of the tile has 16"):
            lookup_kernel[(1,)](table, indices, out)
        return
    lookup_kernel[(1,)](table, indices, out)
    assert set(out.view(np.int32)) <= set(table.view(np.int32))


@triton.jit
def histogram_kernel(x_ptr, out_ptr, n, M: tl.constexpr, BINS: tl.constexpr, IS_MASKED: tl.constexpr):
    offsets = tl.arange(0, M)
    x = tl.load(x_ptr + offsets)
    counts = tl.histogram(x, BINS, mask=offsets < n) if IS_MASKED else x.histogram(BINS)
    tl.store(out_ptr + tl.arange(0, BINS), counts)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("dtype", "m", "bins"),
    [("int32", 1024, 16), ("uint8", 8, 512), ("int64", 256, 1), ("uint32", 1, 2), ("int8", 64, 64)],
)
def test_histogram(draw, poisoned, check, dtype, m, bins, masked):
    """Of tiles with fewer elements than threads, which many threads hold, each is counted once."""
    x, out = draw(dtype, m, 0, min(bins + 3, 127)), poisoned("int32", bins)
    x[0] = np.iinfo(dtype).max
    x[-1] = np.iinfo(dtype).min
    n = m // 2 + 1 if masked else m
    histogram_kernel[(1,)](x, out, n, m, bins, masked)
    counted = x[:n]
    counted = counted[(counted >= 0) & (counted < bins)]
    check(out, np.bincount(counted.astype(np.int64), minlength=bins).astype(np.int32))


@triton.jit
def histogram_of_rows_kernel(x_ptr, out_ptr, rows, N: tl.constexpr, BINS: tl.constexpr):
    """In a loop, with a sum, of what a reduction gives; the counts are used in another shape."""
    total = tl.zeros([BINS], tl.int32)
    for row in range(rows):
        x = tl.load(x_ptr + row * N + tl.arange(0, N))
        total += tl.histogram(x & (BINS - 1), BINS)
    square = total[:, None] + tl.zeros([1, 4], tl.int32)
    tl.store(out_ptr + tl.arange(0, BINS)[:, None] * 4 + tl.arange(0, 4)[None, :], square)


def test_histograms_in_a_loop(draw, poisoned, check):
    x, out = draw("int32", (5, 128)), poisoned("int32", (32, 4))
    histogram_of_rows_kernel[(1,)](x, out, 5, 128, 32)
    check(out, np.bincount((x & 31).ravel(), minlength=32)[:, None].repeat(4, 1).astype(np.int32))
