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


@program()
def step_of_lamb() -> Made:
    def function(p, m, v):
        update = m / (v.sqrt() + 1e-6) + 0.01 * p
        size, of_update = p.norm(), update.norm()
        return p - 1e-3 * torch.where((size > 0) & (of_update > 0), size / of_update, 1.0) * update

    return function, (torch.randn(4097, 1025), torch.randn(4097, 1025), torch.rand(4097, 1025))


@program()
def step_of_adam_in_8_bits() -> Made:
    def function(p, g, codes, scales):
        m = 0.9 * (codes.float() / 127 * scales[:, None]) + 0.1 * g
        largest = m.abs().amax(-1)
        codes = (m / largest[:, None].clamp(min=1e-12) * 127).round().to(torch.int8)
        return p - 1e-3 * m.sign() * m.abs().sqrt(), codes, largest

    codes = torch.randint(-127, 128, (1 << 14, 256), dtype=torch.int8)
    return function, (torch.randn(1 << 14, 256), torch.randn(1 << 14, 256), codes, torch.rand(1 << 14))


@program()
def step_of_adam_in_groups() -> Made:
    def function(*tensors):
        p, g, m, v = (list(tensors[first : first + 6]) for first in range(0, 24, 6))
        m = torch._foreach_lerp(m, g, 0.1)
        v = torch._foreach_add(torch._foreach_mul(v, 0.999), torch._foreach_mul(torch._foreach_mul(g, g), 0.001))
        roots = torch._foreach_add(torch._foreach_sqrt(v), 1e-8)
        return torch._foreach_sub(p, torch._foreach_mul(torch._foreach_div(m, roots), 1e-3)), m, v

    sizes = (4096, 1024), (1024,), (50257, 96), (77, 333), (3, 3, 64, 64), (1,)
    return function, tuple(torch.rand(*size) for _ in range(4) for size in sizes)
