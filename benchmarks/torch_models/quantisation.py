"""Quantisation, and back."""

from __future__ import annotations

import torch

from benchmarks.torch_models.declare import BF16, Made, program, random


@program(1e-1)
def int8_of_tokens() -> Made:
    def function(x):
        scale = x.abs().amax(-1, keepdim=True).float() / 127
        return torch.round(x.float() / scale).clamp(-128, 127).to(torch.int8), scale

    return function, (random(16384, 4096),)


@program(1e-1)
def fp8_of_blocks() -> Made:
    def function(x):
        blocks = x.view(8192, 56, 128).float()
        scale = blocks.abs().amax(-1, keepdim=True) / 448
        return (blocks / scale).to(torch.float8_e4m3fn).view(8192, 7168), scale[..., 0]

    return function, (random(8192, 7168),)


@program(1e-1)
def fp8_of_square_blocks() -> Made:
    def function(w):
        blocks = w.view(32, 128, 32, 128).float()
        scale = blocks.abs().amax((1, 3), keepdim=True) / 448
        return (blocks / scale).to(torch.float8_e4m3fn).view(4096, 4096), scale[:, 0, :, 0]

    return function, (random(4096, 4096),)


@program()
def int4_of_words() -> Made:
    def function(words, scales, zeros):
        shifts = torch.arange(0, 32, 4, device=words.device)
        values = (words[:, :, None] >> shifts & 15).flatten(1).view(4096, 32, 128)
        return ((values - zeros[..., None]).to(BF16) * scales[..., None]).view(4096, 4096)

    words = torch.randint(-(2**31), 2**31, (4096, 512)).int()
    return function, (words, random(4096, 32), torch.randint(0, 16, (4096, 32)).int())


@program()
def fake_quantisation() -> Made:
    def function(x, scale):
        y = x / scale
        return x + ((torch.round(y).clamp(-8, 7) - y).detach() + y - x / scale.detach()) * scale

    return function, (random(4096, 4096, dtype=torch.float32, grad=True), torch.rand(4096, 1) + 0.5)


@program()
def bits_of_signs() -> Made:
    def function(x):
        weights = 2 ** torch.arange(8, device=x.device)
        return ((x.view(-1, 512, 8) > 0) * weights).sum(-1).to(torch.uint8)

    return function, (random(8192, 4096),)
