"""`sum`, `max` and `min`: each axis, the whole tile, keep_dims, every type, tiles whose rest is masked.

Integers are exact; sums of n floats within sqrt(n) roundings of the largest partial sum, here eight epsilon.
"""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl

INTEGERS = ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]


@triton.jit
def reduce_rows_kernel(x_ptr, out_ptr, m, n, AXIS: tl.constexpr, OP: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    x = tl.load(x_ptr + rows[:, None] * n + columns[None, :], mask=inside, other=0)
    if OP == "sum":
        out = tl.sum(x, axis=AXIS)
    elif OP == "max":
        out = tl.max(x, axis=AXIS)
    else:
        out = tl.min(x, axis=AXIS)
    if AXIS == 0:
        tl.store(out_ptr + columns, out, mask=columns < n)
    else:
        tl.store(out_ptr + rows, out, mask=rows < m)


def expected_of(x, op, axis):
    """What a tile padded with zeros gives."""
    padded = np.zeros((16, 64), x.dtype)
    padded[: x.shape[0], : x.shape[1]] = x
    dtype = np.float64 if x.dtype.kind not in "iu" else x.dtype
    kwargs = {"dtype": x.dtype} if op == "sum" and x.dtype.kind in "iu" else {}
    return getattr(padded.astype(dtype), op)(axis=axis, **kwargs)[: x.shape[1 - axis]]


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("op", ["sum", "max", "min"])
def test_integers(draw, poisoned, check, op, axis, dtype):
    x = draw(dtype, (13, 50))
    out = poisoned(dtype, x.shape[1 - axis])
    reduce_rows_kernel[(1,)](x, out, *x.shape, AXIS=axis, OP=op, M=16, N=64)
    check(out, expected_of(x, op, axis))


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("op", ["sum", "max", "min"])
def test_floats(draw, poisoned, check, check_norm, op, axis, dtype):
    x = draw(dtype, (13, 50))
    out = poisoned(dtype, x.shape[1 - axis])
    reduce_rows_kernel[(1,)](x, out, *x.shape, AXIS=axis, OP=op, M=16, N=64)
    if op == "sum":
        epsilon = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-23, "float64": 2**-52}[dtype]
        check_norm(out, expected_of(x, op, axis), 8 * epsilon)
    else:
        check(out, expected_of(x, op, axis), ulps=0)


@triton.jit
def reduce_all_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(out_ptr + 3 * tl.program_id(0), tl.sum(x, axis=0))
    tl.store(out_ptr + 3 * tl.program_id(0) + 1, tl.max(x, axis=0))
    tl.store(out_ptr + 3 * tl.program_id(0) + 2, tl.min(x))


@pytest.mark.parametrize("block", [1, 2, 128, 4096])
def test_vectors_to_scalars(draw, poisoned, block):
    n = 1001
    x, programs = draw("float32", n), triton.cdiv(n, block)
    out = poisoned("float32", (programs, 3))
    reduce_all_kernel[(programs,)](x, out, n, BLOCK=block)
    padded = np.concatenate([x, np.zeros(programs * block - n)]).reshape(programs, block).astype(np.float64)
    # Terms cancel: roundings are relative to the terms, not to the sum.
    assert np.all(np.abs(out[:, 0] - padded.sum(axis=1)) <= 2e-7 * np.abs(padded).sum(axis=1))
    np.testing.assert_array_equal(out[:, 1], padded.max(axis=1))
    np.testing.assert_array_equal(out[:, 2], padded.min(axis=1))


@triton.jit
def keep_dims_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + offsets)
    x = x - tl.max(x, axis=1, keep_dims=True)
    tl.store(out_ptr + offsets, x / tl.sum(x, 0, keep_dims=True))


def test_keep_dims(draw, poisoned, check_norm):
    x, out = draw("float32", (8, 32)), poisoned("float32", (8, 32))
    keep_dims_kernel[(1,)](x, out, M=8, N=32)
    shifted = x.astype(np.float64) - x.max(axis=1, keepdims=True)
    check_norm(out, shifted / shifted.sum(axis=0, keepdims=True), 1e-5)


@triton.jit
def whole_tile_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out_ptr, tl.sum(x))
    tl.store(out_ptr + 1, tl.max(tl.max(x, 1), 0))


def test_whole_tile(draw, poisoned, check_norm):
    x, out = draw("float32", (16, 32)), poisoned("float32", 2)
    whole_tile_kernel[(1,)](x, out, M=16, N=32)
    check_norm(out, np.array([x.astype(np.float64).sum(), x.max()]), 1e-5)


@triton.jit
def sum_bytes_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK)), axis=0))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_sums_of_small_integers_do_not_wrap(draw, poisoned, check, dtype):
    """Sums of integers below 32 bits are 32 bits wide."""
    out_dtype = "uint32" if dtype[0] == "u" else "int32"
    x, out = draw(dtype, 512, 100, 127), poisoned(out_dtype, 1)
    sum_bytes_kernel[(1,)](x, out, BLOCK=512)
    check(out, x.sum(dtype=out_dtype, keepdims=True))


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def reduce_columns_kernel(x_ptr, sums_ptr, products_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(sums_ptr + tl.arange(0, N), tl.sum(x, axis=0))
    tl.store(products_ptr + tl.arange(0, N), tl.reduce(x, 0, multiply))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_long_sums_of_narrow_floats(draw, poisoned, check_norm, dtype):
    """A sum of 1024 numbers near one does not stop growing at 256: it rounds as a tree does, not as a chain."""
    epsilon = {"float16": 2**-10, "bfloat16": 2**-7}[dtype]
    x = (1 + epsilon * draw("int32", (1024, 8), -1, 1)).astype(draw(dtype, 1).dtype)
    sums, products = poisoned(dtype, 8), poisoned(dtype, 8)
    reduce_columns_kernel[(1,)](x, sums, products, M=1024, N=8)
    check_norm(sums, x.astype(np.float64).sum(axis=0), 2 * epsilon)
    check_norm(products, x.astype(np.float64).prod(axis=0), 8 * epsilon)
