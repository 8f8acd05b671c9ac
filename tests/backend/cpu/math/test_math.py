"""Mathematical functions against longdouble: random bit patterns, usual arguments, special values; no calls of libm."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.backend.cpu.math.functions import FUNCTIONS, ceil, floor, fma
from deuteron.backend.math import exponentials

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

REFERENCES = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}
# ulp, as the modules' docstrings give them, with a little room for arguments not yet seen
LIMITS = {
    "exp": 1.1,
    "exp2": 1.3,
    "log": 1.0,
    "log2": 2.0,
    "sin": 0.6,
    "cos": 0.6,
    "tanh": 2.7,
    "sqrt": 0.5,
    "rsqrt": 1.5,
}
DOUBLE_LIMITS = {**LIMITS, "sin": 1, "cos": 1}
USUAL_SPREAD = {"exp": 40, "exp2": 60, "sin": 30, "cos": 30, "log": 2, "log2": 2}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, 1e-40, 1e-310, 5e-324, -5e-324]
EDGES = np.array(
    SPECIAL
    + [
        88.72,
        88.73,
        -87.4,
        -103.9,
        -104.1,
        709.7,
        709.8,
        -708.4,
        -745.1,
        -745.2,
        127.99,
        128,
        -126,
        -149,
        -150,
        1024,
        -1074,
    ]
)


def arguments(rng, name: str, dtype: type, count: int = 1 << 16) -> np.ndarray:
    bits = rng.integers(0, 256, count * np.dtype(dtype).itemsize, dtype=np.uint8).view(dtype)
    usual = rng.standard_normal(count) * USUAL_SPREAD.get(name, 1)
    near_one = 1 + rng.standard_normal(count) * 0.02
    quarter_turns = np.round(rng.standard_normal(count // 8) * 100) * (math.pi / 2)
    return np.concatenate([bits, *(x.astype(dtype) for x in (usual, near_one, quarter_turns, EDGES))])


def worst_error(got: np.ndarray, expected: np.ndarray) -> float:
    """In ulp of the result's type; infinite where one is NaN or infinite and the other is not."""
    nearest = expected.astype(got.dtype)
    same = (got == nearest) | (np.isnan(got) & np.isnan(nearest))
    comparable = np.isfinite(got) & np.isfinite(nearest)
    error = np.abs(got.astype(np.longdouble) - expected) / np.spacing(np.abs(nearest))
    return float(np.max(np.where(comparable, error, np.where(same, 0, np.inf))))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("arch", ["native", "x86-64-v3", "x86-64"])
@pytest.mark.parametrize("name", REFERENCES)
def test_accuracy(elementwise, rng, name, arch, dtype):
    x = arguments(rng, name, dtype)
    if dtype == np.float64 and name in ("sin", "cos"):
        x = x[~(np.abs(x) > 1e6)]  # longdouble has too few bits to check more: see the test below
    got = elementwise(FUNCTIONS[name], x, result=dtype, arch=arch)
    assert (
        worst_error(got, REFERENCES[name](x.astype(np.longdouble)))
        <= (DOUBLE_LIMITS if dtype == np.float64 else LIMITS)[name]
    )


@pytest.mark.parametrize("name", ["exp", "exp2", "log", "log2", "erf", "tanh"])
def test_every_size_of_float_gives_the_right_kind_of_result(elementwise, name):
    """Every 997th bit pattern, and its neighbours, of all 2**32."""
    x = np.arange(0, 1 << 32, 997, dtype=np.uint32).view(np.float32)
    got = elementwise(FUNCTIONS[name], x, width=16)
    reference = np.vectorize(math.erf, otypes=[float]) if name == "erf" else REFERENCES[name]
    sample = slice(None) if name != "erf" else slice(None, None, 16)
    assert worst_error(got[sample], reference(x[sample].astype(np.float64)).astype(np.longdouble)) <= 2.7


