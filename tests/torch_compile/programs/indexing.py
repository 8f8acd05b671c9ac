"""Indexing, gathering, scattering; what moves elements; what puts tensors together; resampling."""

import torch
from torch import nn
from torch.nn import functional as F
from torch_compile.declaration import declare, integers, model, normal, permutation, program


@program(normal(11, 33), integers(11, 7, high=33), gradients=True)
def gather(x, indices):
    return x.gather(1, indices) * 2, torch.take_along_dim(x, indices, 1)


@program(normal(11, 33), integers(11, 7, high=33), normal(11, 7))
def scatter(x, indices, source):
    unique = indices.argsort(dim=-1, stable=True)
    return torch.scatter(x, 1, unique, source), torch.scatter(x, 1, unique, 0.5)


@program(normal(11, 33), integers(11, 7, high=33), normal(11, 7))
def scatter_add(x, indices, source):
    return x.scatter_add(1, indices, source), torch.zeros(33, dtype=x.dtype).index_add(0, indices[:, 0], source[:, 0])


@program(normal(9, 5), integers(30, 5, high=9), normal(30, 5))
def scatter_reduce(x, indices, source):
    reduced = [torch.scatter_reduce(x, 0, indices, source, kind) for kind in ("sum", "amax", "amin")]
    return *reduced, torch.scatter_reduce(x, 0, indices, source, "mean", include_self=False)


@program(normal(13, 17, 5), integers(6, high=13), integers(6, high=17), gradients=True)
def advanced_indexing(x, rows, columns):
    return x[rows, columns], x[rows][:, columns], x[rows, 1:9:3], x[-1, columns]


@program(normal(13, 17), permutation(13), normal(13, 17))
def index_put(x, order, values):
    y = x.clone()
    y[order] = values
    z = torch.index_put(x, (order % 5,), values, accumulate=True)
    return y, z, x.index_select(0, order), torch.index_fill(x, 0, order[:3], 0.0)


@program(normal(29, 16), integers(5, 7, high=29), gradients=True)
def embedding(weight, indices):
    return F.embedding(indices, weight) * 4


@program(normal(29, 16), integers(5, 7, high=29), integers(5, 7, high=3))
def embedding_with_positions(weight, tokens, segments):
    positions = torch.arange(7)
    return F.layer_norm(F.embedding(tokens, weight) + weight[positions] + weight[segments], (16,))


@model(integers(6, 4, high=19), gradients=True)
def embedding_bag():
    return nn.EmbeddingBag(19, 8, mode="sum")


@program(normal(7, 9), normal(7, 4), normal(7, 1))
def concatenation(x, y, z):
    return torch.cat([x.relu(), y * 2, z], 1), torch.stack([x, x + 1, -x], 1), torch.cat([x[:3], x[2:]], 0)


@program(normal(6, 20))
def splitting(x):
    a, b = x.chunk(2, -1)
    parts = torch.split(x, [3, 7, 10], -1)
    return a * torch.sigmoid(b), parts[0].sum(-1) + parts[1].sum(-1), x.unfold(1, 5, 3) * 2


@program(normal(2, 3, 7, 9), gradients=True)
def padding(x):
    constant, reflected = F.pad(x, (1, 2, 3, 0), value=0.5), F.pad(x, (2, 1, 1, 2), mode="reflect")
    return constant, reflected * 2, F.pad(x, (1, 1, 1, 1), mode="replicate"), F.pad(x, (-1, 0, 0, -2))


@program(normal(5, 7, 9))
def rearranging(x):
    return x.roll((1, -2), (0, 1)), x.flip(0, 2), x.rot90(1, (1, 2)), x.repeat(2, 1, 3), x.repeat_interleave(3, 1)


@program(normal(17, 13))
def triangles(x):
    return x.tril(), x.triu(2), x[:13].diagonal() * 2, torch.diag_embed(x[:3]), x.tril(-1) + x.t()[:, :1].sum()


@program(normal(9, 8))
def slices(x):
    y = x.clone()
    y[2:7, ::3] = 1.5
    y[:, -1] += x[:, 0]
    return y, torch.slice_scatter(x, x[:4] * 2, 0, 5), torch.select_scatter(x, x[0], 0, 3), x[1:-1, 2:][::2]


@program(integers(11, high=6))
def making(x):
    grid = torch.meshgrid(torch.arange(5.0), torch.linspace(0, 1, 7), indexing="ij")
    return F.one_hot(x, 6), torch.eye(5) + grid[0][:, :5], grid[1].sum(0), torch.full((3,), 2.5), torch.arange(3, 30, 4)


@program(normal(2, 3, 6, 5), gradients=True)
def nearest_and_bilinear(x):
    return F.interpolate(x, scale_factor=2.0), F.interpolate(x, size=(9, 11), mode="bilinear", align_corners=True)


@program(normal(2, 3, 6, 5))
def bicubic(x):
    return F.interpolate(x, size=(11, 8), mode="bicubic")


@program(normal(2, 3, 6, 5), normal(2, 4, 7, 2, scale=0.5))
def grid_sampling(x, grid):
    return F.grid_sample(x, grid, align_corners=False), F.grid_sample(x, grid, mode="nearest", align_corners=True)


@program(normal(2, 8, 5, 3))
def pixel_shuffling(x):
    return F.pixel_shuffle(x, 2), F.pixel_unshuffle(x[..., :4, :2], 2), F.channel_shuffle(x, 4)


@program(normal(5, 6, 7), normal(5, 6, 7))
def stored_into_views(x, y):
    out = torch.zeros(6, 5, 14, dtype=x.dtype)
    out[..., ::2] = x.transpose(0, 1)
    out[..., 1::2] = y.transpose(0, 1) * 2
    return out


declare("nonzero", lambda x: (torch.nonzero(x > 1).shape[0], x[x > 1].sum()), normal(65))
