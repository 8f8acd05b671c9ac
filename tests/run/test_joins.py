"""join, split, interleave, cat, permute, flip, ravel, view: elements move, none changes."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl

pytestmark = pytest.mark.each_gpu


@triton.jit
def interleave_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    x, y = tl.load(x_ptr + tl.arange(0, BLOCK)), tl.load(y_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr + tl.arange(0, 2 * BLOCK), tl.interleave(x, y))


def test_interleave(draw, poisoned, check):
    x, y, out = draw("int32", 32), draw("int32", 32), poisoned("int32", 64)
    interleave_kernel[(1,)](x, y, out, BLOCK=32)
    check(out, np.stack([x, y], axis=1).reshape(-1))


@triton.jit
def rotate_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    pairs = tl.reshape(tl.load(x_ptr + tl.arange(0, 2 * BLOCK)), (BLOCK, 2))
    even, odd = tl.split(pairs)
    rotated = tl.join(-odd, even)
    tl.store(out_ptr + tl.arange(0, 2 * BLOCK), tl.ravel(rotated))


def test_split_and_join(draw, poisoned, check):
    x, out = draw("float32", 64), poisoned("float32", 64)
    rotate_kernel[(1,)](x, out, BLOCK=32)
    check(out, np.stack([-x[1::2], x[::2]], axis=1).reshape(-1), ulps=0)


@triton.jit
def hadamard_kernel(x_ptr, out_ptr, STAGES: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """Butterflies: sums and differences of elements that are 1, 2, 4 ... apart."""
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    for stage in tl.static_range(STAGES):
        pairs = tl.permute(tl.reshape(x, (M, N // (2 << stage), 2, 1 << stage)), (0, 1, 3, 2))
        left, right = tl.split(pairs)
        x = tl.reshape(tl.permute(tl.join(left + right, left - right), (0, 1, 3, 2)), (M, N))
    tl.store(out_ptr + at, x)


@pytest.mark.parametrize(("shape", "num_warps"), [((4, 128), 1), ((1, 1024), 4), ((2, 64), 4)])
def test_butterflies(draw, poisoned, check, shape, num_warps):
    """Halves of pairs that are in two registers, lanes, warps; of 128 elements a thread of 128 holds one."""
    x, out = draw("int32", shape), poisoned("int32", shape)
    stages = shape[1].bit_length() - 1
    hadamard_kernel[(1,)](x, out, STAGES=stages, M=shape[0], N=shape[1], num_warps=num_warps)
    expected = x.astype(np.int64)
    for stage in range(stages):
        pairs = expected.reshape(shape[0], -1, 2, 1 << stage)
        expected = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2).reshape(shape)
    check(out, expected.astype(np.int32))


@triton.jit
def permute_kernel(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, A * B * C))
    x = tl.permute(tl.reshape(x, (A, B, C)), (2, 0, 1))
    tl.store(out_ptr + tl.arange(0, A * B * C), tl.reshape(x, (A * B * C,)))


def test_permute(draw, poisoned, check):
    x, out = draw("int16", (4, 8, 2)), poisoned("int16", (2, 4, 8))
    permute_kernel[(1,)](x, out, A=4, B=8, C=2)
    check(out, x.transpose(2, 0, 1))


@triton.jit
def squares_kernel(x_ptr, out_ptr, N: tl.constexpr):
    """Both operands of each dot are computed of one join."""
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + i * (N // 2) + tl.arange(0, N // 2)[None, :])
    pairs = tl.reshape(tl.join(x, 2 * x), (N, N))
    tl.store(out_ptr + i * N + j, tl.dot(pairs, pairs, input_precision="ieee"))
    tl.store(out_ptr + N * N + i * N + j, tl.dot(pairs, tl.trans(pairs), input_precision="ieee"))
    tl.store(out_ptr + 2 * N * N + i * N + j, tl.dot(pairs + 1, tl.abs(pairs), input_precision="ieee"))


@pytest.mark.share(2)
@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_one_join_for_both_operands(draw, poisoned, check_norm, dtype, num_warps):
    n = 32
    x, out = draw(dtype, (n, n // 2)), poisoned("float32", (3, n, n))
    squares_kernel[(1,)](x, out, N=n, num_warps=num_warps)
    pairs = np.stack([x, 2 * x], axis=-1).reshape(n, n).astype(np.float64)
    above = (pairs.astype(dtype) + np.array(1, dtype)).astype(np.float64)
    for got, expected in zip(out, (pairs @ pairs, pairs @ pairs.T, above @ np.abs(pairs)), strict=True):
        check_norm(got, expected, 1e-5)
