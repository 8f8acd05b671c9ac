"""Comparisons and `where`: signed and unsigned, NaN, scalars against tiles; results are exact."""

import operator

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl

DTYPES = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64"]
OPERATORS = ["eq", "ne", "lt", "le", "gt", "ge"]
SIZE = 301


@triton.jit
def compare_kernel(x_ptr, y_ptr, out_ptr, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    if OP == "eq":
        out = x == y
    elif OP == "ne":
        out = x != y
    elif OP == "lt":
        out = x < y
    elif OP == "le":
        out = x <= y
    elif OP == "gt":
        out = x > y
    else:
        out = x >= y
    tl.store(out_ptr + offsets, out.to(tl.int8), mask=mask)


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", OPERATORS)
def test_comparison(draw, poisoned, op, dtype):
    x, y = draw(dtype, SIZE), draw(dtype, SIZE)
    y[::3] = x[::3]
    if x.dtype.kind not in "iu":
        x[1::7], y[2::7] = np.nan, np.nan
        x[3::7], y[3::7] = np.inf, -np.inf
    out = poisoned("int8", SIZE)
    exact = x.dtype if x.dtype.kind in "iu" else np.float64
    compare_kernel[(triton.cdiv(SIZE, 128),)](x, y, out, SIZE, OP=op, BLOCK=128)
    np.testing.assert_array_equal(out, getattr(operator, op)(x.astype(exact), y.astype(exact)))


@triton.jit
def where_kernel(condition_ptr, x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    condition = tl.load(condition_ptr + offsets, mask=mask)
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(condition, x, y), mask=mask)


@pytest.mark.parametrize("dtype", DTYPES)
def test_where(draw, poisoned, check, dtype):
    condition, x, y, out = draw("bool", 100), draw(dtype, 100), draw(dtype, 100), poisoned(dtype, 100)
    where_kernel[(1,)](condition, x, y, out, 100, BLOCK=128)
    check(out, np.where(condition, x, y).astype(out.dtype if out.dtype.kind in "iu" else np.float64), ulps=0)


@triton.jit
def clamp_kernel(x_ptr, out_ptr, low, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.where((x < low) | (x > 1.0), 0.5, x))


def test_where_of_a_tile_and_numbers(draw, poisoned, check):
    x, out = draw("float32", 64), poisoned("float32", 64)
    clamp_kernel[(1,)](x, out, -0.25, BLOCK=64)
    check(out, np.where((x < -0.25) | (x > 1), 0.5, x), ulps=0)


@triton.jit
def truth_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.where(x, 7, x.to(tl.int1).to(tl.int32)))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8"])
def test_a_number_as_a_condition_is_true_where_it_is_not_0(poisoned, check, dtype):
    values = [0, -0.0, 1, -1, 2, 3, 4, 5]
    if dtype.startswith("float"):
        values[3:] = [np.nan, np.inf, -np.inf, np.finfo(dtype).smallest_subnormal, 0.25]
    x, out = np.array(values, dtype), poisoned("int32", 8)
    with pytest.warns(UserWarning, match="condition of tl.where is int1, got .* which is true where it is not 0"):
        truth_kernel[(1,)](x, out, BLOCK=8)
    check(out, np.array([0, 0, *[7] * 6]))
