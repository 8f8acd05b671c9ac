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


@program()
def cross_entropy_that_ignores() -> Made:
    def function(x, y):
        return F.cross_entropy(x.float(), y, ignore_index=-100, label_smoothing=0.1)

    return function, (random(4095, 50257, grad=True), torch.where(torch.rand(4095) < 0.2, -100, indices(50257, 4095)))


@program()
def losses_of_regression() -> Made:
    def function(x, y):
        likelihood = F.poisson_nll_loss(x, y.abs())
        return F.huber_loss(x, y, delta=0.7), F.smooth_l1_loss(x, y, beta=0.3), likelihood, F.l1_loss(x, y)

    return function, (torch.randn(4096, 1000).requires_grad_(), torch.randn(4096, 1000))


@program()
def triplets_and_angles() -> Made:
    def function(anchor, same, other):
        return F.triplet_margin_loss(anchor, same, other, swap=True), F.cosine_similarity(anchor, other)

    return function, tuple(torch.randn(8192, 511).requires_grad_() for _ in range(3))


@program()
def divergence_from_the_mean() -> Made:
    def function(p, q):
        p, q = torch.log_softmax(p, -1), torch.log_softmax(q, -1)
        mean = torch.logaddexp(p, q) - 0.6931472
        return 0.5 * ((p.exp() * (p - mean)).sum(-1) + (q.exp() * (q - mean)).sum(-1)).mean()

    return function, (torch.randn(2048, 10007).requires_grad_(), torch.randn(2048, 10007).requires_grad_())


@program()
def preferences() -> Made:
    """Of answers in pairs, by the probabilities of their words."""

    def function(x, words, mask, reference):
        logs = torch.gather(torch.log_softmax(x.float(), -1), -1, words[..., None])[..., 0] * mask
        better, worse = logs.sum(-1).chunk(2)
        return -F.logsigmoid(0.1 * (better - worse - reference)).mean()

    mask = (torch.rand(4, 511) < 0.8).float()
    return function, (random(4, 511, 32000, grad=True), indices(32000, 4, 511), mask, torch.randn(2))


@program()
def generalised_advantages() -> Made:
    def function(reward, value, is_done):
        advantage, steps = torch.zeros(4096, device=reward.device), []
        for t in reversed(range(32)):
            goes_on = 1 - is_done[:, t].float()
            delta = reward[:, t] + 0.99 * value[:, t + 1] * goes_on - value[:, t]
            advantage = delta + 0.9405 * goes_on * advantage
            steps.append(advantage)
        advantages = torch.stack(steps[::-1], 1)
        return (advantages - advantages.mean()) / (advantages.std() + 1e-8)

    return function, (torch.randn(4096, 32), torch.randn(4096, 33), torch.rand(4096, 32) < 0.1)
