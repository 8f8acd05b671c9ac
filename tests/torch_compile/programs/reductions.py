"""Reductions: each kind, along each axis, of each type, short ones and ones that a loop or a grid shares."""

import torch
from torch_compile.declaration import declare, integers, normal, program, strided, uniform

KINDS = {
    "sum": torch.sum,
    "mean": torch.mean,
    "amax": torch.amax,
    "amin": torch.amin,
    "logsumexp": torch.logsumexp,
    "variance": torch.var,
    "deviation": torch.std,
    "euclidean_norm": lambda x, dim: torch.linalg.vector_norm(x, dim=dim),
    "maximum_norm": lambda x, dim: torch.linalg.vector_norm(x, float("inf"), dim=dim),
}
for name, reduce in KINDS.items():
    declare(f"{name}_of_each_axis", lambda x, f=reduce: (f(x, dim=0), f(x, dim=1), f(x, dim=2)), normal(5, 17, 37))
for name, reduce in {"prod": torch.prod, "nansum": torch.nansum}.items():
    declare(f"{name}_of_rows", lambda x, f=reduce: f(x, dim=-1), uniform(13, 29, low=0.8, high=1.2))

WHICH = {
    "argmax": torch.argmax,
    "argmin": torch.argmin,
    "max_with_indices": torch.max,
    "min_with_indices": torch.min,
    "any": lambda x, dim: torch.any(x > 2, dim=dim),
    "all": lambda x, dim: torch.all(x > -2, dim=dim),
    "count": lambda x, dim: torch.count_nonzero(x > 0, dim=dim),
}
for name, reduce in WHICH.items():
    declare(name, lambda x, f=reduce: (f(x, dim=0), f(x, dim=1)), normal(19, 77))

for dtype in (torch.float16, torch.bfloat16, torch.float64):
    name = f"statistics_{dtype}".replace("torch.", "")
    declare(name, lambda x: (x.sum(-1), x.mean(0), x.amax(-1), x.var(-1)), normal(23, 65, dtype=dtype))
for dtype in (torch.int8, torch.int32, torch.int64, torch.uint8):
    name = f"totals_{dtype}".replace("torch.", "")
    declare(name, lambda x: (x.sum(-1), x.amax(0), x.amin(-1), x.argmax(-1)), integers(23, 65, dtype=dtype))


@program(integers(23, 65, high=2, dtype=torch.bool))
def reductions_of_booleans(x):
    return x.any(-1), x.all(0), x.sum(-1), x.float().mean()


@program(normal(3, 5003))
def long_rows(x):
    return x.sum(-1), x.amax(-1), (x * x).mean(-1), x.argmin(-1)


@program(normal(5003, 3))
def long_columns(x):
    return x.sum(0), x.amax(0), x.std(0)


@program(normal(70001), normal(70001))
def everything(x, y):
    return (x * y).sum(), x.abs().max(), (x - y).pow(2).mean()


@program(normal(4, 7, 9, 11))
def several_axes(x):
    return x.sum((1, 3)), x.mean((0, 2), keepdim=True), x.amax((2, 3)), x.var((0, 1, 2, 3))


@program(normal(6, 33), gradients=True)
def reduction_and_broadcast(x):
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()


@program(normal(17, 33))
def two_outputs(x):
    low, high = torch.aminmax(x, dim=1)
    variance, mean = torch.var_mean(x, dim=1)
    return low, high, variance, mean, (x - low[:, None]) / (high - low)[:, None]


@program(strided(normal(65, 33), lambda x: x.t()))
def reduction_of_a_transpose(x):
    return x.sum(0), x.sum(1), x.amax(1)


@program(normal(9, 513), integers(9, 513, high=2, dtype=torch.bool))
def masked_reduction(x, mask):
    kept = x.masked_fill(~mask, 0)
    return kept.sum(-1) / mask.sum(-1), x.masked_fill(~mask, float("-inf")).amax(-1)


@program(normal(9, 65))
def specials_in_reductions(x):
    with_nan = torch.where(x > 2, float("nan"), x)
    return with_nan.amax(-1), with_nan.sum(-1), with_nan.argmax(-1), torch.where(x > 1, float("inf"), x).amin(-1)


@program(normal(3, 1, 5), normal(3, 0, 5))
def empty_and_single(x, y):
    return x.sum(1), y.sum(1), x.argmax(1), y.any(1)


@program(normal(33, 9), normal(33, 9), gradients=True)
def losses(x, y):
    mse, l1 = torch.nn.functional.mse_loss(x, y), torch.nn.functional.l1_loss(x, y)
    return mse + l1, torch.nn.functional.huber_loss(x, y), torch.cosine_similarity(x, y)
