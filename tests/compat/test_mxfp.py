"""`triton.tools.mxfp`: codes against ml_dtypes, packing and back, and what a kernel makes of them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.compat.mxfp import MXFP4Tensor, MXScaleTensor

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def test_numbers_become_the_nearest(rng):
    ties = np.arange(-32, 33) / 4
    x = np.concatenate([ties, rng.standard_normal(200) * 3, [np.inf, -np.inf, np.nan, -0.0]]).astype(np.float32)
    got = MXFP4Tensor(data=torch.from_numpy(x))
    expected = np.clip(np.nan_to_num(x, nan=6), -6, 6).astype(ml_dtypes.float4_e2m1fn)
    np.testing.assert_array_equal(got.data.numpy(), expected.view(np.uint8))
    values = got.to(torch.float32).numpy()
    np.testing.assert_array_equal(values, expected.astype(np.float32))
    np.testing.assert_array_equal(np.signbit(values), np.signbit(expected.astype(np.float32)))


def test_scales_are_the_power_of_two_below(rng):
    x = np.array([1.0, 1.99, 2.0, 0.75, 2.0**-127, 1e-40, 2.0**-149, 3e38, 0, -1, np.inf, np.nan], np.float32)
    got = MXScaleTensor(data=torch.from_numpy(x))
    assert got.data.tolist() == [127, 127, 128, 126, 0, 0, 0, 254, 255, 255, 255, 255]
    meant = got.data.numpy().view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    np.testing.assert_array_equal(got.to(torch.float32).numpy(), meant)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_packing_and_back(dim):
    x = MXFP4Tensor(size=(3, 4, 5)).random()
    packed = x.to_packed_tensor(dim)
    assert packed.shape[dim] == (x.data.shape[dim] + 1) // 2 and packed.is_contiguous()
    assert torch.equal(x.unpack_packed_tensor(packed, dim, x.data.shape), x.data)
    first = x.data.select(dim, 0) | x.data.select(dim, 1) << 4
    assert torch.equal(packed.select(dim, 0), first)


def test_random_scales_are_in_range():
    drawn = MXScaleTensor(size=1000).random(low=0.5, high=8).data
    assert drawn.min() == 126 and drawn.max() == 130


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MXFP4Tensor(), "give the numbers as data=, or a size="),
        (lambda: MXFP4Tensor(data=[1.0]), "data is a torch tensor of numbers, got list"),
        (lambda: MXFP4Tensor(size=4).random().to(torch.float16), "convert to torch.float32, not to torch.float16"),
        (lambda: MXFP4Tensor(size=4).random().to_packed_tensor(1), "dim is 0 to 0 for 1 dimensions, got 1"),
        (lambda: MXScaleTensor(size=4).random(low=8, high=1), "low is 8 and high is 1"),
    ],
)
def test_errors(call, message: str):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@triton.jit
def dot_kernel(a_ptr, s_ptr, b_ptr, out_ptr, N: tl.constexpr, K: tl.constexpr):
    n, k = tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + n[:, None] * (K // 2) + tl.arange(0, K // 2)[None, :])
    s = tl.load(s_ptr + n[:, None] * (K // 32) + tl.arange(0, K // 32)[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    tl.store(out_ptr + n[:, None] * N + n[None, :], tl.dot_scaled(a, s, "e2m1", b, None, "bf16"))


def test_dot_scaled_takes_them(monkeypatch):
    monkeypatch.setenv("DEUTERON_TARGET", "cpu")
    a, scale = MXFP4Tensor(data=torch.randn(16, 64)), MXScaleTensor(data=torch.rand(16, 2) + 0.1)
    b, out = torch.randint(-4, 5, (64, 16)).bfloat16(), torch.empty(16, 16)
    dot_kernel[(1,)](a.to_packed_tensor(1), scale.data, b, out, N=16, K=64)
    wide = a.to(torch.float32) * scale.to(torch.float32).repeat_interleave(32, 1)
    torch.testing.assert_close(out, wide @ b.float(), rtol=1e-6, atol=1e-6)
