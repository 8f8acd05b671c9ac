"""Loads and stores: masks, `other`, strides, gathers, scalars, bool pointers; what is masked off stays as it was."""

import ml_dtypes
import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl

DTYPES = ["bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "float16", "bfloat16", "float32", "float64"]


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 63, 64, 1000])
def test_copy_writes_nothing_beyond_the_mask(draw, poisoned, n, dtype):
    x, out = draw(dtype, n), poisoned(dtype, n + 70)
    expected = out.copy()
    expected[:n] = x
    copy_kernel[(triton.cdiv(n, 64),)](x, out, n, BLOCK=64)
    np.testing.assert_array_equal(out.view(np.uint8), expected.view(np.uint8))


@triton.jit
def other_kernel(x_ptr, out_ptr, n, OTHER: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n, other=OTHER))


@pytest.mark.parametrize(
    ("dtype", "other"),
    [("int32", -7), ("uint8", 255), ("float32", float("-inf")), ("float16", 1.5), ("bfloat16", -2), ("int64", 2**40)],
)
def test_other(draw, poisoned, dtype, other):
    x, out = draw(dtype, 20), poisoned(dtype, 32)
    other_kernel[(1,)](x, out, 20, OTHER=other, BLOCK=32)
    np.testing.assert_array_equal(out, np.append(x, np.full(12, other, x.dtype)))


@triton.jit
def number_kernel(x_ptr, out_ptr, X: tl.constexpr):
    i = tl.arange(0, 4)
    tl.store(out_ptr + i, X)
    tl.store(out_ptr + 4 + i, tl.load(x_ptr + i, mask=i < 0, other=X))


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("dtype", "number", "own"),
    [
        ("float64", 0.1, "float32"),
        ("float64", 1e-40, "float64"),  # fp32 has no normal number as small
        ("float64", 2**31 + 1, "uint32"),
        ("float32", 2**24 + 1, "int32"),
        ("float16", 1 + 2**-11 + 2**-40, "float32"),  # a tie in fp32, above it in fp64
        ("bfloat16", 1 + 2**-8 + 2**-40, "float32"),
        ("int8", -128, "int32"),
        ("uint8", 300, "int32"),
        ("uint16", -1, "int32"),
        ("int32", 2**32 - 1, "uint32"),
        ("int64", 2**64 - 1, "uint64"),
        ("int32", 2.7, "float32"),
        ("int32", True, "bool"),
        ("bool", 1.5, "float32"),
    ],
)
def test_a_number_is_rounded_to_its_own_type_first(draw, poisoned, dtype, number, own):
    out = poisoned(dtype, 8)
    number_kernel[(1,)](draw(dtype, 4), out, X=number)
    np.testing.assert_array_equal(out, np.full(8, number, own).astype(out.dtype))


@triton.jit
def atomic_number_kernel(out_ptr):
    tl.atomic_add(out_ptr, 0.1)
    tl.atomic_xchg(out_ptr + 1, 0.1)
    tl.atomic_max(out_ptr + 2, 0.1)
    tl.atomic_store(out_ptr + 3, 0.1)


def test_atomics_take_a_number_as_stores_do():
    out = np.zeros(4)
    atomic_number_kernel[(1,)](out)
    np.testing.assert_array_equal(out, np.full(4, np.float32(0.1), np.float64))


@triton.jit
def gather_kernel(x_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    index = tl.load(index_ptr + offsets, mask=offsets < n, other=0)
    x = tl.load(x_ptr + index, mask=index >= 0, other=0)
    tl.store(out_ptr + offsets, x, mask=offsets < n)


@pytest.mark.parametrize("index_dtype", ["int32", "int64", "int16"])
def test_gather(draw, poisoned, check, index_dtype):
    x, index, out = draw("int32", 91), draw(index_dtype, 77, -20, 90), poisoned("int32", 77)
    gather_kernel[(1,)](x, index, out, 77, BLOCK=128)
    check(out, np.where(index >= 0, x[np.maximum(index, 0)], 0))


@triton.jit
def scatter_kernel(x_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    index = tl.load(index_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + index, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


def test_scatter(draw, poisoned, check, rng):
    x, index, out = draw("float32", 100), rng.permutation(100), poisoned("float32", 100)
    scatter_kernel[(1,)](x, index, out, 100, BLOCK=128)
    check(out[index], x, ulps=0)


@triton.jit
def strided_kernel(x_ptr, out_ptr, m, n, stride_m, stride_n, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    mask = (rows < m)[:, None] & (columns < n)[None, :]
    x = tl.load(x_ptr + rows[:, None] * stride_m + columns[None, :] * stride_n, mask=mask)
    tl.store(out_ptr + rows[:, None] * n + columns[None, :], x, mask=mask)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32"])
@pytest.mark.parametrize("view", ["transposed", "steps", "reversed", "one column"])
def test_strides(draw, poisoned, view, dtype):
    base = draw(dtype, (40, 54))
    x = {
        "transposed": base.T,
        "steps": base[1::2, ::3],
        "reversed": base[::-1, ::-1],
        "one column": np.broadcast_to(base[:, :1], (40, 21)),
    }[view]
    out = poisoned(dtype, x.shape)
    strides = [stride // x.itemsize for stride in x.strides]
    grid = (triton.cdiv(x.shape[0], 16), triton.cdiv(x.shape[1], 8))
    strided_kernel[grid](x, out, *x.shape, *strides, M=16, N=8)
    np.testing.assert_array_equal(out, x)


@triton.jit
def scalar_memory_kernel(x_ptr, out_ptr, flag_ptr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid, mask=pid < 3, other=9)
    tl.store(out_ptr + pid, x, mask=pid != 1)
    if tl.load(flag_ptr + pid):
        tl.store(out_ptr + 10 + pid, 1)


def test_scalars_with_masks(poisoned, check):
    x, flags = np.array([5, 6, 7], np.int32), np.array([True, False, True, True, False])
    out = poisoned("int32", 15)
    expected = out.copy()
    expected[[0, 2, 3, 4]] = [5, 7, 9, 9]
    expected[[10, 12, 13]] = 1
    scalar_memory_kernel[(5,)](x, out, flags)
    check(out, expected)


@triton.jit
def converting_store_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


@pytest.mark.parametrize(("source", "target"), [("float32", "float16"), ("int64", "int8"), ("int32", "float64")])
def test_a_store_casts_to_the_type_of_the_pointer(draw, poisoned, source, target):
    x, out = draw(source, 100), poisoned(target, 100)
    converting_store_kernel[(1,)](x, out, 100, BLOCK=128)
    np.testing.assert_array_equal(out, x.astype(target))


@pytest.mark.parametrize(
    "dtype",
    [ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2fnuz, ml_dtypes.float8_e4m3fnuz],
)
def test_every_fp8_is_copied(dtype):
    """Infinities as well: only conversions saturate."""
    x, out = np.arange(256, dtype=np.uint8).view(dtype), np.zeros(256, dtype)
    copy_kernel[(4,)](x, out, 256, BLOCK=64)
    is_nan = np.isnan(x.astype(np.float32))
    np.testing.assert_array_equal(out.view(np.uint8)[~is_nan], x.view(np.uint8)[~is_nan])
    assert np.isnan(out.astype(np.float32)[is_nan]).all()
