"""Beyond what attention kernels need: sin, cos, erf, floor, ceil, fma, sigmoid, exact division and roots, umulhi."""

import math

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl

SIZE = 500


@triton.jit
def unary_kernel(x_ptr, out_ptr, n, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=1.0)
    if FUNCTION == "sin":
        out = tl.sin(x)
    elif FUNCTION == "cos":
        out = tl.cos(x)
    elif FUNCTION == "erf":
        out = tl.erf(x)
    elif FUNCTION == "floor":
        out = tl.floor(x)
    elif FUNCTION == "ceil":
        out = tl.ceil(x)
    elif FUNCTION == "sigmoid":
        out = tl.sigmoid(x)
    else:
        out = tl.sqrt_rn(tl.abs(x))
    tl.store(out_ptr + offsets, out, mask=offsets < n)


def run(x, out, function):
    unary_kernel[(1,)](x, out, x.size, FUNCTION=function, BLOCK=512)
    return out


# Arguments up to a hundred turns; near zeros of sin and cos the error is absolute, hence atol.
@pytest.mark.parametrize("function", ["sin", "cos"])
def test_angles(draw, poisoned, function):
    x = draw("float32", SIZE, -600, 600)
    expected = getattr(np, function)(x.astype(np.float64))
    np.testing.assert_allclose(run(x, poisoned("float32", SIZE), function), expected, rtol=1e-6, atol=1e-6)


def test_erf(draw, poisoned):
    x = draw("float32", SIZE, -5, 5)
    expected = np.array([math.erf(value) for value in x.astype(np.float64)])
    np.testing.assert_allclose(run(x, poisoned("float32", SIZE), "erf"), expected, rtol=1e-6, atol=1e-7)


def test_sigmoid(draw, poisoned, check_norm):
    x = draw("float32", SIZE, -20, 20)
    check_norm(run(x, poisoned("float32", SIZE), "sigmoid"), 1 / (1 + np.exp(-x.astype(np.float64))), 1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("function", "exact"), [("floor", np.floor), ("ceil", np.ceil)])
def test_floor_and_ceil(draw, poisoned, check, function, exact, dtype):
    x = draw(dtype, SIZE, -100, 100)
    x[:3] = [-0.5, 7, np.inf]
    check(run(x, poisoned(dtype, SIZE), function), exact(x), ulps=0)


def test_correctly_rounded_root(draw, poisoned, check):
    x = draw("float32", SIZE, -1000, 1000)
    check(run(x, poisoned("float32", SIZE), "sqrt_rn"), np.sqrt(np.abs(x)), ulps=0)


@triton.jit
def ternary_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + offsets), tl.load(y_ptr + offsets)
    tl.store(out_ptr + offsets, tl.fma(x, y, -x * y))
    tl.store(out_ptr + BLOCK + offsets, tl.div_rn(x, y))
    tl.store(out_ptr + 2 * BLOCK + offsets, tl.clamp(x, -0.5, 0.25))


def test_division_and_clamp_are_exact(draw, poisoned, check):
    x, y, out = draw("float32", 128), draw("float32", 128, 0.5, 2), poisoned("float32", (3, 128))
    ternary_kernel[(1,)](x, y, out, BLOCK=128)
    # What is left of the product after rounding: zero where a compiler fuses the other product as well.
    assert np.all(np.abs(out[0]) <= np.abs(x * y) * 2.0**-23)
    check(out[1], x / y, ulps=0)
    check(out[2], np.clip(x, -0.5, 0.25), ulps=0)


@triton.jit
def fma_kernel(x_ptr, y_ptr, z_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.fma(tl.load(x_ptr + i), tl.load(y_ptr + i), tl.load(z_ptr + i)))


@pytest.mark.parametrize(
    ("dtype", "step", "little"), [("float16", 2.0**-10, 2.0**-24), ("bfloat16", 2.0**-7, 2.0**-60)]
)
def test_fma_of_narrow_floats_rounds_once(draw, poisoned, check, dtype, step, little):
    """A product in the middle between two numbers, and what a float32 would lose of it: that says which is nearer."""
    x, y, z, out = draw(dtype, 32, 1, 2), draw(dtype, 32, 1, 2), draw(dtype, 32), poisoned(dtype, 32)
    x[:3], y[:3], z[:3] = 1 + step, 1.5, [little, -little, np.inf]
    fma_kernel[(1,)](x, y, z, out, BLOCK=32)
    assert out[:3].tolist() == [1.5 + 2 * step, 1.5 + step, np.inf]
    check(out[3:], (x.astype(np.float64) * y.astype(np.float64) + z.astype(np.float64))[3:].astype(x.dtype), ulps=0)


@triton.jit
def umulhi_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.umulhi(tl.load(x_ptr + offsets), tl.load(y_ptr + offsets)))


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_high_half_of_a_product(draw, poisoned, check, dtype):
    x, y, out = draw(dtype, 64), draw(dtype, 64), poisoned(dtype, 64)
    umulhi_kernel[(1,)](x, y, out, BLOCK=64)
    bits = 8 * x.itemsize
    check(out, [int(a) * int(b) >> bits for a, b in zip(x, y, strict=True)])
