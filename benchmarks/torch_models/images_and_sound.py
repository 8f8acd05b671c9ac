"""Images and sound."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from benchmarks.torch_models.declare import BF16, FP16, Made, program, random


@program()
def bytes_to_image() -> Made:
    def function(x, mean, std):
        return ((x.permute(0, 3, 1, 2).float() / 255 - mean) / std).to(FP16).contiguous()

    image = torch.randint(0, 256, (64, 256, 256, 3), dtype=torch.uint8)
    return function, (image, torch.rand(3, 1, 1), torch.rand(3, 1, 1) + 0.5)


@program()
def patches_of_image() -> Made:
    def function(x):
        return x.view(32, 3, 14, 16, 14, 16).permute(0, 2, 4, 3, 5, 1).reshape(32, 196, 768).to(BF16)

    return function, (torch.rand(32, 3, 224, 224),)


@program()
def bilinear_to_other_size() -> Made:
    def function(x):
        return F.interpolate(x, size=(96, 160), mode="bilinear", align_corners=False)

    return function, (random(16, 64, 60, 100, dtype=torch.float32, grad=True),)


@program()
def nearest_and_cat() -> Made:
    def function(x, skip):
        return F.silu(torch.cat((F.interpolate(x, scale_factor=2), skip), 1))

    return function, (random(8, 256, 32, 32, grad=True), random(8, 128, 64, 64, grad=True))


@program()
def area_and_max_pool() -> Made:
    def function(x):
        return torch.cat((F.avg_pool2d(x, 3, 2, 1), F.max_pool2d(x, 3, 2, 1)), 1)

    return function, (random(32, 64, 112, 112, grad=True),)


@program()
def spatial_pyramid() -> Made:
    def function(x):
        a = F.max_pool2d(x, 5, 1, 2)
        b = F.max_pool2d(a, 5, 1, 2)
        return torch.cat((x, a, b), 1)

    return function, (random(32, 256, 20, 20),)


@program()
def sobel_of_gray() -> Made:
    def function(x):
        gray = 0.299 * x[:, 0] + 0.587 * x[:, 1] + 0.114 * x[:, 2]
        p = F.pad(gray, (1, 1, 1, 1), mode="reflect")
        dx = p[:, :-2, 2:] + 2 * p[:, 1:-1, 2:] + p[:, 2:, 2:] - p[:, :-2, :-2] - 2 * p[:, 1:-1, :-2] - p[:, 2:, :-2]
        dy = p[:, 2:, :-2] + 2 * p[:, 2:, 1:-1] + p[:, 2:, 2:] - p[:, :-2, :-2] - 2 * p[:, :-2, 1:-1] - p[:, :-2, 2:]
        return (dx * dx + dy * dy).sqrt()

    return function, (torch.rand(16, 3, 512, 512),)


@program()
def total_variation() -> Made:
    def function(x):
        return (x[..., 1:, :] - x[..., :-1, :]).abs().mean() + (x[..., 1:] - x[..., :-1]).abs().mean()

    return function, (torch.rand(16, 3, 512, 512).requires_grad_(),)


@program()
def structural_similarity() -> Made:
    def function(x, y):
        a, b, xx, yy, xy = (F.avg_pool2d(v, 7, 1) for v in (x, y, x * x, y * y, x * y))
        xx, yy, xy = xx - a * a, yy - b * b, xy - a * b
        return ((2 * a * b + 1e-4) * (2 * xy + 9e-4) / ((a * a + b * b + 1e-4) * (xx + yy + 9e-4))).mean()

    return function, (torch.rand(8, 3, 256, 256), torch.rand(8, 3, 256, 256))


@program()
def magnitudes_in_decibels() -> Made:
    def function(real, imaginary):
        power = real.square() + imaginary.square()
        level = 10 * torch.log10(power.clamp(min=1e-10))
        return torch.maximum(level, level.amax((-2, -1), keepdim=True) - 80)

    return function, (torch.randn(32, 513, 1000), torch.randn(32, 513, 1000))


@program()
def mu_law() -> Made:
    def function(x):
        y = torch.sign(x) * torch.log1p(255 * x.abs()) / 5.545177
        return ((y + 1) / 2 * 255 + 0.5).to(torch.int64)

    return function, (torch.rand(16, 1 << 18) * 2 - 1,)


@program()
def colours_to_ycc() -> Made:
    def function(x):
        r, g, b = x.float().unbind(1)
        y = 0.299 * r + 0.587 * g + 0.114 * b
        return torch.stack((y, (b - y) * 0.564 + 128, (r - y) * 0.713 + 128), 1).round().clamp(0, 255).to(torch.uint8)

    return function, (torch.randint(0, 256, (32, 3, 512, 512), dtype=torch.uint8),)


@program()
def shuffled_pixels() -> Made:
    def function(x, y):
        return F.pixel_shuffle(F.leaky_relu(x, 0.2), 2) + F.interpolate(y, scale_factor=2, mode="bilinear")

    return function, (random(8, 256, 63, 63, grad=True), random(8, 64, 63, 63, grad=True))


@program()
def bicubic_and_samples() -> Made:
    def function(x, grid):
        samples = F.grid_sample(x, grid, align_corners=False, padding_mode="border")
        return F.interpolate(x, size=(173, 61), mode="bicubic"), samples

    return function, (torch.randn(4, 16, 100, 100), torch.rand(4, 77, 77, 2) * 2.4 - 1.2)


@program()
def pools_of_odd_sizes() -> Made:
    def function(x):
        averages = F.avg_pool2d(x, (3, 5), (2, 3), (1, 2), count_include_pad=False)
        return averages, F.adaptive_avg_pool2d(x, (7, 5)), F.adaptive_max_pool2d(x, (6, 6))

    return function, (torch.randn(16, 128, 37, 37),)


@program()
def frames_of_sound() -> Made:
    def function(x, window):
        return ((x - x.mean(-1, keepdim=True)).unfold(-1, 400, 160) * window).square().log1p()

    return function, (torch.randn(16, 160_000), torch.rand(400))


@program()
def causal_convolution() -> Made:
    """Of four steps in each channel, as before a selective scan."""

    def function(x, w, b):
        padded = F.pad(x, (0, 0, 3, 0))
        return F.silu(sum(padded[:, step : step + 2049] * w[step] for step in range(4)) + b)

    return function, (random(4, 2049, 2048, grad=True), random(4, 2048, grad=True), random(2048, grad=True))
