"""Long functions of libdevice: of several lanes what each has alone, bit by bit, whatever side of a branch it takes."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron.language as tl
from deuteron.language.extra import libdevice
from tests.backend.cpu.conftest import CPUS, run_compiled, tile_ir

SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 3.0, 8.0, -7.5, 1e-40, 1e30, -1e-3]
LANES = 32


def kernels(name):
    function = getattr(libdevice, name)

    def together(x, out, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, function(tl.load(x + i)))

    def alone(x, out, BLOCK: tl.constexpr):
        for i in range(BLOCK):
            tl.store(out + i, function(tl.load(x + i)))

    return together, alone


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["lgamma", "tgamma", "erfinv", "normcdfinv", "j1", "y0", "cyl_bessel_i1"])
def test_lanes_are_computed_as_alone(rng, name, dtype):
    draws = [rng.uniform(-12, 12, LANES), rng.uniform(0, 1, LANES), rng.uniform(9, 99, LANES)]
    x = np.concatenate([rng.choice([*SPECIAL, *draws[0]], LANES), *draws]).astype(dtype)
    for cpu in CPUS:
        first, second = (made(kernel, x, cpu) for kernel in kernels(name))
        same = (first.view(np.uint8) == second.view(np.uint8)).reshape(x.size, -1).all(1)
        same |= np.isnan(first) & np.isnan(second)
        assert same.all(), (cpu, x[~same], first[~same], second[~same])


def made(kernel, x, cpu):
    out = np.full_like(x, 7.25)
    run_compiled(tile_ir(kernel, [x, out], {"BLOCK": x.size}), [x, out], (1,), cpu)
    return out


def test_no_lane_by_itself(lower_python, lower_module):
    x = np.zeros(1, np.float32)
    llir = lower_module(lower_python(kernels("lgamma")[0], [x, x], {"BLOCK": 64})).llir
    assert "call <8 x double> @libdevice.lgamma" in llir and "extractelement <8 x double>" not in llir
