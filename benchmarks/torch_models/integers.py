"""Whole numbers: quotients, hashes, packed codes, bits of floats; and masks."""

from __future__ import annotations

import torch

from benchmarks.torch_models.declare import BF16, FP16, Made, indices, program


@program()
def quotients_and_remainders() -> Made:
    def function(a, b):
        return a // b, a % b, torch.div(a, b, rounding_mode="trunc"), torch.fmod(a, b), a // 7, a % -5

    signs = indices(2, 1 << 20) * 2 - 1
    return function, (indices(20001, 1 << 20) - 10000, signs * (indices(99, 1 << 20) + 1))


@program()
def hashes_of_tokens() -> Made:
    def function(x):
        x = x * -7046029254386353131
        x = (x ^ (x >> 32)) * 0x2545F4914F6CDD1D
        x = x ^ (x >> 29)
        return x % 30011, (x & 1023).to(torch.int32), ((x >> 11) & 0x1FFFFF).float() / (1 << 21)

    return function, (torch.randint(-(2**62), 2**62, (1 << 20,)),)


@program()
def codes_of_four_bits() -> Made:
    def function(codes, scales, table):
        both = table[(codes >> 4).long()], table[(codes & 15).long()]
        return (torch.stack(both, -1).flatten(-2) * scales[:, None]).to(BF16)

    codes = torch.randint(0, 256, (1 << 16, 32), dtype=torch.uint8)
    return function, (codes, torch.rand(1 << 16), torch.randn(16))


@program()
def stochastic_rounding() -> Made:
    def function(x, noise):
        return ((x.view(torch.int32) + noise) & -65536).view(torch.float32).to(BF16)

    return function, (torch.randn(1 << 22), torch.randint(0, 65536, (1 << 22,), dtype=torch.int32))


@program()
def masks_of_documents() -> Made:
    def function(is_word, document):
        position = torch.arange(1023, device=is_word.device)
        mask = (position[:, None] >= position) & is_word[:, None] & (document[:, :, None] == document[:, None])
        return mask, mask.sum(-1), torch.where(mask, 0.0, -1e9).to(FP16), ~mask.any(-1)

    return function, (torch.rand(16, 1023) < 0.9, indices(4, 16, 1023))
