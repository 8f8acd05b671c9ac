"""Recurrent layers, graphs, point clouds, tables."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from benchmarks.torch_models.declare import Made, indices, program, random


@program()
def gru_gates() -> Made:
    def function(x, h, hidden):
        reset, update, new = (part for part in x.chunk(3, -1))
        hr, hu, hn = hidden.chunk(3, -1)
        r, z = torch.sigmoid(reset + hr), torch.sigmoid(update + hu)
        n = torch.tanh(new + r * hn)
        return (1 - z) * n + z * h

    arguments = random(8192, 3072, dtype=torch.float32, grad=True), random(8192, 1024, dtype=torch.float32, grad=True)
    return function, (*arguments, random(8192, 3072, dtype=torch.float32, grad=True))


@program()
def messages_of_edges() -> Made:
    def function(x, source, target, weights):
        messages = F.relu(x[source]) * weights[:, None]
        return torch.zeros_like(x).index_add(0, target, messages)

    nodes, edges = 50_000, 400_000
    x = torch.randn(nodes, 64).requires_grad_()
    return function, (x, indices(nodes, edges), indices(nodes, edges), torch.rand(edges))


@program()
def softmax_of_edges() -> Made:
    def function(scores, target):
        shape = target[:, None].expand_as(scores)
        largest = torch.full((50_000, 4), -1e30, device=scores.device).scatter_reduce(0, shape, scores, "amax")
        e = (scores - largest[target]).exp()
        return e / torch.zeros(50_000, 4, device=scores.device).scatter_add(0, shape, e)[target]

    return function, (torch.randn(400_000, 4), indices(50_000, 400_000))


@program()
def radial_basis() -> Made:
    def function(x, source, target):
        distance = (x[source] - x[target]).square().sum(-1).add(1e-12).sqrt()
        centres = torch.linspace(0, 5, 64, device=x.device)
        cutoff = 0.5 * (torch.cos(distance * 0.6283185) + 1) * (distance < 5)
        return torch.exp(-10 * (distance[:, None] - centres).square()) * cutoff[:, None]

    return function, (torch.randn(20_000, 3), indices(20_000, 300_000), indices(20_000, 300_000))


@program()
def nearest_centre() -> Made:
    def function(x, centres):
        distance = x.square().sum(-1, keepdim=True) - 2 * x @ centres.t() + centres.square().sum(-1)
        return distance.min(-1)

    return function, (torch.randn(32768, 32), torch.randn(512, 32))


@program()
def rotation_of_quaternions() -> Made:
    def function(q):
        w, x, y, z = F.normalize(q, dim=-1).unbind(-1)
        rows = (
            (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
            (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
            (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
        )
        return torch.stack([torch.stack(row, -1) for row in rows], -2)

    return function, (torch.randn(1 << 19, 4).requires_grad_(),)


@program()
def running_sums_of_rewards() -> Made:
    return lambda x: (x.flip(-1).cumsum(-1).flip(-1) * 0.99, x.cummax(-1).values), (torch.randn(4096, 4096),)


@program()
def interactions_of_fields() -> Made:
    """Factorisation machine."""
    return lambda x: 0.5 * (x.sum(1).square() - x.square().sum(1)).sum(-1), (random(65536, 26, 16, grad=True),)


@program()
def one_hot_and_smoothing() -> Made:
    return lambda y: F.one_hot(y, 1000).float() * 0.9 + 1e-4, (indices(1000, 16384),)


@program()
def steps_of_lstm() -> Made:
    def function(x, h, c, w):
        steps = []
        for t in range(4):
            i, f, o, new = (x[:, t] + h @ w).chunk(4, -1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(new)
            h = torch.sigmoid(o) * torch.tanh(c)
            steps.append(h)
        return torch.stack(steps, 1), c

    x, h, c = random(512, 4, 2048, grad=True), random(512, 512, grad=True), random(512, 512, grad=True)
    return function, (x, h, c, (0.04 * torch.randn(512, 2048)).to(x.dtype).requires_grad_())


@program()
def steps_of_selective_scan() -> Made:
    """Mamba's, unrolled."""

    def function(x, dt, a, b, c):
        state, steps = torch.zeros(8, 1536, 16, device=x.device), []
        for t in range(6):
            delta = F.softplus(dt[:, t])
            state = state * torch.exp(delta[..., None] * a) + (delta * x[:, t])[..., None] * b[:, t, None]
            steps.append((state * c[:, t, None]).sum(-1))
        return torch.stack(steps, 1)

    x, dt, b, c = (torch.randn(8, 6, size).requires_grad_() for size in (1536, 1536, 16, 16))
    return function, (x, dt, -torch.rand(1536, 16), b, c)


@program()
def colours_along_rays() -> Made:
    """Of radiance fields: what is seen through what comes before."""

    def function(density, colour, distance):
        opacity = 1 - torch.exp(-F.relu(density) * distance)
        through = torch.cat((torch.ones_like(opacity[:, :1]), 1 - opacity + 1e-10), -1)
        weights = opacity * torch.cumprod(through, -1)[:, :-1]
        return (weights[..., None] * torch.sigmoid(colour)).sum(1), weights.sum(-1)

    return function, (torch.randn(16384, 129), torch.randn(16384, 129, 3), torch.rand(16384, 129) * 0.1)


@program()
def neighbours_of_points() -> Made:
    def function(x, near):
        shape = near.shape[-1]
        points = torch.gather(x[:, :, None].expand(-1, -1, shape, -1), 1, near[..., None].expand(-1, -1, -1, 3))
        edges = torch.cat((points - x[:, :, None], x[:, :, None].expand_as(points)), -1)
        return edges.amax(2), edges.var(2)

    return function, (torch.randn(16, 2048, 3).requires_grad_(), indices(2048, 16, 2048, 20))


@program()
def lower_triangle_of_products() -> Made:
    def function(x):
        products = torch.bmm(x, x.transpose(1, 2))
        i, j = torch.tril_indices(27, 27, -1, device=x.device)
        return torch.cat((x[:, 0], products[:, i, j]), 1)

    return function, (random(4096, 27, 64, grad=True),)
