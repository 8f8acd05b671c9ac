"""Rounding to bf16 by AVX512_BF16: every bit is as by additions on bits, of subnormal floats and NaN too."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import deuteron.language as tl
from deuteron.backend.cpu.math.bf16 import round_to_bf16
from deuteron.backend.cpu.target import cpu_target
from deuteron.backend.llvm.targets import resolve_cpu
from deuteron.backend.math.conversions import f32_to_bf16


def floats_of_all_bf16() -> np.ndarray:
    """Floats at, below and above each bf16 and the middle to the next one."""
    low = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    return (np.arange(1 << 16, dtype=np.uint32)[:, None] << 16 | low).ravel().view(np.float32)


@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("arch", ["native", "x86-64-v3"])
def test_bits(elementwise, rng, width, arch):
    target = cpu_target(*resolve_cpu(arch))
    x = floats_of_all_bf16()
    x = np.concatenate([x, rng.permutation(x)])  # subnormal ones beside others
    made = elementwise(lambda b, value: round_to_bf16(b, value, target), x, result=np.int16, width=width, arch=arch)
    np.testing.assert_array_equal(made, elementwise(f32_to_bf16, x, result=np.int16, width=width, arch=arch))


def doubled(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    value = tl.load(x + i, mask=mask, other=3.0)
    tl.store(out + i, value * 2 + 1e-40, mask=mask)


@pytest.mark.parametrize("n", [0, 1, 63, 100])
def test_subnormal_elements_of_kernels(compare, rng, n):
    x = np.where(rng.random(128) < 0.1, 1e-39, rng.standard_normal(128)).astype(ml_dtypes.bfloat16)
    x[rng.integers(0, 128, 2)] = [-np.inf, -0.0]
    compare(doubled, [x, np.zeros_like(x), n], {"BLOCK": 128}, tolerance=0)


@pytest.mark.parametrize("arch, is_native", [("sapphirerapids", True), ("skylake-avx512", False), ("znver4", True)])
def test_code(lower_python, lower_module, bfloat16, arch, is_native):
    x = np.zeros(128, bfloat16)
    text = lower_module(lower_python(doubled, [x, x, 99], {"BLOCK": 128}), arch).llir
    assert ("llvm.x86.avx512bf16.cvtne" in text) is is_native


def multiplied(a, w, out, SHARED: tl.constexpr):
    rows, ks = tl.arange(0, 16), tl.arange(0, 32)
    right = tl.load(w + ks[:, None] * 32 + ks[None, :]).to(tl.bfloat16)
    total = tl.dot(tl.load(a + rows[:, None] * 32 + ks[None, :]), right)
    if SHARED:
        tl.store(w + ks[:, None] * 32 + ks[None, :], right.to(tl.float32))
    tl.store(out + rows[:, None] * 32 + ks[None, :], total)


@pytest.mark.parametrize("is_shared", [False, True])
def test_operands_of_products_may_lose_subnormal_numbers(lower_python, lower_module, bfloat16, is_shared):
    """The product takes them for 0; what is stored as well keeps them."""
    arguments = [np.zeros((16, 32), bfloat16), np.zeros((32, 32), np.float32), np.zeros((16, 32), np.float32)]
    text = lower_module(lower_python(multiplied, arguments, {"SHARED": is_shared}), "znver4").llir
    assert "llvm.x86.avx512bf16.cvtne" in text
    assert ("fpclass" in text) is is_shared
