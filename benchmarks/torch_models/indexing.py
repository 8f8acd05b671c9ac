"""What is gathered, scattered, sorted, and summed along a dimension."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from benchmarks.torch_models.declare import FP16, Made, indices, program, random


@program()
def words_with_padding() -> Made:
    def function(words, table):
        return F.embedding(words, table, padding_idx=0) * 2

    return function, (indices(30000, 64, 199), random(30000, 300, dtype=torch.float32, grad=True))


@program()
def lists_of_words() -> Made:
    """The mean of lists that are shorter than their rows."""

    def function(words, lengths, table):
        mask = (torch.arange(17, device=words.device) < lengths[:, None]).to(table.dtype)[..., None]
        return (table[words] * mask).sum(1) / mask.sum(1).clamp(min=1)

    return function, (indices(100_000, 8192, 17), indices(18, 8192), random(100_000, 128))


@program()
def votes_of_points() -> Made:
    def function(grid, rows, columns, votes):
        return grid.index_put((rows, columns), votes, accumulate=True)

    return function, (torch.zeros(4096, 100), indices(4096, 1 << 20), indices(100, 1 << 20), torch.randn(1 << 20))


@program()
def extremes_and_counts_of_groups() -> Made:
    def function(group, x, counts):
        ones, zeros = torch.ones(5000, device=x.device), torch.zeros(5000, dtype=torch.int64, device=x.device)
        extremes = (ones.scatter_reduce(0, group, x, how, include_self=False) for how in ("amin", "amax"))
        return *extremes, zeros.scatter_add(0, group, counts)

    return function, (indices(5000, 1 << 19), torch.randn(1 << 19), indices(100, 1 << 19))


@program()
def gathered_along_two_dimensions() -> Made:
    def function(x, rows, columns):
        return torch.gather(x, 1, rows), torch.take_along_dim(x, columns, 2)

    x = random(33, 65, 1001, dtype=torch.float32, grad=True)
    return function, (x, indices(65, 33, 9, 1001), indices(1001, 33, 65, 3))


@program()
def likeliest_words() -> Made:
    """Logits of words that are not among the likeliest nine tenths are dropped."""

    def function(x):
        sorted_logits, order = x.sort(-1, descending=True)
        p = torch.softmax(sorted_logits, -1)
        drop = p.cumsum(-1) - p > 0.9
        return x.masked_fill(torch.zeros_like(drop).scatter(1, order, drop), -float("inf"))

    return function, (torch.randn(64, 1023),)


@program()
def buckets_of_numbers() -> Made:
    def function(x, bounds):
        bucket = torch.bucketize(x, bounds)
        counts = torch.zeros(bounds.numel() + 1, dtype=torch.int64, device=x.device)
        return bucket, counts.scatter_add(0, bucket, torch.ones_like(bucket))

    return function, (torch.randn(1 << 20), torch.linspace(-2, 2, 33))


@program()
def running_sums_of_both_dimensions() -> Made:
    def function(x, i):
        return x.cumsum(-1), x.cumsum(0), x.logcumsumexp(-1), x.cummin(-1), i.cumsum(-1)

    return function, (torch.randn(4000, 1111), indices(100, 4000, 1111))


@program()
def moved_and_padded() -> Made:
    def function(x):
        turned = x.roll((3, -5), (2, 3)).flip(3)
        return turned, F.pad(x, (2, 3, 1, 4), mode="reflect"), F.pad(x, (2, 0, 0, 3), mode="circular")

    return function, (random(8, 16, 203, 205, dtype=FP16),)


@program()
def triangles_and_diagonals() -> Made:
    def function(x):
        return x.tril(-2), x.triu(3), torch.diagonal(x, 1, -2, -1) * 2, torch.diag_embed(x[..., 0])

    return function, (random(4, 1025, 1025, dtype=torch.float32),)
