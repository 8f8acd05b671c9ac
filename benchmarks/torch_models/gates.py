"""Activations, gates, regularisation."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from benchmarks.torch_models.declare import BF16, Made, program, random


@program()
def gated_gelu() -> Made:
    def function(x):
        gate, value = x.chunk(2, -1)
        return F.gelu(gate, approximate="tanh") * value

    return function, (random(8192, 2 * 5632, grad=True),)


@program()
def swiglu_of_two() -> Made:
    return lambda gate, up: F.silu(gate) * up, (random(8192, 14336, grad=True), random(8192, 14336, grad=True))


@program()
def clamped_swiglu() -> Made:
    """Pairs, limited, with a sigmoid of 1.702 times."""

    def function(x, b):
        x = x + b
        gate, linear = x[..., ::2].clamp(max=7.0), x[..., 1::2].clamp(-7.0, 7.0)
        return gate * torch.sigmoid(1.702 * gate) * (linear + 1)

    return function, (random(8192, 5760), random(5760))


@program()
def mish_and_softplus() -> Made:
    return lambda x: F.mish(x) + F.softplus(x, 2.0), (random(4096, 4096, grad=True),)


@program()
def elu_selu_celu() -> Made:
    return lambda x: F.elu(x) + F.selu(x) * F.celu(x, 0.5), (random(4096, 4096, dtype=torch.float32, grad=True),)


@program()
def snake() -> Made:
    """Of audio codecs: x + sin(a x)^2 / a, a of each channel."""

    def function(x, a):
        return x + (a * x).sin().square() / (a + 1e-9)

    return function, (random(16, 512, 8192, grad=True), torch.rand(1, 512, 1).to(BF16).requires_grad_())


@program()
def drop_path_and_layer_scale() -> Made:
    def function(x, y, gamma, keep):
        return x + y * gamma * keep[:, None, None] / 0.9

    keep = (torch.rand(64) < 0.9).to(BF16)
    return function, (random(64, 576, 768, grad=True), random(64, 576, 768, grad=True), random(768, grad=True), keep)


@program()
def squeeze_and_excitation() -> Made:
    def function(x, w1, w2):
        s = x.mean((2, 3))
        s = torch.sigmoid(F.silu(s @ w1) @ w2)
        return x * s[:, :, None, None]

    arguments = random(64, 192, 28, 28, grad=True), random(192, 48, grad=True), random(48, 192, grad=True)
    return function, arguments


@program()
def gumbel_softmax() -> Made:
    def function(x, u):
        noise = -torch.log(-torch.log(u + 1e-9) + 1e-9)
        return torch.softmax((x + noise) / 0.7, -1)

    return function, (random(65536, 320, dtype=torch.float32, grad=True), torch.rand(65536, 320))


@program()
def maxout() -> Made:
    return lambda x: x.view(8192, 1024, 4).amax(-1), (random(8192, 4096, grad=True),)
