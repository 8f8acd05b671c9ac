"""tanh by pieces on AVX-512: near the true value at the seams of pieces as within, the same bits in any width."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron.language as tl
from deuteron.backend.cpu.math.tanh_pieces import tanh
from deuteron.backend.cpu.target import cpu_target
from deuteron.backend.llvm.targets import resolve_cpu
from deuteron.language.extra import libdevice
from tests.backend.cpu.math.test_math import SPECIAL, worst_error

TARGET = cpu_target(*resolve_cpu("native"))


def near_seams() -> np.ndarray:
    seams = np.array([2.0**e * (1 + m / 4) for e in range(-5, 6) for m in range(4)] + [0.11, 15.9, 9.01], np.float32)
    bits = seams.view(np.int32)[:, None] + np.arange(-50, 51, dtype=np.int32)
    return bits.view(np.float32).ravel()


@pytest.mark.parametrize("width", [1, 4, 16, 64])
def test_errors(elementwise, rng, width):
    x = np.concatenate([near_seams(), rng.standard_normal(20000) * 3, np.exp(-rng.random(1000) * 90), SPECIAL, [3e38]])
    x = np.concatenate([x, -x]).astype(np.float32)
    got = elementwise(lambda b, value: tanh(b, value, TARGET), x, result=np.float32, width=width)
    assert worst_error(got, np.tanh(x.astype(np.longdouble))) <= (1.3 if TARGET.vector_bits >= 512 else 2.7)
    assert np.nanmax(np.abs(got)) <= 1 and (np.abs(got[np.abs(x) > 10]) == 1).all()
    np.testing.assert_array_equal(np.signbit(got), np.signbit(x))
    whole = elementwise(lambda b, value: tanh(b, value, TARGET), x, result=np.float32, width=16)
    np.testing.assert_array_equal(got.view(np.int32), whole.view(np.int32))


def tanh_kernel(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, libdevice.tanh(tl.load(x + i)))


@pytest.mark.parametrize("arch", ["sapphirerapids", "x86-64-v3"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_code(lower_python, lower_module, arch, dtype):
    x = np.zeros(64, dtype)
    text = lower_module(lower_python(tanh_kernel, [x, x], {"N": 64}), arch).llir
    is_by_pieces = arch == "sapphirerapids" and dtype == np.float32
    assert ("llvm.x86.avx512.vpermi2var.ps.512" in text) is is_by_pieces
