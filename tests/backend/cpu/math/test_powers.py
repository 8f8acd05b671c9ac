"""exp and exp2 by AVX-512's instruction that scales by a power of two: every bit is as by products, in any width."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron.language as tl
from deuteron.backend.cpu.math.powers import power
from deuteron.backend.cpu.target import cpu_target
from deuteron.backend.llvm.targets import resolve_cpu
from deuteron.backend.math import exponentials
from tests.backend.cpu.math.test_math import EDGES, arguments

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize("name", ["exp", "exp2"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 8, 16, 64])
@pytest.mark.parametrize("arch", ["native", "x86-64-v3"])
def test_bits(elementwise, rng, name, dtype, width, arch):
    x = np.concatenate([EDGES.astype(dtype), arguments(rng, name, dtype)])
    target = cpu_target(*resolve_cpu(arch))
    made = elementwise(lambda b, x: power(name, b, x, target), x, result=dtype, width=width, arch=arch)
    expected = elementwise(getattr(exponentials, name), x, result=dtype, arch=arch)
    np.testing.assert_array_equal(made, expected)
    np.testing.assert_array_equal(np.signbit(made), np.signbit(expected))


def exp_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.exp(tl.load(x + i)))


@pytest.mark.parametrize("arch, is_scaled", [("sapphirerapids", True), ("x86-64-v3", False)])
def test_code(lower_python, lower_module, arch, is_scaled):
    """Where there are vectors of 512 bits, and no lane that is left over."""
    x = np.zeros(64, np.float32)
    text = lower_module(lower_python(exp_kernel, [x, x], {"BLOCK": 64}), arch).llir
    assert ("llvm.x86.avx512.mask.scalef.ps.512" in text) is is_scaled