@pytest.mark.parametrize("name", ["exp", "exp2"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("arch", ["native", "x86-64"])
def test_a_zero_is_no_product_that_underflows(elementwise, rng, name, dtype, arch):
    """Every bit is as where the product is computed: which takes longer, see the next test."""
    x = np.concatenate([EDGES.astype(dtype), arguments(rng, name, dtype)])
    computed = getattr(exponentials, name)
    made, expected = (elementwise(function, x, result=dtype, arch=arch) for function in (FUNCTIONS[name], computed))
    np.testing.assert_array_equal(made, expected)
    np.testing.assert_array_equal(np.signbit(made), np.signbit(expected))


@deuteron.jit
def exp_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.exp(tl.load(x + i)))


def test_lanes_that_are_masked_off_do_not_take_longer():
    """Of -inf, by a factor of 4 on a Zen 5 where the product was computed."""
    count = 1 << 13
    out, inputs = np.empty(count, np.float32), [np.full(count, x, np.float32) for x in (0.0, -np.inf)]
    times: list[list[float]] = [[], []]
    for _ in range(60):
        for x, found in zip(inputs, times, strict=True):
            begin = time.thread_time()
            exp_kernel[(1,)](x, out, BLOCK=count)
            found.append(time.thread_time() - begin)
    assert not out.any()
    assert min(times[1]) < 2 * min(times[0])


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scalars_and_vectors_agree(elementwise, rng, name, dtype):
    x = arguments(rng, name, dtype, 64)
    scalar, narrow = (elementwise(FUNCTIONS[name], x, result=dtype, width=width) for width in (1, 4))
    np.testing.assert_array_equal(scalar, narrow)


# sin of arguments whose reduction needs 1000 bits of pi, from 400-digit arithmetic
LARGE = [
    (1e22, -0.8522008497671888, 0.5232147853951389),
    (6381956970095103.0 * 2.0**797, 1.0, -4.687165924254628e-19),
    (1.7976931348623157e308, 0.004961954789184062, -0.9999876894265599),
]


@pytest.mark.parametrize(("x", "sine", "cosine"), LARGE)
@pytest.mark.parametrize("width", [1, 8])
def test_large_angles(elementwise, x, sine, cosine, width):
    both = np.array([x, -x, 0.5, np.inf, np.nan])
    got = elementwise(FUNCTIONS["sin"], both, result=np.float64, width=width)
    np.testing.assert_allclose(got, [sine, -sine, math.sin(0.5), np.nan, np.nan], rtol=5e-16)
    got = elementwise(FUNCTIONS["cos"], both, result=np.float64, width=width)
    np.testing.assert_allclose(got, [cosine, cosine, math.cos(0.5), np.nan, np.nan], rtol=5e-16)


def exact_erf(x: np.ndarray) -> np.ndarray:
    """Within a few ulp of longdouble: 2 x exp(-x**2) / sqrt(pi) times the sum of (2 x**2)**n / (1 3 ... (2 n + 1))."""
    x = x.astype(np.longdouble)
    near = np.where(np.abs(x) < 6.5, x, 0)
    term, total = np.ones_like(near), np.ones_like(near)
    for n in range(1, 200):
        term = term * (2 * near**2 / (2 * n + 1))
        total += term
    series = 2 / np.sqrt(np.arctan(np.longdouble(1)) * 4) * near * np.exp(-(near**2)) * total
    return np.where(np.abs(x) < 6.5, series, np.sign(x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("arch", ["native", "x86-64"])
def test_erf(elementwise, rng, dtype, arch):
    x = np.concatenate(
        [rng.standard_normal(20000) * 2, np.linspace(0.9, 1.1, 1001), SPECIAL, [5.9, 5.96, 27, 3.9, 4]]
    ).astype(dtype)
    assert worst_error(elementwise(FUNCTIONS["erf"], x, result=dtype, arch=arch), exact_erf(x)) <= 1.5


def test_signs_of_zero(elementwise):
    x = np.array([0.0, -0.0], np.float32)
    for name in ("sin", "tanh", "erf", "sqrt"):
        assert np.signbit(elementwise(FUNCTIONS[name], x)).tolist() == [False, True], name


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("arch", "rounds"), [("native", True), ("native", False), ("x86-64", False)])
def test_floor_and_ceil(elementwise, rng, dtype, arch, rounds):
    halves = np.arange(-5, 5.5, 0.5)
    x = np.concatenate([arguments(rng, "floor", dtype), halves.astype(dtype), halves.astype(dtype) * 2**23])
    for function, reference in ((floor, np.floor), (ceil, np.ceil)):
        got = elementwise(lambda b, x, f=function: f(b, x, rounds), x, result=dtype, arch=arch)
        np.testing.assert_array_equal(got, reference(x))
        whole = np.isfinite(x)
        np.testing.assert_array_equal(np.signbit(got[whole]), np.signbit(reference(x[whole])))


@pytest.mark.parametrize("arch", ["native", "x86-64-v3"])
def test_fma_rounds_once(elementwise, rng, arch):
    x, y = (1 + rng.random(1 << 14) for _ in range(2))
    low = elementwise(fma, x, y, -x * y, result=np.float64, arch=arch)
    exact = x.astype(np.longdouble) * y.astype(np.longdouble) - (x * y).astype(np.longdouble)
    assert np.any(low != 0)
    assert np.max(np.abs(low - exact)) < 2**-62  # longdouble itself has 64 bits
