"""Kernels on torch's tensors in the memory of the CPU, bf16 among them; needs torch."""

import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.tools.tensor_descriptor import TensorDescriptor

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@triton.jit
def scale_kernel(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n).to(tl.float32)
    tl.store(out_ptr + offsets, x * factor, mask=offsets < n)


TOLERANCE = {torch.float32: 1e-6, torch.float64: 1e-6, torch.float16: 1e-3, torch.bfloat16: 1e-2}


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_floats(rng, dtype):
    x = torch.from_numpy(rng.standard_normal(1001)).to(dtype)
    out = torch.full_like(x, torch.nan)
    scale_kernel[(triton.cdiv(1001, 256),)](x, out, 3, 1001, BLOCK=256)
    expected = (x.to(torch.float32) * 3).to(torch.float64)
    torch.testing.assert_close(out.to(torch.float64), expected, rtol=TOLERANCE[dtype], atol=0)


@triton.jit
def add_one_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) + 1, mask=offsets < n)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64], ids=str)
def test_integers_in_place(dtype):
    x = torch.arange(100, dtype=dtype)
    add_one_kernel[(1,)](x, 100, BLOCK=128)
    assert x.tolist() == list(range(1, 101))


def test_view_with_an_offset():
    x = torch.zeros(100, dtype=torch.float32)
    add_one_kernel[(1,)](x[10:], 20, BLOCK=32)
    assert x.tolist() == [0.0] * 10 + [1.0] * 20 + [0.0] * 70


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_attention(example, check_norm, rng, dtype):
    """Against torch's own, in float64."""
    q, k, v = (torch.from_numpy(rng.standard_normal((2, 77, 32))).to(dtype) for _ in range(3))
    out = torch.full_like(q, torch.nan)
    example("attention").attention_kernel[(triton.cdiv(77, 32), 2)](
        q, k, v, out, 32**-0.5, 77 * 32, 32, 77, CAUSAL=True, HEAD_DIM=32, BLOCK_M=32, BLOCK_N=16
    )
    expected = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=True)
    is_fp32 = dtype == torch.float32
    check_norm(out.double().numpy(), expected.numpy(), 1e-5 if is_fp32 else 1e-2, tf32=is_fp32)


def test_an_array_of_numpy_and_a_tensor_together(rng):
    x = rng.standard_normal(100)
    out = torch.full((100,), torch.nan, dtype=torch.float64)
    scale_kernel[(1,)](x, out, 2, 100, BLOCK=128)
    torch.testing.assert_close(out, torch.from_numpy(x.astype("float32")).double() * 2)


@triton.jit
def copy_tile_kernel(source, out):
    tile = source.load([0, 0])
    out.store([0, 0], tile)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float8_e4m3fn], ids=str)
def test_descriptors_of_types_that_numpy_lacks(rng, dtype):
    """From the second of two tiles on, which the tensor map begins within the storage."""
    x = torch.from_numpy(rng.standard_normal((2, 16, 64))).to(dtype)
    out = torch.zeros(16, 64, dtype=dtype)
    descriptors = [TensorDescriptor.from_tensor(tensor, [16, 64]) for tensor in (x[1], out)]
    copy_tile_kernel[(1,)](*descriptors)
    assert torch.equal(out.double(), x[1].double())
