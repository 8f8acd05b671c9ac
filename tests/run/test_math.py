"""Functions of one float: the whole range of arguments, infinities, NaN, zeros of both signs.

Within four units in the last place (Triton's own fast functions on a GPU have two); sqrt and what is exact within one.
"""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl

SIZE = 777
# The results of these arguments are normal numbers, in fp32 and in fp64.
RANGES = {
    "exp": {"float32": (-87, 88), "float64": (-700, 700)},
    "exp2": {"float32": (-125, 127), "float64": (-1000, 1000)},
    "log": {"float32": (1e-30, 1e30), "float64": (1e-300, 1e300)},
    "log2": {"float32": (1e-30, 1e30), "float64": (1e-300, 1e300)},
    "sqrt": {"float32": (0, 1e30), "float64": (0, 1e300)},
    "rsqrt": {"float32": (1e-30, 1e30), "float64": (1e-300, 1e300)},
}


@triton.jit
def math_kernel(x_ptr, out_ptr, n, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=1.0)
    if FUNCTION == "exp":
        out = tl.exp(x)
    elif FUNCTION == "exp2":
        out = tl.exp2(x)
    elif FUNCTION == "log":
        out = tl.log(x)
    elif FUNCTION == "log2":
        out = tl.log2(x)
    elif FUNCTION == "sqrt":
        out = tl.sqrt(x)
    else:
        out = tl.rsqrt(x)
    tl.store(out_ptr + offsets, out, mask=offsets < n)


def numpy_function(name):
    return (lambda x: 1 / np.sqrt(x)) if name == "rsqrt" else getattr(np, name)


def run(x, out, function):
    math_kernel[(triton.cdiv(x.size, 256),)](x, out, x.size, FUNCTION=function, BLOCK=256)
    return out


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", RANGES)
def test_whole_range(executor, draw, poisoned, function, dtype):
    low, high = RANGES[function][dtype]
    if function in ("exp", "exp2"):
        x = draw(dtype, SIZE, low, high)
    else:  # every order of magnitude alike
        x = np.exp(draw("float64", SIZE, np.log(max(low, 1e-30)), np.log(high))).astype(dtype)
    expected = numpy_function(function)(x.astype(np.longdouble)).astype(np.float64)
    epsilon = np.finfo(dtype).eps
    # Near 1 a logarithm is the difference of near numbers: an absolute error of one epsilon is allowed as well.
    atol = epsilon if function.startswith("log") else 0
    # A GPU's exp is ex2 of the rounded product with log2(e), up to 128: half an ulp of it is 44 of the result.
    is_fast = executor.startswith("cuda") and function == "exp" and dtype == "float32"
    rtol = (64 if is_fast else 4) * epsilon
    np.testing.assert_allclose(run(x, poisoned(dtype, SIZE), function), expected, rtol=rtol, atol=atol)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", ["log", "log2"])
def test_logarithm_near_one(draw, poisoned, function, dtype):
    x = draw(dtype, SIZE, 0.9, 1.1)
    x[0] = 1
    expected = numpy_function(function)(x.astype(np.longdouble)).astype(np.float64)
    # An absolute error of one epsilon, where the result is between -0.11 and 0.1 (0.15 for log2).
    np.testing.assert_allclose(
        run(x, poisoned(dtype, SIZE), function), expected, rtol=0, atol=float(np.finfo(dtype).eps)
    )


SPECIAL = {
    "exp": ([0.0, -0.0, np.inf, -np.inf, np.nan, 1000.0, -1000.0], [1, 1, np.inf, 0, np.nan, np.inf, 0]),
    "exp2": ([0.0, -0.0, np.inf, -np.inf, np.nan, 2000.0, -2000.0], [1, 1, np.inf, 0, np.nan, np.inf, 0]),
    "log": ([1.0, 0.0, np.inf, np.nan, -1.0], [0, -np.inf, np.inf, np.nan, np.nan]),
    "log2": ([1.0, 8.0, 0.0, np.inf, np.nan, -1.0], [0, 3, -np.inf, np.inf, np.nan, np.nan]),
    "sqrt": ([0.0, 4.0, np.inf, np.nan, -1.0], [0, 2, np.inf, np.nan, np.nan]),
    "rsqrt": ([4.0, 0.0, np.inf, np.nan, -1.0], [0.5, np.inf, 0, np.nan, np.nan]),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", SPECIAL)
def test_special_values(poisoned, function, dtype):
    arguments, expected = SPECIAL[function]
    got = run(np.array(arguments, dtype), poisoned(dtype, len(arguments)), function)
    np.testing.assert_allclose(got, expected, rtol=float(np.finfo(dtype).eps), atol=0)
