"""Programs whose sizes are not compiled in: several sizes by one compilation."""

import torch
from torch.nn import functional as F
from torch_compile.declaration import integers, normal, resizing

SIZES = ((5, 7), (33, 65), (12, 130))
MATRICES = [[normal(*size)] for size in SIZES]


@resizing(*MATRICES)
def resized_chain(x):
    return F.gelu(x * 2) + x.shape[0]


@resizing(*MATRICES)
def resized_sum(x):
    return x.sum(-1), x.mean(0), x.sum() / x.numel()


@resizing(*MATRICES)
def resized_softmax(x):
    return torch.softmax(x, -1)


@resizing(*MATRICES)
def resized_norm(x):
    return F.layer_norm(x, x.shape[-1:])


@resizing(*[[normal(*size), normal(size[1], 9)] for size in SIZES])
def resized_product(x, y):
    return torch.relu(x @ y)


@resizing(*[[normal(size[0], size[1]), normal(size[0], size[0])] for size in SIZES])
def resized_concatenation(x, y):
    both = torch.cat([x, y * 2], 1)
    return both.flip(1), both[:, : x.shape[0]]


@resizing(*[[normal(19, 8), integers(*size, high=19)] for size in SIZES])
def resized_embedding(weight, indices):
    return F.embedding(indices, weight).mean(1)


@resizing(*[[normal(1, 2, *size), normal(1, 2, *size)] for size in SIZES], gradients=True)
def resized_attention(q, v):
    return torch.softmax(q @ q.transpose(-1, -2), -1) @ v


@resizing(*[[normal(2, 3, *size)] for size in ((8, 9), (17, 12))])
def resized_pool(x):
    return F.max_pool2d(x, 3, 2, 1), F.interpolate(x, scale_factor=2.0)


@resizing(*MATRICES)
def resized_scan(x):
    return x.cumsum(-1)


@resizing(*[[normal(size), normal(size)] for size in (100, 3001, 70000)])
def resized_loss(x, y):
    return F.mse_loss(x, y), (x - y).abs().max()
