"""Arguments of every type, program ids in three dimensions, and arithmetic on scalars."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl


@triton.jit
def store_kernel(out_ptr, value):
    tl.store(out_ptr, value)


@pytest.mark.parametrize("value", [0, 1, 16, 17, -5, 2**31 - 1, -(2**31), 2**31, 2**40 + 1, -(2**63), 2**64 - 1])
def test_whole_numbers(poisoned, check, value):
    """Also those that are specialised: 1, and multiples of 16; and those that need 64 bits."""
    dtype = "uint64" if value >= 2**63 else "int64"
    out = poisoned(dtype, 1)
    store_kernel[(1,)](out, value)
    check(out, np.array([value], dtype))


@triton.jit
def converted_kernel(out_ptr, value):
    tl.store(out_ptr, value.to(tl.int64) << 40)


@pytest.mark.parametrize("value", [0, 1, 16, 17])
def test_a_number_that_may_be_known_is_converted(poisoned, check, value):
    """1 is known when the kernel is compiled, and has `.to` all the same."""
    out = poisoned("int64", 1)
    converted_kernel[(1,)](out, value)
    check(out, np.array([value << 40]))


@pytest.mark.parametrize("value", [0.0, 1.0, 0.125, -3.7, 1e-30, float("inf"), float("nan")])
def test_numbers_arrive_as_fp32(poisoned, value):
    out = poisoned("float64", 2)
    store_kernel[(1,)](out, value)
    np.testing.assert_array_equal(out[0], np.float32(value))


@triton.jit
def bool_kernel(out_ptr, flag):
    if flag:
        tl.store(out_ptr, 1)
    else:
        tl.store(out_ptr, 2)
    tl.store(out_ptr + 1, tl.where(flag, 3, 4))


@pytest.mark.parametrize("flag", [False, True])
def test_booleans(poisoned, check, flag):
    out = poisoned("int32", 2)
    bool_kernel[(1,)](out, flag)
    check(out, [1, 3] if flag else [2, 4])


@triton.jit
def none_kernel(x_ptr, bias_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    if bias_ptr is not None:
        x += tl.load(bias_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr + tl.arange(0, BLOCK), x)


def test_none_in_place_of_a_pointer(draw, poisoned, check):
    x, bias = draw("int32", 16), draw("int32", 16)
    for given, expected in ((None, x), (bias, x + bias)):
        out = poisoned("int32", 16)
        none_kernel[(1,)](x, given, out, BLOCK=16)
        check(out, expected)


@triton.jit
def grid_kernel(out_ptr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    index = (z * tl.num_programs(1) + y) * tl.num_programs(0) + x
    tl.store(out_ptr + index, x + 100 * y + 10_000 * z)


@pytest.mark.parametrize("grid", [(1,), (7,), (3, 5), (2, 3, 4), (1, 1, 6)])
def test_program_ids(poisoned, check, grid):
    x, y, z = (*grid, 1, 1)[:3]
    out = poisoned("int32", (z, y, x))
    grid_kernel[grid](out)
    k, j, i = np.ogrid[:z, :y, :x]
    check(out, i + 100 * j + 10_000 * k)


@triton.jit
def scalar_arithmetic_kernel(out_ptr, i, x):
    tl.store(out_ptr, i * 3 - 7 // 2)
    tl.store(out_ptr + 1, i / 4)
    tl.store(out_ptr + 2, i + x)
    tl.store(out_ptr + 3, -x * 2**3)
    tl.store(out_ptr + 4, tl.exp(x))
    tl.store(out_ptr + 5, tl.cdiv(i, 4))
    tl.store(out_ptr + 6, min(i, 5) + max(x, 2.0))
    tl.store(out_ptr + 7, i // 3)
    tl.store(out_ptr + 8, i % 3)


@pytest.mark.parametrize("i", [13, 2, 1])
def test_scalar_arithmetic(poisoned, check_norm, i):
    out, x = poisoned("float32", 9), 1.5
    scalar_arithmetic_kernel[(1,)](out, i, x)
    expected = [i * 3 - 3, i / 4, i + x, -12, np.exp(x), -(-i // 4), min(i, 5) + 2, i // 3, i % 3]
    check_norm(out, np.array(expected), 1e-6)
