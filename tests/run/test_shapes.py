"""What moves elements without changing them: trans, reshape, expand_dims, broadcast_to, full, zeros, arange, None."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl


@triton.jit
def transpose_kernel(x_ptr, out_ptr, m, n, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    x = tl.load(x_ptr + rows[:, None] * n + columns[None, :], mask=inside)
    tl.store(out_ptr + columns[:, None] * m + rows[None, :], tl.trans(x), mask=tl.trans(inside))


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "int64"])
@pytest.mark.parametrize("shape", [(16, 32), (5, 31), (1, 7), (9, 1)])
def test_trans(draw, poisoned, check, shape, dtype):
    x, out = draw(dtype, shape), poisoned(dtype, shape[::-1])
    transpose_kernel[(1,)](x, out, *shape, M=16, N=32)
    check(out, x.T, ulps=0)


@triton.jit
def reshape_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    y = tl.reshape(tl.trans(x), (M * N,))
    tl.store(out_ptr + tl.arange(0, M * N), y + tl.reshape(tl.arange(0, M * N), (N * M,)))


def test_reshape(draw, poisoned, check):
    x, out = draw("int32", (4, 16), 0, 1000), poisoned("int32", 64)
    reshape_kernel[(1,)](x, out, M=4, N=16)
    check(out, x.T.reshape(64) + np.arange(64))


@triton.jit
def expand_kernel(out_ptr, M: tl.constexpr, N: tl.constexpr):
    rows = tl.expand_dims(tl.arange(0, M), 1)
    columns = tl.expand_dims(tl.arange(0, N), axis=0)
    rows = tl.broadcast_to(rows, (M, N))
    tl.store(out_ptr + rows * N + columns, 100 * rows + columns)


def test_expand_dims_and_broadcast_to(poisoned, check):
    out = poisoned("int32", (8, 4))
    expand_kernel[(1,)](out, M=8, N=4)
    check(out, 100 * np.arange(8)[:, None] + np.arange(4))


@triton.jit
def cube_kernel(out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    a = tl.arange(0, A)[:, None, None]
    b = tl.arange(0, B)[None, :, None]
    c = tl.arange(0, C)[None, None, :]
    total = tl.sum(a * 100 + b * 10 + c, axis=1)
    tl.store(out_ptr + tl.arange(0, A)[:, None] * C + tl.arange(0, C)[None, :], total)


def test_three_dimensions(poisoned, check):
    out = poisoned("int32", (2, 8))
    cube_kernel[(1,)](out, A=2, B=4, C=8)
    a, b, c = np.ogrid[:2, :4, :8]
    check(out, (a * 100 + b * 10 + c).sum(axis=1))


@triton.jit
def fill_kernel(out_ptr, value, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.full((BLOCK,), value, tl.float32), mask=offsets < n)
    tl.store(out_ptr + n + offsets, tl.zeros([BLOCK], tl.float32), mask=offsets < n)
    tl.store(out_ptr + 2 * n + offsets, tl.full([BLOCK], -3, tl.int32), mask=offsets < n)
    tl.store(out_ptr + 3 * n + offsets, 2.5, mask=offsets < n)


def test_full_and_zeros(poisoned, check):
    out = poisoned("float32", (4, 5))
    fill_kernel[(1,)](out, 1.5, 5, BLOCK=8)
    check(out, np.repeat([[1.5], [0], [-3], [2.5]], 5, axis=1))


@triton.jit
def ranges_kernel(out_ptr):
    tl.store(out_ptr + tl.arange(0, 8), tl.arange(8, 16))
    tl.store(out_ptr + 8 + tl.arange(0, 1), tl.arange(5, 6))


def test_arange_with_a_start(poisoned, check):
    out = poisoned("int32", 9)
    ranges_kernel[(1,)](out)
    check(out, [*range(8, 16), 5])


@triton.jit
def below_zero(out_ptr):
    """How many of each pair are the first of it, which comparisons of negative numbers say."""
    i = tl.arange(0, 32)
    is_first = tl.broadcast_to((tl.arange(-2, 0) < -1)[None, :, None], (4, 2, 4)).to(tl.int32)
    count = tl.broadcast_to(tl.sum(is_first, 1)[:, None, :], (4, 2, 4))
    tl.store(out_ptr + i, tl.reshape(count, (32,)))
    tl.store(out_ptr + 32 + i, tl.reshape(tl.reshape(tl.arange(-32, 0), (4, 8)) // 2, (32,)))


def test_ranges_below_zero(poisoned, check):
    out = poisoned("int32", (2, 32))
    below_zero[(1,)](out)
    check(out, np.stack([np.ones(32), np.trunc(np.arange(-32, 0) / 2)]))
