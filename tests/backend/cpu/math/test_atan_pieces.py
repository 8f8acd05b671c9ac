"""libdevice's atan and tan on CPUs: atan by pieces on AVX-512, near the true value at the seams; tan in float."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron.language as tl
from deuteron.backend.cpu.math.atan_pieces import atan
from deuteron.backend.cpu.math.pieces import by_registers, has_pieces
from deuteron.backend.cpu.target import cpu_target
from deuteron.backend.llvm.targets import resolve_cpu
from deuteron.language.extra import libdevice
from tests.backend.cpu.math.test_math import SPECIAL, worst_error

TARGET = cpu_target(*resolve_cpu("native"))


def near_seams() -> np.ndarray:
    """Floats around the points where a piece ends, and around 1, with their reciprocals."""
    seams = np.array([(n + 0.5) * 33 / 1024 for n in range(31)] + [1.0, 2.0**-126], np.float32)
    bits = seams.view(np.int32)[:, None] + np.arange(-50, 51, dtype=np.int32)
    near = bits.view(np.float32).ravel()
    return np.concatenate([near, 1 / near])


@pytest.mark.skipif(not has_pieces("float", TARGET), reason="tables are in registers of 512 bits")
@pytest.mark.parametrize("width", [1, 4, 16, 64])
def test_errors(elementwise, rng, width):
    anything = rng.integers(0, 0x7F800000, 20000, np.int32).view(np.float32)
    x = np.concatenate([near_seams(), anything, rng.random(20000) * 2, SPECIAL]).astype(np.float32)
    x = np.concatenate([x, -x])
    got = elementwise(lambda b, value: by_registers(b, value, atan), x, result=np.float32, width=width)
    assert worst_error(got, np.arctan(x.astype(np.longdouble))) <= 1.2
    np.testing.assert_array_equal(np.signbit(got[x == 0]), np.signbit(x[x == 0]))
    whole = elementwise(lambda b, value: by_registers(b, value, atan), x, result=np.float32, width=16)
    np.testing.assert_array_equal(got.view(np.int32), whole.view(np.int32))


def of_angles(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    value = tl.load(x + i)
    tl.store(out + i, libdevice.atan(value) + libdevice.tan(value))


@pytest.mark.parametrize("N", [1, 8, 256])
def test_in_kernels(compare, rng, N):
    x = (rng.standard_normal(N) * 2).astype(np.float32)
    compare(of_angles, [x, np.zeros_like(x)], {"N": N}, tolerance=1e-5)


@pytest.mark.parametrize("arch, is_by_pieces", [("sapphirerapids", True), ("x86-64-v3", False)])
def test_code(lower_python, lower_module, arch, is_by_pieces):
    x = np.zeros(64, np.float32)
    text = lower_module(lower_python(of_angles, [x, x], {"N": 64}), arch).llir
    assert ("llvm.x86.avx512.vpermi2var.ps.512" in text) is is_by_pieces
