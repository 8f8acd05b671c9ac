"""Normalisation and softmax, forward and backward."""

import torch
from torch import nn
from torch.nn import functional as F
from torch_compile.declaration import declare, integers, model, normal, program

for name, dtype in {"": torch.float32, "_float64": torch.float64, "_bfloat16": torch.bfloat16}.items():
    declare(f"softmax{name}", lambda x: torch.softmax(x, -1), normal(9, 77, dtype=dtype), gradients=True)
    declare(f"log_softmax{name}", lambda x: torch.log_softmax(x, 0), normal(77, 9, dtype=dtype), gradients=True)


@program(normal(3, 5001, scale=4))
def softmax_of_long_rows(x):
    return torch.softmax(x, -1), torch.log_softmax(x, -1)


@program(normal(4, 2, 17, 17))
def softmax_with_a_mask(x):
    mask = torch.ones(17, 17, dtype=torch.bool).tril()
    return torch.softmax(x.masked_fill(~mask, float("-inf")) * 0.3, -1)


@program(normal(3, 5, 7), gradients=True)
def softmax_of_each_axis(x):
    return torch.softmax(x, 0), torch.softmax(x, 1), F.softmin(x, 2)


@program(normal(13, 101), integers(13, high=101), gradients=True)
def cross_entropy(x, labels):
    return F.cross_entropy(x, labels), F.cross_entropy(x, labels, label_smoothing=0.1, reduction="none")


@program(normal(13, 11), integers(13, low=-1, high=11), gradients=True)
def cross_entropy_ignoring(x, labels):
    return F.cross_entropy(x, labels, ignore_index=-1)


@program(normal(7, 65), normal(7, 65), gradients=True)
def binary_cross_entropy(x, y):
    return F.binary_cross_entropy_with_logits(x, torch.sigmoid(y)), F.kl_div(F.log_softmax(x, -1), torch.softmax(y, -1))


@program(normal(5, 65), normal(65), normal(65), gradients=True)
def layer_norm(x, weight, bias):
    return F.layer_norm(x, (65,), weight, bias)


@program(normal(5, 65, dtype=torch.bfloat16), normal(65, dtype=torch.bfloat16), gradients=True)
def layer_norm_bfloat16(x, weight):
    return F.layer_norm(x, (65,), weight)


@program(normal(3, 4099), normal(4099))
def layer_norm_of_long_rows(x, weight):
    return F.layer_norm(x, (4099,), weight)


@program(normal(5, 7, 96), normal(96), gradients=True)
def rms_norm(x, weight):
    return F.rms_norm(x, (96,), weight, 1e-6)


@program(normal(5, 33), normal(5, 33), normal(33), gradients=True)
def residual_rms_norm(x, residual, weight):
    total = x + residual
    return total, total * torch.rsqrt(total.square().mean(-1, keepdim=True) + 1e-6) * weight


@program(normal(3, 12, 5, 7), normal(12), normal(12), gradients=True)
def group_norm(x, weight, bias):
    return F.group_norm(x, 4, weight, bias)


@program(normal(3, 4, 5, 7), gradients=True)
def instance_norm(x):
    return F.instance_norm(x)


@model(normal(6, 5, 4, 3), gradients=True)
def batch_norm_in_training():
    return nn.BatchNorm2d(5)


@model(normal(6, 5, 4, 3))
def batch_norm_in_evaluation():
    return nn.BatchNorm2d(5).eval()


@program(normal(9, 33), normal(12, 33), gradients=True)
def normalised_rows(x, weight):
    return F.normalize(x, dim=-1), torch._weight_norm(weight, weight.norm(dim=1, keepdim=True) * 2, 0)


@program(normal(2, 7, 5, 5))
def local_response_norm(x):
    return F.local_response_norm(x, 3)
