"""Losses."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from benchmarks.torch_models.declare import Made, indices, program, random


@program()
def cross_entropy_of_pixels() -> Made:
    target = indices(19, 4, 512, 512)
    return lambda x, y: F.cross_entropy(x, y), (random(4, 19, 512, 512, dtype=torch.float32, grad=True), target)


@program()
def cross_entropy_with_z() -> Made:
    def function(x, y):
        x = x.float()
        z = torch.logsumexp(x, -1)
        return (z - x.gather(-1, y[:, None])[:, 0]).mean() + 1e-4 * z.square().mean()

    return function, (random(4096, 32128, grad=True), indices(32128, 4096))


@program()
def focal_loss_of_boxes() -> Made:
    def function(x, y):
        p = torch.sigmoid(x)
        loss = F.binary_cross_entropy_with_logits(x, y, reduction="none")
        p_t = p * y + (1 - p) * (1 - y)
        return (loss * (1 - p_t) ** 2 * (0.25 * y + 0.75 * (1 - y))).sum()

    arguments = random(16, 8400, 80, dtype=torch.float32, grad=True), (torch.rand(16, 8400, 80) < 0.01).float()
    return function, arguments


@program()
def dice_loss() -> Made:
    def function(x, y):
        p = torch.sigmoid(x).flatten(1)
        return (1 - (2 * (p * y).sum(1) + 1) / (p.sum(1) + y.sum(1) + 1)).mean()

    return function, (random(100, 1, 256, 256, dtype=torch.float32, grad=True), (torch.rand(100, 65536) < 0.3).float())


@program()
def distillation() -> Made:
    def function(student, teacher):
        logs = torch.log_softmax(student.float() / 2, -1)
        return F.kl_div(logs, torch.log_softmax(teacher.float() / 2, -1), log_target=True, reduction="batchmean")

    return function, (random(4096, 32000, grad=True), random(4096, 32000))


@program()
def contrastive_loss() -> Made:
    def function(x, y, scale):
        logits = scale * (F.normalize(x.float()) @ F.normalize(y.float()).t())
        labels = torch.arange(4096, device=x.device)
        return F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)

    arguments = random(4096, 512, grad=True), random(4096, 512, grad=True)
    return function, (*arguments, torch.tensor(14.0, requires_grad=True))


@program()
def box_overlap() -> Made:
    """Generalised intersection over union of pairs."""

    def function(a, b):
        inner = (torch.minimum(a[:, None, 2:], b[None, :, 2:]) - torch.maximum(a[:, None, :2], b[None, :, :2])).clamp(0)
        outer = torch.maximum(a[:, None, 2:], b[None, :, 2:]) - torch.minimum(a[:, None, :2], b[None, :, :2])
        areas_a, areas_b = ((v[:, 2] - v[:, 0]) * (v[:, 3] - v[:, 1]) for v in (a, b))
        both = inner[..., 0] * inner[..., 1]
        union = areas_a[:, None] + areas_b[None] - both
        hull = outer[..., 0] * outer[..., 1]
        return both / union - (hull - union) / hull

    def boxes(count):
        corner = torch.rand(count, 2)
        return torch.cat((corner, corner + torch.rand(count, 2) + 0.1), -1)

    return function, (boxes(8400), boxes(512))


@program()
def policy_loss() -> Made:
    def function(logs, old, advantage, mask):
        ratio = (logs - old).exp()
        loss = -torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
        apart = (old - logs).exp() - (old - logs) - 1
        return ((loss + 0.04 * apart) * mask).sum() / mask.sum()

    logs = (0.1 * torch.randn(1024, 2048)).requires_grad_()
    return function, (logs, 0.1 * torch.randn(1024, 2048), torch.randn(1024, 1), (torch.rand(1024, 2048) < 0.9).float())
