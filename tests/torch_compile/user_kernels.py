"""Kernels of a user's, in Triton's language, in programs for torch.compile: as operators that torch knows of."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import nn
from torch.library import triton_op, wrap_triton


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.device_assert(tl.abs(x) < 1e6, "numbers are not huge")
    tl.store(out_ptr + i, 0.5 * x * (1 + tl.erf(x * 0.7071067811865476)), mask=i < n)


@triton_op("deuteron_tests::gelu", mutates_args={})
def gelu(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    wrap_triton(gelu_kernel)[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out


@triton.jit
def layer_norm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, width, eps, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    inside = column < width
    x = tl.load(x_ptr + row * width + column, mask=inside, other=0.0)
    tl.device_assert(tl.abs(x) < 1e6, "numbers are not huge")
    centred = tl.where(inside, x - tl.sum(x) / width, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred) / width + eps)
    weight, bias = (tl.load(ptr + column, mask=inside) for ptr in (weight_ptr, bias_ptr))
    tl.store(out_ptr + row * width + column, centred * scale * weight + bias, mask=inside)


@triton_op("deuteron_tests::layer_norm", mutates_args={})
def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    out, width = torch.empty_like(x), x.shape[-1]
    block = triton.next_power_of_2(width)
    wrap_triton(layer_norm_kernel)[(x.numel() // width,)](x, weight, bias, out, width, eps, BLOCK=block)
    return out


class Gelu(nn.Module):
    def forward(self, x):
        return gelu(x)


class LayerNorm(nn.LayerNorm):
    def forward(self, x):
        return layer_norm(x, self.weight, self.bias, self.eps)
