"""Offsets of 8 and 16 bits wrap around where they are computed: what is loaded through them is not in one run. Those of
32 bits may wrap on the way.
"""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl

NARROW = [tl.int8, tl.uint8, tl.int16]


def numbers(value: np.ndarray, type: tl.dtype) -> np.ndarray:
    return value.astype(type.name).astype(np.int64)


@triton.jit
def gather_and_scatter(x_ptr, out_ptr, shift, T: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    places = i.to(T) + shift.to(T)
    tl.store(out_ptr + i, tl.load(x_ptr + 32768 + places))
    tl.store(out_ptr + N + 32768 + places, i)


@pytest.mark.parametrize("type", NARROW, ids=str)
def test_loads_and_stores(draw, poisoned, type):
    x, n = draw("int32", 65536), 256 if type is not tl.int16 else 512
    out, shift = poisoned("int32", n + 65536), 100 if type is not tl.int16 else 32500
    expected = out.copy()
    gather_and_scatter[(1,)](x, out, shift, T=type, N=n, num_warps=1)
    places = numbers(np.arange(n) + shift, type)
    expected[:n] = x[32768 + places]
    expected[n + 32768 + places] = np.arange(n)
    np.testing.assert_array_equal(out, expected)


@triton.jit
def products(a_ptr, b_ptr, c_ptr, K, T: tl.constexpr, BK: tl.constexpr, IN_ROWS: tl.constexpr):
    """Columns of A are counted by few bits, or, IN_ROWS, what its rows begin at."""
    i, k, columns = tl.arange(0, 32), tl.arange(0, BK), tl.arange(0, BK).to(T)
    rows = (i * 12).to(T) if IN_ROWS else i * 512
    acc = tl.zeros((32, 32), tl.float32)
    for start in range(0, K, BK):
        if IN_ROWS:
            a = tl.load(a_ptr + 1024 + rows[:, None] + (start + k)[None, :])
        else:
            a = tl.load(a_ptr + 1024 + rows[:, None] + columns[None, :])
        b = tl.load(b_ptr + (start + k)[:, None] * 32 + i[None, :])
        acc = tl.dot(a, b, acc, input_precision="ieee")
        columns += BK
    tl.store(c_ptr + i[:, None] * 32 + i[None, :], acc)


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("in_rows", [False, True])
@pytest.mark.parametrize("type", NARROW[:2], ids=str)
def test_products(draw, poisoned, check_norm, type, in_rows, dtype):
    """A product of several steps of a loop, which may read A where it is, reads it where each step has it."""
    depth, size = 384, 32
    data, b, c = draw(dtype, (1 << 15,)), draw(dtype, (depth, 32)), poisoned("float32", (32, 32))
    products[(1,)](data, b, c, depth, T=type, BK=size, IN_ROWS=in_rows)
    i, k = np.arange(32)[:, None], np.arange(depth)[None, :]
    offsets = numbers(i * 12, type) + k if in_rows else i * 512 + numbers(k, type)
    check_norm(c, data[1024 + offsets].astype(np.float64) @ b.astype(np.float64), 1e-3)


@triton.jit
def advance_pointers(x_ptr, out_ptr, step, T: tl.constexpr, N: tl.constexpr, TIMES: tl.constexpr):
    """Pointers that advance by few bits each time are not moved by so few in all."""
    i = tl.arange(0, N)
    pointers = x_ptr + i
    for time in range(TIMES):
        tl.store(out_ptr + time * N + i, tl.load(pointers))
        pointers += step.to(T)


@pytest.mark.parametrize("type", NARROW, ids=str)
def test_pointers_that_advance(draw, poisoned, type):
    x, out = draw("int32", 4096), poisoned("int32", (16, 64))
    advance_pointers[(1,)](x, out, 100, T=type, N=64, TIMES=16)
    np.testing.assert_array_equal(out, x[100 * np.arange(16)[:, None] + np.arange(64)])


@triton.jit
def overflow_on_the_way(x_ptr, out_ptr, n, HOW: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    if HOW == "multiplied by thirds":
        places = (i * 3 + 7) * -1431655765 + 1431655763
    if HOW == "through the largest number":
        places = (i + 2147483647) - 2147483647
    if HOW == "cut":
        places = (i.to(tl.int64) * 4294967297 - 5).to(tl.int32) + 5
    if HOW == "in rows":
        rows, columns = tl.arange(0, N // 16) * 16, tl.arange(0, 16)
        places = tl.ravel((rows[:, None] * -1431655765 + columns[None, :] * -1431655765) * 3)
    for k in range(0, n, N):
        tl.store(out_ptr + k + places, tl.load(x_ptr + k + places) + 1)


WAYS = ["multiplied by thirds", "through the largest number", "cut", "in rows"]


@pytest.mark.parametrize("how", WAYS)
def test_offsets_of_32_bits_that_overflow_on_the_way(draw, poisoned, how):
    """What multiplies and adds wraps as its type does, so that what is an offset in the end is right."""
    x, out = draw("int32", 512), poisoned("int32", 512)
    overflow_on_the_way[(1,)](x, out, 512, HOW=how, N=128)
    np.testing.assert_array_equal(out, x + 1)


@triton.jit
def padded(a_ptr, b_ptr, c_ptr, steps, PAD: tl.constexpr):
    """Columns in front of A are large numbers, which the mask leaves out."""
    i = tl.arange(0, 64)
    columns = (i - PAD).to(tl.uint32).to(tl.uint64)
    inside = columns < 1000
    a_ptrs = a_ptr + i[:, None].to(tl.uint64) * 1024 + columns[None, :]
    acc = tl.zeros((64, 64), tl.float32)
    for step in range(steps):
        a = tl.load(a_ptrs, mask=inside[None, :], other=0.0)
        b = tl.load(b_ptr + (step * 64 + i)[:, None] * 64 + i[None, :])
        acc = tl.dot(a, b, acc)
        a_ptrs += 64
    tl.store(c_ptr + i[:, None] * 64 + i[None, :], acc)


@pytest.mark.each_gpu
@pytest.mark.parametrize("pad", [1, 8])
def test_numbers_without_a_sign_are_widened(draw, poisoned, pad):
    """A thread that advances one of its pointers computes the others of it: where 0 follows 2**32 - 1 it may not."""
    a, b, c = draw("int8", (64, 1024), -3, 3), draw("int8", (192, 64), -3, 3), poisoned("float32", (64, 64))
    padded[(1,)](a.astype(np.float16), b.astype(np.float16), c, 3, PAD=pad)
    columns = np.arange(64) - pad
    blocks = [np.where(columns >= 0, a[:, np.maximum(columns, 0) + 64 * step], 0) for step in range(3)]
    np.testing.assert_array_equal(c, np.hstack(blocks).astype(np.float64) @ b)
