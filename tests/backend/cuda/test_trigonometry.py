"""sin and cos of float: all sizes of arguments, near multiples of pi/2, signs of zero, and no double in the code."""

from __future__ import annotations

import numpy as np
import pytest
from backend.cuda.launching import emulate

import deuteron
import deuteron.language as tl
from deuteron.language.extra import libdevice

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

LIMIT = 1.6
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 131071.99, 131072, -131072.02, 3.4028235e38]
NEAREST = 16367173 * 2.0**72  # of floats, nearest to a multiple of pi/2


@deuteron.jit
def sine_and_cosine(x, sines, cosines, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + i, mask=i < n)
    tl.store(sines + i, tl.sin(values), mask=i < n)
    tl.store(cosines + i, tl.cos(values), mask=i < n)


def errors(got: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """In ulp; what is not a number is so in both."""
    nearest = expected.astype(np.float32)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(nearest))
    distance = np.abs(got.astype(np.longdouble) - expected) / np.spacing(np.abs(nearest))
    return np.where(np.isnan(nearest), 0, distance).astype(float)


def compute(x: np.ndarray, target: str = "cuda:90", **options):
    sines, cosines = np.full_like(x, 7), np.full_like(x, 7)
    grid = ((x.size + 511) // 512,)
    kernel = emulate(sine_and_cosine, x, sines, cosines, x.size, BLOCK=512, grid=grid, target=target, **options)
    return kernel, sines, cosines


@pytest.mark.parametrize("enable_fp_fusion", [True, False])
@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
def test_accuracy(rng, target, enable_fp_fusion):
    count = 2000
    bits = rng.integers(0, 1 << 32, count, dtype=np.uint32).view(np.float32)
    quarter_turns = (np.round(rng.uniform(-90000, 90000, count)) * (np.pi / 2)).astype(np.float32)
    spread = [(rng.standard_normal(count) * width).astype(np.float32) for width in (1, 30, 1000, 60000, 1e6)]
    x = np.concatenate([bits, quarter_turns, np.nextafter(quarter_turns, np.float32(np.inf)), *spread])
    kernel, sines, cosines = compute(x, target, enable_fp_fusion=enable_fp_fusion)
    wide = x.astype(np.longdouble)
    assert errors(sines, np.sin(wide)).max() <= LIMIT
    assert errors(cosines, np.cos(wide)).max() <= LIMIT
    assert ".f64" not in kernel.asm["ptx"]


def test_special_values():
    x = np.array([*SPECIAL, NEAREST, -NEAREST], np.float32)
    _, sines, cosines = compute(x)
    wide = x.astype(np.longdouble)
    assert errors(sines, np.sin(wide)).max() <= LIMIT
    assert errors(cosines, np.cos(wide)).max() <= LIMIT
    assert np.signbit(sines[:2]).tolist() == [False, True]
    assert np.isnan(sines[2:5]).all() and np.isnan(cosines[2:5]).all()


def test_doubles_are_as_before(rng):
    x = rng.standard_normal(1000) * 100
    _, sines, cosines = compute(x)
    np.testing.assert_allclose(sines, np.sin(x), rtol=1e-14, atol=1e-16)
    np.testing.assert_allclose(cosines, np.cos(x), rtol=1e-14, atol=1e-16)


def test_four_elements_branch_once(rng):
    """And without a stack."""
    x = (rng.standard_normal(512) * 1e6).astype(np.float32)
    kernel, *_ = compute(x, num_warps=2)
    ptx = kernel.asm["ptx"]
    elements = 512 // (2 * 32)
    assert ptx.count("call.uni (retval0), reduce_large") == 2 * elements  # of sin and of cos
    assert ptx.count("0f48000000") == 2 * (elements + elements // 4) and "__local_depot" not in ptx


@deuteron.jit
def sum_of_cosines(x, o, n, BLOCK: tl.constexpr, COUNT: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(COUNT):
        values = tl.load(x + k * BLOCK + i)
        total = tl.where(n > 0, total + values * tl.cos(values), total)
    tl.store(o, tl.sum(total))


def test_nothing_sinks_beyond_large_angles(rng):
    """All sums sank to the last of 16 branches, and what they are made of was kept until then."""
    x, o = rng.standard_normal(16 * 2048).astype(np.float32), np.zeros(1, np.float32)
    kernel = emulate(sum_of_cosines, x, o, 5, BLOCK=2048, COUNT=16, num_warps=16)
    np.testing.assert_allclose(o, (x.astype(float) * np.cos(x.astype(float))).sum(), rtol=1e-4, atol=1e-2)
    assert "scf.for" not in kernel.asm["ttgir"]
    kernel.asm["cubin"]  # noqa: B018  what ptxas says of it
    assert kernel.metadata.resources["spill_bytes"] == 0


@deuteron.jit
def of_libdevice(x, o, NAME: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    values = tl.load(x + i)
    if NAME == "sin":
        y = libdevice.sin(values)
    elif NAME == "cos":
        y = libdevice.cos(values)
    else:
        y = libdevice.tan(values)
    tl.store(o + i, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_several_elements_of_a_thread(rng, name, dtype):
    x = (rng.standard_normal(512) * 1e6).astype(dtype)
    got = np.full_like(x, 7)
    emulate(of_libdevice, x, got, NAME=name, BLOCK=512, num_warps=2)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(got, getattr(np, name)(x.astype(np.longdouble)), rtol=4 * eps, atol=eps * eps)
