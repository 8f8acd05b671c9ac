"""Optimisers."""

from __future__ import annotations

import torch

from benchmarks.torch_models.declare import BF16, Made, program, random


@program()
def step_of_lion() -> Made:
    def function(p, g, m):
        update = torch.sign(0.9 * m + 0.1 * g)
        return p * (1 - 1e-4) - 1e-4 * update, 0.99 * m + 0.01 * g

    return function, tuple(torch.randn(1 << 24) for _ in range(3))


@program()
def step_of_adafactor() -> Made:
    def function(p, g, rows, columns):
        square = g.float().square() + 1e-30
        rows = 0.99 * rows + 0.01 * square.mean(-1)
        columns = 0.99 * columns + 0.01 * square.mean(-2)
        scale = (rows / rows.mean()).rsqrt()[:, None] * columns.rsqrt()
        return (p - 1e-3 * g * scale).to(BF16), rows, columns

    return function, (random(4096, 11008), random(4096, 11008), torch.rand(4096), torch.rand(11008))


@program()
def norms_of_gradients() -> Made:
    def function(*gradients):
        total = torch.stack([g.float().square().sum() for g in gradients]).sum().sqrt()
        return [g * torch.clamp(1 / (total + 1e-6), max=1.0) for g in gradients]

    sizes = (4096, 4096), (4096,), (11008, 4096), (4096, 1024), (1000, 77)
    return function, tuple(random(*size) for size in sizes)


@program()
def moving_average_of_weights() -> Made:
    def function(average, p):
        return torch.lerp(average, p.float(), 1e-3), p.square().mean()

    return function, (torch.randn(1 << 24), random(1 << 24))


@program()
def step_of_adamw_in_bf16() -> Made:
    def function(p, g, m, v):
        m = (0.9 * m.float() + 0.1 * g.float()).to(BF16)
        v = (0.95 * v.float() + 0.05 * g.float().square()).to(BF16)
        update = m.float() / 0.9 / ((v.float() / 0.95).sqrt() + 1e-8)
        return (p.float() * (1 - 1e-3) - 1e-4 * update).to(BF16), m, v

    return function, (random(1 << 24), random(1 << 24), random(1 << 24), torch.rand(1 << 24).to(BF16))
