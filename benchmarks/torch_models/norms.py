"""Norms, softmax, and what is computed of rows and columns."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from benchmarks.torch_models.declare import BF16, FP16, Made, program, random


@program()
def layer_norm_and_shift() -> Made:
    """Adaptive layer norm of a diffusion transformer."""

    def function(x, shift, scale):
        return F.layer_norm(x, (1152,)) * (1 + scale[:, None]) + shift[:, None]

    return function, (random(32, 1024, 1152, grad=True), random(32, 1152, grad=True), random(32, 1152, grad=True))


@program()
def rms_norm_of_heads() -> Made:
    def function(q, k, w):
        return F.rms_norm(q, (128,), w, 1e-6), F.rms_norm(k, (128,), w, 1e-6)

    return function, (random(8, 2048, 32, 128), random(8, 2048, 8, 128), random(128))


@program()
def rms_norm_of_heads_backward() -> Made:
    def function(q, w):
        return F.rms_norm(q, (64,), w, 1e-6)

    return function, (random(8, 2048, 16, 64, grad=True), random(64, grad=True))


@program()
def group_norm_of_channels_last() -> Made:
    def function(x, w, b):
        return F.silu(F.group_norm(x, 32, w, b))

    image = random(8, 320, 64, 64, dtype=FP16).to(memory_format=torch.channels_last)
    return function, (image, random(320, dtype=FP16), random(320, dtype=FP16))


@program()
def group_norm_backward() -> Made:
    def function(x, w, b):
        return F.group_norm(x, 16, w, b)

    arguments = random(16, 256, 32, 32, grad=True), random(256, grad=True), random(256, grad=True)
    return function, arguments


@program()
def batch_norm_with_relu_and_residual() -> Made:
    def function(x, y, w, b):
        return F.relu(F.batch_norm(x, None, None, w, b, training=True) + y)

    image = random(64, 128, 28, 28, dtype=torch.float32, grad=True)
    other = random(64, 128, 28, 28, dtype=torch.float32, grad=True)
    weights = (random(128, dtype=torch.float32, grad=True) for _ in range(2))
    return function, (image, other, *weights)


@program()
def batch_norm_inference() -> Made:
    def function(x, mean, var, w, b):
        return F.hardswish(F.batch_norm(x, mean, var, w, b))

    statistics = torch.randn(240), torch.rand(240) + 0.1, torch.randn(240), torch.randn(240)
    return function, (random(64, 240, 28, 28, dtype=torch.float32), *statistics)


@program()
def global_response_norm() -> Made:
    """Of ConvNeXt V2: over the image, then over channels, which are last."""

    def function(x, gamma, beta):
        size = x.float().square().sum((1, 2), keepdim=True).sqrt()
        return gamma * (x * (size / (size.mean(-1, keepdim=True) + 1e-6))) + beta + x

    return function, (random(32, 28, 28, 768, grad=True), random(768, grad=True), random(768, grad=True))


@program()
def softmax_of_odd_rows() -> Made:
    return lambda x: torch.softmax(x.float() * 0.3, -1).to(BF16), (random(16384, 1537),)


@program()
def softmax_backward_of_odd_rows() -> Made:
    return lambda x: torch.softmax(x, -1), (random(16384, 577, grad=True),)


@program()
def softmax_over_channels() -> Made:
    return lambda x: torch.softmax(x, 1), (random(8, 21, 512, 512, dtype=torch.float32, grad=True),)


@program()
def scaled_and_masked_scores() -> Made:
    def function(scores, bias, mask):
        return torch.softmax((scores * 0.125 + bias).masked_fill(mask[:, None, None], -1e4), -1)

    scores, bias = random(8, 12, 512, 512, grad=True), random(1, 12, 512, 512, grad=True)
    return function, (scores, bias, torch.rand(8, 512) < 0.2)


@program()
def entropy_of_logits() -> Made:
    def function(x):
        logs = torch.log_softmax(x.float(), -1)
        return -(logs.exp() * logs).sum(-1)

    return function, (random(2048, 32000, grad=True),)


@program()
def sparse_router() -> Made:
    def function(x):
        weights, experts = torch.topk(torch.softmax(x.float(), -1), 8, -1)
        return weights / weights.sum(-1, keepdim=True), experts

    return function, (random(16384, 64),)


@program()
def root_of_mean_square_of_columns() -> Made:
    return lambda x: x.float().square().mean(0).sqrt(), (random(65536, 640),)


@program()
def batch_norm_of_channels_last() -> Made:
    def function(x, mean, var, w, b):
        mean, var = mean.clone(), var.clone()
        return F.leaky_relu(F.batch_norm(x, mean, var, w, b, training=True, momentum=0.03), 0.1), mean, var

    image = random(32, 96, 31, 31).to(memory_format=torch.channels_last).requires_grad_()
    return function, (image, torch.randn(96), torch.rand(96), *(torch.randn(96).requires_grad_() for _ in range(2)))


@program()
def layer_norm_of_gates() -> Made:
    def function(x, h):
        gates, new = x.split((600, 300), -1)
        of_gates, of_new = h.repeat(1, 3).split((600, 300), -1)
        reset, update = torch.sigmoid(F.layer_norm(gates + of_gates, (600,))).chunk(2, -1)
        return torch.lerp(torch.tanh(F.layer_norm(new + reset * of_new, (300,))), h, update)

    return function, (torch.randn(4096, 900).requires_grad_(), torch.randn(4096, 300).requires_grad_())


@program()
def scale_of_layer_and_residual() -> Made:
    """ConvNeXt's: the norm of an image whose channels are last."""

    def function(x, y, w, b, scale):
        y = F.gelu(F.layer_norm(y.permute(0, 2, 3, 1), (192,), w, b))
        return x + (scale * y).permute(0, 3, 1, 2)

    images = (random(16, 192, 28, 28).to(memory_format=torch.channels_last).requires_grad_() for _ in range(2))
    return function, (*images, *(random(192, grad=True) for _ in range(3)))
