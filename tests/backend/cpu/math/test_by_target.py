"""sin and cos as a CPU's kernels have them: in float where it fuses multiply-adds, angles of all sizes among others."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron.language as tl
from deuteron.backend.cpu.math.by_target import BY_TARGET
from deuteron.backend.cpu.target import cpu_target
from deuteron.backend.llvm.targets import resolve_cpu
from tests.backend.cpu.math.test_math import REFERENCES, arguments, worst_error

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def around_the_limit() -> np.ndarray:
    """Angles up to and from which they are reduced in another way, floats and doubles."""
    limits = np.array([2.0**17, 2.0**20])
    near = [np.nextafter(limits.astype(np.float32), side).astype(np.float64) for side in (0, np.inf)]
    return np.concatenate([limits, *near, -limits, [3e38, -1e30, 2.0**127]])


@pytest.mark.parametrize("name", ["sin", "cos"])
@pytest.mark.parametrize("width", [1, 2, 16, 64])
@pytest.mark.parametrize("arch", ["native", "x86-64-v3", "x86-64"])
def test_angles_of_all_sizes(elementwise, rng, name, width, arch):
    target = cpu_target(*resolve_cpu(arch))
    x = np.concatenate([arguments(rng, name, np.float32), around_the_limit().astype(np.float32)])
    rng.shuffle(x)
    got = elementwise(lambda b, value: BY_TARGET[name](b, value, target), x, result=np.float32, width=width, arch=arch)
    assert worst_error(got, REFERENCES[name](x.astype(np.longdouble))) <= 1.0
    zeros = x == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(x[zeros]) & (name == "sin"))


@pytest.mark.parametrize("width", [2, 8, 64])
def test_doubles(elementwise, rng, width):
    target = cpu_target(*resolve_cpu("native"))
    x = np.concatenate([rng.standard_normal(4000) * 1e5, around_the_limit()[:-3], [np.inf, np.nan, -0.0]])
    got = elementwise(lambda b, value: BY_TARGET["sin"](b, value, target), x, result=np.float64, width=width)
    assert worst_error(got, np.sin(x.astype(np.longdouble))) <= 1


def waves(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    value = tl.load(x + i, mask=i < n, other=1e9)
    tl.store(out + i, tl.sin(value) * tl.cos(value), mask=i < n)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [0, 1, 77, 128])
def test_in_kernels(compare, rng, dtype, n):
    x = (rng.standard_normal(128) * np.where(rng.random(128) < 0.1, 1e4, 3)).astype(dtype)
    compare(waves, [x, np.zeros_like(x), n], {"N": 128})


def test_large_angles_are_no_code_for_each_lane(lower_python, lower_module):
    x = np.zeros(64, np.float32)
    text = lower_module(lower_python(waves, [x, x, 64], {"N": 64}), "sapphirerapids").llir
    assert "double" not in text and text.count("call { float, float, i32 } @reduce_large.float") <= 4
