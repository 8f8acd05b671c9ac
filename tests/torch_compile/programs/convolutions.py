"""Convolutions with what surrounds them, and pooling."""

import torch
from torch import nn
from torch.nn import functional as F
from torch_compile.declaration import declare, model, normal, program

POOLS = {
    "max_pool": lambda x: F.max_pool2d(x, 3, 2, 1),
    "max_pool_with_indices": lambda x: F.max_pool2d(x, 2, return_indices=True),
    "average_pool": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "adaptive_average_pool": lambda x: F.adaptive_avg_pool2d(x, (3, 2)) * 2,
    "adaptive_max_pool": lambda x: F.adaptive_max_pool2d(x, (3, 2)) * 2,
    "global_pool": lambda x: torch.cat([x.mean((2, 3)), x.amax((2, 3))], 1),
    "power_pool": lambda x: F.lp_pool2d(x.abs(), 2.0, 2),
}
for name, pool in POOLS.items():
    declare(name, pool, normal(2, 3, 17, 15))
for name in ("max_pool", "average_pool", "adaptive_average_pool"):
    declare(f"{name}_gradient", POOLS[name], normal(2, 3, 9, 11), gradients=True)
declare("max_pool_1d", lambda x: F.max_pool1d(x.relu(), 3), normal(2, 5, 31))
declare("average_pool_3d", lambda x: F.avg_pool3d(x, 2), normal(1, 2, 6, 7, 8))


@program(normal(2, 3, 9, 11), normal(5, 3, 3, 3), normal(5), gradients=True)
def convolution_and_rectifier(x, weight, bias):
    return torch.relu(F.conv2d(x, weight, bias, padding=1)) * 0.5


@program(normal(2, 3, 11, 9), normal(6, 3, 3, 3), normal(6))
def strided_convolution(x, weight, bias):
    return F.silu(F.conv2d(x * 2, weight, bias, stride=2, dilation=2, padding=2))


@program(normal(2, 8, 5, 7), normal(12, 8, 1, 1), config={"conv_1x1_as_mm": True})
def convolution_as_product(x, weight):
    return F.conv2d(x, weight).sigmoid()


@program(normal(2, 6, 9, 7), normal(6, 1, 3, 3), gradients=True)
def depthwise_convolution(x, weight):
    return F.gelu(F.conv2d(x, weight, groups=6, padding=1))


@program(normal(2, 4, 5, 7), normal(4, 3, 3, 3))
def transposed_convolution(x, weight):
    return F.conv_transpose2d(x, weight, stride=2).tanh()


@program(normal(2, 4, 33), normal(6, 4, 5), normal(6))
def convolution_1d(x, weight, bias):
    return F.conv1d(F.pad(x, (4, 0)), weight, bias).relu()


@program(normal(1, 2, 5, 6, 7), normal(3, 2, 3, 3, 3))
def convolution_3d(x, weight):
    return F.conv3d(x, weight).relu()


@program(normal(2, 3, 8, 6))
def unfolding(x):
    patches = F.unfold(x, 3, padding=1)
    return patches * 2, F.fold(patches, (8, 6), 3, padding=1)


@model(normal(2, 3, 12, 10), gradients=True)
def convolution_with_batch_norm():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))


@model(normal(2, 3, 12, 10), config={"freezing": True})
def folded_batch_norm():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()).eval()
