"""What is around attention: rotations, heads, positions, embeddings, caches."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from benchmarks.torch_models.declare import BF16, Made, indices, program, random


@program()
def rotary_of_interleaved_pairs() -> Made:
    def function(x, cos, sin):
        even, odd = x[..., ::2], x[..., 1::2]
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)

    return function, (random(4, 2048, 32, 128), random(2048, 1, 64), random(2048, 1, 64))


@program()
def rotary_of_part_of_a_head() -> Made:
    def function(x, cos, sin):
        turned, rest = x[..., :32], x[..., 32:]
        first, second = turned.chunk(2, -1)
        return torch.cat((turned * cos + torch.cat((-second, first), -1) * sin, rest), -1)

    return function, (random(4, 32, 2048, 96, grad=True), random(2048, 32), random(2048, 32))


@program()
def qkv_to_heads() -> Made:
    def function(qkv, b):
        q, k, v = (qkv + b).view(16, 1024, 3, 12, 64).permute(2, 0, 3, 1, 4).unbind(0)
        return q.contiguous() * 0.125, k.transpose(-1, -2).contiguous(), v.contiguous()

    return function, (random(16, 1024, 3 * 768), random(3 * 768))


@program()
def heads_back_with_gate() -> Made:
    def function(x, gate):
        return x.transpose(1, 2).reshape(16, 1024, 768) * torch.sigmoid(gate)

    return function, (random(16, 12, 1024, 64, grad=True), random(16, 1024, 768, grad=True))


@program()
def relative_position_bias() -> Made:
    """T5's: a bucket of each distance, and a bias of each bucket and head."""

    def function(scores, table):
        distance = torch.arange(1024, device=scores.device)
        distance = (distance[:, None] - distance[None]).abs()
        large = 8 + (torch.log(distance.float() / 8 + 1e-6) / 2.772588722 * 8).to(torch.int64)
        buckets = torch.where(distance < 8, distance, large.clamp(max=15))
        return torch.softmax(scores + table[buckets].permute(2, 0, 1), -1)

    return function, (random(4, 8, 1024, 1024), random(16, 8))


@program()
def windows_of_swin() -> Made:
    def function(x):
        x = torch.roll(x, (-3, -3), (1, 2)).view(32, 8, 7, 8, 7, 128)
        return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, 49, 128)

    return function, (random(32, 56, 56, 128),)


@program()
def decomposed_position_scores() -> Made:
    """Of segment anything: scores of rows and columns added to all pairs."""

    def function(scores, rows, columns):
        return (scores.view(12, 4096, 64, 64) + rows[..., None] + columns[..., None, :]).view(12, 4096, 4096)

    return function, (random(12, 4096, 4096), random(12, 4096, 64), random(12, 4096, 64))


@program()
def sinusoids_of_time() -> Made:
    def function(t, w):
        frequencies = torch.exp(-9.21034 * torch.arange(160, device=t.device) / 160)
        angles = t[:, None].float() * frequencies
        return torch.cat((angles.cos(), angles.sin()), -1) * w

    return function, (torch.rand(65536) * 1000, torch.randn(320))


@program()
def encoding_of_points() -> Made:
    """Of radiance fields: sin and cos of ten octaves."""

    def function(x):
        octaves = 2.0 ** torch.arange(10, device=x.device)
        angles = (x[..., None] * octaves).flatten(-2)
        return torch.cat((x, angles.sin(), angles.cos()), -1)

    return function, (torch.rand(1 << 19, 3),)


@program()
def words_positions_and_norm() -> Made:
    def function(words, positions, types, w, p, t, g, b):
        return F.layer_norm(w[words] + p[positions] + t[types], (768,), g, b)

    tables = random(30522, 768, grad=True), random(512, 768, grad=True), random(2, 768, grad=True)
    positions = torch.arange(512).expand(64, 512)
    weights = random(768, grad=True), random(768, grad=True)
    return function, (indices(30522, 64, 512), positions, indices(2, 64, 512), *tables, *weights)


@program()
def bag_of_embeddings() -> Made:
    def function(indices, weights, table):
        return (table[indices] * weights[..., None]).sum(1)

    return function, (indices(200_000, 16384, 20), torch.rand(16384, 20), random(200_000, 64, dtype=torch.float32))


@program()
def unpacked_cache() -> Made:
    """int8 keys with a scale of each token and head, by pages."""

    def function(pages, scales, table):
        return (pages[table].to(BF16) * scales[table][..., None]).flatten(1, 2)

    pages = torch.randint(-128, 128, (4096, 16, 8, 128), dtype=torch.int8)
    return function, (pages, random(4096, 16, 8), indices(4096, 16, 128))
