"""Quotients by what is known not to be too large, or not to be too small."""

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate

import deuteron
import deuteron.language as tl


@deuteron.jit
def sigmoid(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.sigmoid(tl.load(x + i)))


@deuteron.jit
def by(x, y, out, DIVISOR: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) / DIVISOR(tl.load(y + i)))


@deuteron.jit
def root(y):
    return tl.sqrt(y) + 1e-8


@deuteron.jit
def scaled_root(y):
    return tl.sqrt(y) * 1e-30


@deuteron.jit
def root_with_small_term(y):
    return tl.sqrt(y) + 1e-40


@deuteron.jit
def sine(y):
    return tl.sin(y)


@deuteron.jit
def by_count(x, n, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) / (n + i).to(tl.float32))


@deuteron.jit
def by_any_known(x, n, out, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x + i)
    largest = tl.maximum(tl.abs(-(n.to(tl.float32))), tl.sqrt(x))
    tl.store(out + i, x / tl.where(x > 1, x.to(tl.float16).to(tl.float32) * tl.rsqrt(x), largest - 2.0))


@deuteron.jit
def by_root_or_other(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    y = tl.load(y + i)
    tl.store(out + i, tl.load(x + i) / tl.where(y > 1, tl.sqrt(y), y))


def test_sigmoids_of_all_sizes():
    """From where exp overflows to where it is nothing beside 1; below 2**-126 as well."""
    x = np.linspace(-89, 89, 512, dtype=np.float32)
    x[:4] = -np.inf, np.inf, -88.5, -87.5
    out = aligned(np.zeros_like(x))
    kernel = emulate(sigmoid, aligned(x), out, N=512)
    with np.errstate(over="ignore"):
        exact = 1 / (1 + np.exp(-x.astype(np.float64)))
    np.testing.assert_allclose(out, exact, rtol=3e-5, atol=2**-149)
    assert 0 < out[2] < 2**-126
    ptx = kernel.asm["ptx"]
    assert "rcp.approx.ftz.f32" in ptx and "div.full" not in ptx


def test_roots_of_all_sizes(rng):
    x = (rng.standard_normal(512) * 10.0 ** rng.integers(-30, 30, 512)).astype(np.float32)
    y = 10.0 ** rng.uniform(-37, 38, 512).astype(np.float32)
    y[:3] = 0, np.inf, np.finfo(np.float32).max
    out = aligned(np.zeros_like(x))
    kernel = emulate(by, aligned(x), aligned(y), out, DIVISOR=root, N=512)
    with np.errstate(over="ignore"):
        exact = (x.astype(np.float64) / (np.sqrt(y.astype(np.float64)) + 1e-8)).astype(np.float32)
    np.testing.assert_allclose(out, exact, rtol=1e-6, atol=2**-126)
    assert "div.full" not in kernel.asm["ptx"]


@pytest.mark.parametrize(("divisor", "y"), [(scaled_root, 1e-20), (root_with_small_term, 0), (sine, 1e-40)])
def test_divisors_that_are_not_normal(divisor, y):
    """All are 1e-40, whose inverse is none of the floats."""
    out = aligned(np.zeros(128, np.float32))
    x, y = (aligned(np.full(128, number, np.float32)) for number in (1e-10, y))
    emulate(by, x, y, out, DIVISOR=divisor, N=128)
    np.testing.assert_allclose(out, 1e30, rtol=1e-4)


FLOATS = np.ones(128, np.float32)
KERNELS = [(by_count, 5, True), (by_any_known, 5, True), (by_root_or_other, FLOATS, False)]


@pytest.mark.parametrize(("kernel", "given", "is_known"), KERNELS)
def test_what_is_known_of_divisors(kernel, given, is_known):
    ptx = compile_for("cuda:90", kernel, FLOATS, given, FLOATS, N=128).asm["ptx"]
    assert ("div.full" in ptx) is not is_known
