"""Differences of 16-bit floats: the same numbers as multiply-adds, two by one instruction."""

import re

import ml_dtypes
import numpy as np
import pytest
from backend.cuda.launching import aligned, emulate

import deuteron
import deuteron.language as tl
from deuteron.backend.cuda.assembler.pack_differences import pack_differences


@deuteron.jit
def differences(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) - tl.load(y + i))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_differences_are_exact(rng, dtype):
    """Zeros of both signs, infinities, NaN and subnormal numbers among them."""
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 6e-8, -6e-8, 1e-39, 65504.0, 1.0]).astype(dtype)
    x, y = (special[rng.integers(0, len(special), 1024)] for _ in range(2))
    x[512:], y[512:] = rng.standard_normal((2, 512)).astype(dtype)
    out = aligned(np.zeros(1024, dtype))
    kernel = emulate(differences, aligned(x), aligned(y), out, N=1024)
    with np.errstate(invalid="ignore"):
        expected = (x.astype(np.float32) - y.astype(np.float32)).astype(dtype)
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(out), ~is_number)
    np.testing.assert_array_equal(out.view(np.int16)[is_number], expected.view(np.int16)[is_number])
    assert len(re.findall(r"fma\.rn\.b?f16 ", kernel.asm["ptx"])) == 8


def test_other_differences_stay():
    text = "\tsub.f32 \t%r3, %r1, %r2;\n\tsub.f16x2 \t%r3, %r1, %r2;\n\tsub.s16 \t%rs3, %rs1, %rs2;\n"
    assert pack_differences(text) == text
