"""What `tl.extra.cuda` has besides libdevice, on every target: warps, the processor, waiting for grids, conversions."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl


@triton.jit
def facts_kernel(out_ptr):
    warps: tl.constexpr = tl.extra.cuda.num_warps()
    tl.extra.cuda.gdc_wait()
    tl.store(out_ptr, warps)
    tl.store(out_ptr + 1, tl.extra.cuda.num_threads())
    tl.extra.cuda.gdc_launch_dependents()
    tl.store(out_ptr + 2, tl.extra.cuda.smid())
    tl.store(out_ptr + 3 + tl.arange(0, warps), tl.arange(0, warps))


@pytest.mark.parametrize("num_warps", [1, 8])
def test_facts(poisoned, check, num_warps):
    out = poisoned("int32", 3 + num_warps)
    facts_kernel[(1,)](out, num_warps=num_warps)
    check(out[:2], [num_warps, 32 * num_warps])
    assert 0 <= out[2] < 1000
    check(out[3:], np.arange(num_warps))


@triton.jit
def conversion_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    narrow = tl.extra.cuda.convert_custom_float8_sm80(tl.load(x_ptr + i), tl.float8e4b15)
    tl.store(out_ptr + i, tl.extra.cuda.convert_custom_float8_sm70(narrow, tl.float32))


def test_conversions(poisoned, check):
    x, out = np.array([0, 1, -0.5, 1.75, 0.0625, -1.25, 0.25, 1.5], np.float32), poisoned("float32", 8)
    conversion_kernel[(1,)](x, out, 8)
    check(out, x)


@triton.jit
def builtin_combine_kernel(x_ptr, out_ptr, N: tl.constexpr, combine: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr, tl.reduce(x, 0, combine))
    tl.store(out_ptr + 1 + tl.arange(0, N), tl.associative_scan(x, 0, combine))


@pytest.mark.parametrize(("combine", "ufunc"), [(tl.maximum, np.maximum), (tl.minimum, np.minimum), (tl.add, np.add)])
def test_combine_functions_of_the_language(draw, poisoned, check, combine, ufunc):
    x, out = draw("int32", 64), poisoned("int32", 65)
    builtin_combine_kernel[(1,)](x, out, 64, combine)
    check(out, np.append(ufunc.reduce(x, dtype=x.dtype), ufunc.accumulate(x, dtype=x.dtype)))


@triton.jit
def python_numbers_kernel(x_ptr, n, out_ptr, sums_ptr):
    x = tl.load(x_ptr)
    tl.store(out_ptr, int(x) + int(n))
    tl.store(out_ptr + 1, int(bool(n)) + int(bool(x * 0)))
    tl.store(sums_ptr, float(n) / 2 + float(x))


@pytest.mark.parametrize(("x", "n"), [(2.75, 5), (-2.75, 0), (-3e9, 7)])
def test_numbers_of_python(poisoned, check, x, n):
    out, sums = poisoned("int64", 2), poisoned("float32", 1)
    python_numbers_kernel[(1,)](np.array([x], np.float32), n, out, sums)
    x = float(np.float32(x))
    check(out, [int(x) + n, int(bool(n))])
    check(sums, [np.float32(n / 2) + np.float32(x)])
