"""What benchmarks.torch_compile measures: programs by name, with what they are given; sizes as models have them.

    PROGRAMS["softmax"]()       (function, arguments)

A program is a function that is defined anew every time, so that torch compiles it for each backend by itself.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

Made = tuple[Callable, tuple[torch.Tensor, ...]]
PROGRAMS: dict[str, Callable[[], Made]] = {}


def _enter(make: Callable[[], Made]) -> Callable[[], Made]:
    PROGRAMS[make.__name__.replace("_", " ")] = make
    return make


@_enter
def pointwise_chain() -> Made:
    return lambda x, y: torch.relu(x * 2 - y) + torch.exp(-x.abs()) * y, (torch.randn(1 << 20), torch.randn(1 << 20))


@_enter
def gelu_of_bfloat16() -> Made:
    return lambda x: F.gelu(x) * 2, (torch.randn(1 << 20, dtype=torch.bfloat16),)


@_enter
def bias_and_gelu() -> Made:
    return lambda x, b: F.gelu(x + b, approximate="tanh"), (torch.randn(512, 2048), torch.randn(2048))


@_enter
def softmax() -> Made:
    return lambda x: torch.softmax(x, -1), (torch.randn(1024, 1000),)


@_enter
def layer_norm() -> Made:
    return lambda x, w, b: F.layer_norm(x, (768,), w, b), (torch.randn(1024, 768), torch.randn(768), torch.randn(768))


@_enter
def rms_norm_of_a_residual() -> Made:
    def function(x, residual, w):
        total = x + residual
        return total, F.rms_norm(total, (1024,), w, 1e-6)

    return function, (torch.randn(512, 1024), torch.randn(512, 1024), torch.randn(1024))


@_enter
def sum_of_rows() -> Made:
    return lambda x: ((x * x).sum(-1), x.amax(-1)), (torch.randn(1024, 2048),)


@_enter
def sum_of_columns() -> Made:
    return lambda x: (x.sum(0), x.var(0)), (torch.randn(2048, 512),)


@_enter
def argmax() -> Made:
    return lambda x: x.argmax(-1), (torch.randn(512, 2048),)


@_enter
def cumsum() -> Made:
    return lambda x: x.cumsum(-1) * 2, (torch.randn(512, 1000),)


@_enter
def transpose_and_add() -> Made:
    return lambda x, y: x.t().contiguous() + y, (torch.randn(1024, 768), torch.randn(768, 1024))


@_enter
def embedding_and_norm() -> Made:
    indices = torch.randint(0, 5000, (8, 128))
    return lambda i, w: F.layer_norm(F.embedding(i, w), (256,)), (indices, torch.randn(5000, 256))


@_enter
def cross_entropy() -> Made:
    labels = torch.randint(0, 5000, (256,))
    return lambda x, y: F.cross_entropy(x, y), (torch.randn(256, 5000), labels)


@_enter
def max_pool() -> Made:
    return lambda x: F.max_pool2d(x, 3, 2, 1), (torch.randn(4, 32, 56, 56),)


@_enter
def bilinear_interpolation() -> Made:
    return lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"), (torch.randn(2, 16, 48, 48),)


@_enter
def rotary_embedding() -> Made:
    def function(x, cos, sin):
        first, second = x.chunk(2, -1)
        return x * cos + torch.cat((-second, first), -1) * sin

    return function, (torch.randn(2, 8, 256, 64), torch.randn(256, 64), torch.randn(256, 64))


@_enter
def causal_attention() -> Made:
    mask = torch.ones(256, 256, dtype=torch.bool).tril()

    def function(q, k, v):
        scores = (q @ k.transpose(-1, -2) * 0.125).masked_fill(~mask, float("-inf"))
        return torch.softmax(scores, -1) @ v

    return function, tuple(torch.randn(2, 8, 256, 64) for _ in range(3))


@_enter
def step_of_adam() -> Made:
    def function(p, g, m, v):
        m = torch.lerp(m, g, 0.1)
        v = 0.999 * v + 0.001 * g * g
        return p - 1e-3 * m / (v.sqrt() + 1e-8), m, v

    return function, tuple(torch.rand(1 << 19) for _ in range(4))


@_enter
def transformer_block() -> Made:
    layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True, norm_first=True)
    return lambda x: layer(x), (torch.randn(4, 128, 256, requires_grad=True),)


@_enter
def gradient_of_layer_norm() -> Made:
    def function(x, w, g):
        return torch.func.vjp(lambda x, w: F.layer_norm(x, (768,), w), x, w)[1](g)

    return function, (torch.randn(1024, 768), torch.randn(768), torch.randn(1024, 768))
