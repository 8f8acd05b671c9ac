"""erf by pieces on AVX-512: near the true value at the seams of pieces as within, the same bits in any width."""

from __future__ import annotations

import math

import numpy as np
import pytest

import deuteron.language as tl
from deuteron.backend.cpu.math.erf_pieces import erf
from deuteron.backend.cpu.target import cpu_target
from deuteron.backend.llvm.targets import resolve_cpu
from deuteron.language.extra import libdevice
from tests.backend.cpu.math.test_math import SPECIAL, worst_error

TARGET = cpu_target(*resolve_cpu("native"))


def near_seams() -> np.ndarray:
    """Floats around the points where a piece ends, and around the largest argument that is computed."""
    seams = np.array([(n + 0.5) * 65 / 512 for n in range(32)] + [3.99, 2.0**-126, 1.0], np.float32)
    bits = seams.view(np.int32)[:, None] + np.arange(-50, 51, dtype=np.int32)
    return bits.view(np.float32).ravel()


@pytest.mark.parametrize("width", [1, 4, 16, 64])
def test_errors(elementwise, rng, width):
    x = np.concatenate([near_seams(), rng.standard_normal(20000) * 2, np.exp(-rng.random(1000) * 90), SPECIAL])
    x = np.concatenate([x, -x]).astype(np.float32)
    got = elementwise(lambda b, value: erf(b, value, TARGET), x, result=np.float32, width=width)
    expected = np.array([math.erf(v) for v in x.astype(np.float64).tolist()], np.longdouble)
    assert worst_error(got, expected) <= 1.2
    assert np.nanmax(np.abs(got)) <= 1 and (np.abs(got[np.abs(x) > 3.99]) == 1).all()
    np.testing.assert_array_equal(np.signbit(got), np.signbit(x))
    whole = elementwise(lambda b, value: erf(b, value, TARGET), x, result=np.float32, width=16)
    np.testing.assert_array_equal(got.view(np.int32), whole.view(np.int32))


def gelu(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    value = tl.load(x + i).to(tl.float32)
    tl.store(out + i, 0.5 * value * (1 + tl.erf(value)))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("N", [2, 8, 128])
def test_in_kernels(compare, rng, dtype, N):
    x = (rng.standard_normal(N) * 2).astype(dtype)
    x[:2] = np.nan, np.inf
    compare(gelu, [x, np.zeros_like(x)], {"N": N}, tolerance=1e-6 if dtype == np.float32 else 1e-3)


def gelu_by_libdevice(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    value = tl.load(x + i)
    tl.store(out + i, 0.5 * value * (1 + libdevice.erf(value)))


@pytest.mark.parametrize("kernel", [gelu, gelu_by_libdevice])
@pytest.mark.parametrize("arch, is_by_pieces", [("sapphirerapids", True), ("x86-64-v3", False)])
def test_code(lower_python, lower_module, kernel, arch, is_by_pieces):
    x = np.zeros(64, np.float32)
    text = lower_module(lower_python(kernel, [x, x], {"N": 64}), arch).llir
    assert ("llvm.x86.avx512.vpermi2var.ps.512" in text) is is_by_pieces
