"""Bit operators: and, or, xor, not, shifts (arithmetic where the type is signed); results are exact."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl

DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
SIZE = 150
NUMPY = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "left": np.left_shift,
    "right": np.right_shift,
}


@triton.jit
def bits_kernel(x_ptr, y_ptr, out_ptr, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    if OP == "and":
        out = x & y
    elif OP == "or":
        out = x | y
    elif OP == "xor":
        out = x ^ y
    elif OP == "left":
        out = x << y
    else:
        out = x >> y
    tl.store(out_ptr + offsets, out, mask=mask)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", NUMPY)
def test_bits(draw, poisoned, check, op, dtype):
    x, out = draw(dtype, SIZE), poisoned(dtype, SIZE)
    y = draw(dtype, SIZE, 0, 8 * x.itemsize - 1) if op in ("left", "right") else draw(dtype, SIZE)
    bits_kernel[(1,)](x, y, out, SIZE, OP=op, BLOCK=256)
    check(out, NUMPY[op](x, y))


@triton.jit
def shift_too_far_kernel(x_ptr, by_ptr, out_ptr, n, BY: tl.constexpr, SIZE: tl.constexpr):
    places = tl.arange(0, SIZE)
    x, by, first = tl.load(x_ptr + places), tl.load(by_ptr + places), tl.load(x_ptr)
    known = tl.full([SIZE], BY, tl.int32)
    tl.store(out_ptr + places, x << known)
    tl.store(out_ptr + SIZE + places, x >> known)
    tl.store(out_ptr + 2 * SIZE + places, x << by)
    tl.store(out_ptr + 3 * SIZE + places, x >> by)
    tl.store(out_ptr + 4 * SIZE + places, (first << n) + tl.zeros([SIZE], tl.int32))
    tl.store(out_ptr + 5 * SIZE + places, (first >> n) + tl.zeros([SIZE], tl.int32))


@pytest.mark.parametrize("by", [32, 63])
def test_a_shift_by_the_width_or_more(draw, poisoned, check, by):
    """Nothing is left, or the sign, also where the compiler knows by how much."""
    x, amounts, out = draw("int32", 64), np.arange(64, dtype=np.int32), poisoned("int32", (6, 64))
    shift_too_far_kernel[(1,)](x, amounts, out, by, BY=by, SIZE=64)
    wide = x.astype(np.int64)
    left, right = wide << np.minimum(amounts, 32), wide >> np.minimum(amounts, 31)
    signs, ones = wide >> 31, np.ones(64, np.int64)
    check(out, np.stack([0 * ones, signs, left, right, 0 * ones, signs[0] * ones]).astype(np.int32))


@triton.jit
def invert_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), ~tl.load(x_ptr + tl.arange(0, BLOCK)))


@pytest.mark.parametrize("dtype", DTYPES + ["bool"])
def test_invert(draw, poisoned, check, dtype):
    x, out = draw(dtype, 32), poisoned(dtype, 32)
    invert_kernel[(1,)](x, out, BLOCK=32)
    check(out, ~x)


@triton.jit
def logic_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    inside = (x > 0.0) & (x < 1.0) ^ (tl.arange(0, BLOCK) % 2 == 0)
    tl.store(out_ptr + tl.arange(0, BLOCK), inside | (n == 3))


@pytest.mark.parametrize("n", [2, 3])
def test_bits_of_comparisons(draw, poisoned, check, n):
    x, out = draw("float32", 64), poisoned("bool", 64)
    logic_kernel[(1,)](x, out, n, BLOCK=64)
    check(out, (x > 0) & (x < 1) ^ (np.arange(64) % 2 == 0) | (n == 3))
