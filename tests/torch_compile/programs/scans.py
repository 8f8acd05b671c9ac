"""Scans, sorting and searching."""

import torch
from torch._higher_order_ops.associative_scan import associative_scan
from torch_compile.declaration import declare, integers, normal, program, uniform

SCANS = {
    "cumsum": torch.cumsum,
    "cumprod": torch.cumprod,
    "logcumsumexp": torch.logcumsumexp,
    "cummax": torch.cummax,
    "cummin": torch.cummin,
}
for name, scan in SCANS.items():
    maker = uniform(7, 37, low=0.7, high=1.3)
    declare(name, lambda x, f=scan: (f(x, -1), f(x, 0)), maker)


@program(normal(3, 1500), tolerance=8)  # eager mode adds in float64
def cumsum_of_long_rows(x):
    return x.cumsum(-1)


@program(integers(7, 65, dtype=torch.int32), integers(7, 65, high=2, dtype=torch.bool))
def cumsum_of_integers(x, y):
    return x.cumsum(-1), y.cumsum(0), (y.cumsum(-1) - 1) * y


@program(uniform(5, 33, low=0.5, high=1), normal(5, 33), normal(5, 33))
def cumsum_fused(x, y, z):
    return (x * y).cumsum(-1) * z, torch.cumsum(torch.relu(y), 1).sum(-1)


@program(uniform(5, 64, low=0.5, high=1), normal(5, 64))
def linear_recurrence(decay, x):
    def combine(left, right):
        return left[0] * right[0], left[1] * right[0] + right[1]

    return associative_scan(combine, (decay, x), dim=1, combine_mode="pointwise" if x.is_cuda else "generic")[1]


@program(normal(9, 100))
def sort_of_rows(x):
    values, indices = torch.sort(x, dim=-1, stable=True)
    return values, indices


@program(integers(9, 33, high=7, dtype=torch.int32))
def stable_sort(x):
    return torch.sort(x, dim=-1, stable=True, descending=True)


@program(normal(33, 5))
def sort_of_columns(x):
    return torch.argsort(x, dim=0, stable=True)


@program(normal(9, 65))
def largest(x):
    values, indices = torch.topk(x, 5, dim=-1)
    return torch.softmax(values, -1), indices + 1


@program(normal(7, 32))
def median(x):
    return x.median(-1).values * 2, x.quantile(0.3, dim=-1)


@program(normal(31), normal(5, 17))
def searching(boundaries, x):
    ordered = boundaries.sort().values
    return torch.searchsorted(ordered, x), torch.bucketize(x, ordered, right=True) * 2


@program(integers(200, high=12))
def histogram(x):
    return torch.bincount(x, minlength=12) * 2, torch.nn.functional.one_hot(x, 12).sum(0)
