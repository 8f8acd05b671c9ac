"""What benchmarks.torch_kernels measures: parts of models by name, in the sizes and types that they have on a GPU.

    PROGRAMS["swiglu"].make()   (function, arguments); tensors that require a gradient get one of each result

Functions are made under `torch.device("cuda")`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional as F

Made = tuple[Callable, tuple]
BF16, FP16 = torch.bfloat16, torch.float16


@dataclass(frozen=True)
class Program:
    """One program. Outputs that differ by more than the tolerance, of the largest of them, are wrong."""

    make: Callable[[], Made]
    tolerance: float


PROGRAMS: dict[str, Program] = {}


def _program(tolerance: float = 2e-2) -> Callable:
    def enter(make: Callable[[], Made]) -> Callable[[], Made]:
        PROGRAMS[make.__name__.replace("_", " ").strip()] = Program(make, tolerance)
        return make

    return enter


def _random(*shape: int, dtype: torch.dtype = BF16, grad: bool = False) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype).requires_grad_(grad)


def _indices(limit: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, limit, shape)


# Norms.


@_program()
def layer_norm_and_shift() -> Made:
    """Adaptive layer norm of a diffusion transformer."""

    def function(x, shift, scale):
        return F.layer_norm(x, (1152,)) * (1 + scale[:, None]) + shift[:, None]

    return function, (_random(32, 1024, 1152, grad=True), _random(32, 1152, grad=True), _random(32, 1152, grad=True))


@_program()
def rms_norm_of_heads() -> Made:
    def function(q, k, w):
        return F.rms_norm(q, (128,), w, 1e-6), F.rms_norm(k, (128,), w, 1e-6)

    return function, (_random(8, 2048, 32, 128), _random(8, 2048, 8, 128), _random(128))


@_program()
def rms_norm_of_heads_backward() -> Made:
    def function(q, w):
        return F.rms_norm(q, (64,), w, 1e-6)

    return function, (_random(8, 2048, 16, 64, grad=True), _random(64, grad=True))


@_program()
def group_norm_of_channels_last() -> Made:
    def function(x, w, b):
        return F.silu(F.group_norm(x, 32, w, b))

    image = _random(8, 320, 64, 64, dtype=FP16).to(memory_format=torch.channels_last)
    return function, (image, _random(320, dtype=FP16), _random(320, dtype=FP16))


@_program()
def group_norm_backward() -> Made:
    def function(x, w, b):
        return F.group_norm(x, 16, w, b)

    arguments = _random(16, 256, 32, 32, grad=True), _random(256, grad=True), _random(256, grad=True)
    return function, arguments


@_program()
def batch_norm_with_relu_and_residual() -> Made:
    def function(x, y, w, b):
        return F.relu(F.batch_norm(x, None, None, w, b, training=True) + y)

    image = _random(64, 128, 28, 28, dtype=torch.float32, grad=True)
    other = _random(64, 128, 28, 28, dtype=torch.float32, grad=True)
    weights = (_random(128, dtype=torch.float32, grad=True) for _ in range(2))
    return function, (image, other, *weights)


@_program()
def batch_norm_inference() -> Made:
    def function(x, mean, var, w, b):
        return F.hardswish(F.batch_norm(x, mean, var, w, b))

    statistics = torch.randn(240), torch.rand(240) + 0.1, torch.randn(240), torch.randn(240)
    return function, (_random(64, 240, 28, 28, dtype=torch.float32), *statistics)


@_program()
def global_response_norm() -> Made:
    """Of ConvNeXt V2: over the image, then over channels, which are last."""

    def function(x, gamma, beta):
        size = x.float().square().sum((1, 2), keepdim=True).sqrt()
        return gamma * (x * (size / (size.mean(-1, keepdim=True) + 1e-6))) + beta + x

    return function, (_random(32, 28, 28, 768, grad=True), _random(768, grad=True), _random(768, grad=True))


@_program()
def softmax_of_odd_rows() -> Made:
    return lambda x: torch.softmax(x.float() * 0.3, -1).to(BF16), (_random(16384, 1537),)


@_program()
def softmax_backward_of_odd_rows() -> Made:
    return lambda x: torch.softmax(x, -1), (_random(16384, 577, grad=True),)


@_program()
def softmax_over_channels() -> Made:
    return lambda x: torch.softmax(x, 1), (_random(8, 21, 512, 512, dtype=torch.float32, grad=True),)


@_program()
def scaled_and_masked_scores() -> Made:
    def function(scores, bias, mask):
        return torch.softmax((scores * 0.125 + bias).masked_fill(mask[:, None, None], -1e4), -1)

    scores, bias = _random(8, 12, 512, 512, grad=True), _random(1, 12, 512, 512, grad=True)
    return function, (scores, bias, torch.rand(8, 512) < 0.2)


@_program()
def entropy_of_logits() -> Made:
    def function(x):
        logs = torch.log_softmax(x.float(), -1)
        return -(logs.exp() * logs).sum(-1)

    return function, (_random(2048, 32000, grad=True),)


@_program()
def sparse_router() -> Made:
    def function(x):
        weights, experts = torch.topk(torch.softmax(x.float(), -1), 8, -1)
        return weights / weights.sum(-1, keepdim=True), experts

    return function, (_random(16384, 64),)


@_program()
def root_of_mean_square_of_columns() -> Made:
    return lambda x: x.float().square().mean(0).sqrt(), (_random(65536, 640),)


# Activations, gates, regularisation.


@_program()
def gated_gelu() -> Made:
    def function(x):
        gate, value = x.chunk(2, -1)
        return F.gelu(gate, approximate="tanh") * value

    return function, (_random(8192, 2 * 5632, grad=True),)


@_program()
def swiglu_of_two() -> Made:
    return lambda gate, up: F.silu(gate) * up, (_random(8192, 14336, grad=True), _random(8192, 14336, grad=True))


@_program()
def clamped_swiglu() -> Made:
    """Pairs, limited, with a sigmoid of 1.702 times."""

    def function(x, b):
        x = x + b
        gate, linear = x[..., ::2].clamp(max=7.0), x[..., 1::2].clamp(-7.0, 7.0)
        return gate * torch.sigmoid(1.702 * gate) * (linear + 1)

    return function, (_random(8192, 5760), _random(5760))


@_program()
def mish_and_softplus() -> Made:
    return lambda x: F.mish(x) + F.softplus(x, 2.0), (_random(4096, 4096, grad=True),)


@_program()
def elu_selu_celu() -> Made:
    return lambda x: F.elu(x) + F.selu(x) * F.celu(x, 0.5), (_random(4096, 4096, dtype=torch.float32, grad=True),)


@_program()
def snake() -> Made:
    """Of audio codecs: x + sin(a x)^2 / a, a of each channel."""

    def function(x, a):
        return x + (a * x).sin().square() / (a + 1e-9)

    return function, (_random(16, 512, 8192, grad=True), torch.rand(1, 512, 1).to(BF16).requires_grad_())


@_program()
def drop_path_and_layer_scale() -> Made:
    def function(x, y, gamma, keep):
        return x + y * gamma * keep[:, None, None] / 0.9

    keep = (torch.rand(64) < 0.9).to(BF16)
    return function, (_random(64, 576, 768, grad=True), _random(64, 576, 768, grad=True), _random(768, grad=True), keep)


@_program()
def squeeze_and_excitation() -> Made:
    def function(x, w1, w2):
        s = x.mean((2, 3))
        s = torch.sigmoid(F.silu(s @ w1) @ w2)
        return x * s[:, :, None, None]

    arguments = _random(64, 192, 28, 28, grad=True), _random(192, 48, grad=True), _random(48, 192, grad=True)
    return function, arguments


@_program()
def gumbel_softmax() -> Made:
    def function(x, u):
        noise = -torch.log(-torch.log(u + 1e-9) + 1e-9)
        return torch.softmax((x + noise) / 0.7, -1)

    return function, (_random(65536, 320, dtype=torch.float32, grad=True), torch.rand(65536, 320))


@_program()
def maxout() -> Made:
    return lambda x: x.view(8192, 1024, 4).amax(-1), (_random(8192, 4096, grad=True),)


# Attention's surroundings, embeddings.


@_program()
def rotary_of_interleaved_pairs() -> Made:
    def function(x, cos, sin):
        even, odd = x[..., ::2], x[..., 1::2]
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)

    return function, (_random(4, 2048, 32, 128), _random(2048, 1, 64), _random(2048, 1, 64))


@_program()
def rotary_of_part_of_a_head() -> Made:
    def function(x, cos, sin):
        turned, rest = x[..., :32], x[..., 32:]
        first, second = turned.chunk(2, -1)
        return torch.cat((turned * cos + torch.cat((-second, first), -1) * sin, rest), -1)

    return function, (_random(4, 32, 2048, 96, grad=True), _random(2048, 32), _random(2048, 32))


@_program()
def qkv_to_heads() -> Made:
    def function(qkv, b):
        q, k, v = (qkv + b).view(16, 1024, 3, 12, 64).permute(2, 0, 3, 1, 4).unbind(0)
        return q.contiguous() * 0.125, k.transpose(-1, -2).contiguous(), v.contiguous()

    return function, (_random(16, 1024, 3 * 768), _random(3 * 768))


@_program()
def heads_back_with_gate() -> Made:
    def function(x, gate):
        return x.transpose(1, 2).reshape(16, 1024, 768) * torch.sigmoid(gate)

    return function, (_random(16, 12, 1024, 64, grad=True), _random(16, 1024, 768, grad=True))


@_program()
def relative_position_bias() -> Made:
    """T5's: a bucket of each distance, and a bias of each bucket and head."""

    def function(scores, table):
        distance = torch.arange(1024, device=scores.device)
        distance = (distance[:, None] - distance[None]).abs()
        large = 8 + (torch.log(distance.float() / 8 + 1e-6) / 2.772588722 * 8).to(torch.int64)
        buckets = torch.where(distance < 8, distance, large.clamp(max=15))
        return torch.softmax(scores + table[buckets].permute(2, 0, 1), -1)

    return function, (_random(4, 8, 1024, 1024), _random(16, 8))


@_program()
def windows_of_swin() -> Made:
    def function(x):
        x = torch.roll(x, (-3, -3), (1, 2)).view(32, 8, 7, 8, 7, 128)
        return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, 49, 128)

    return function, (_random(32, 56, 56, 128),)


@_program()
def decomposed_position_scores() -> Made:
    """Of segment anything: scores of rows and columns added to all pairs."""

    def function(scores, rows, columns):
        return (scores.view(12, 4096, 64, 64) + rows[..., None] + columns[..., None, :]).view(12, 4096, 4096)

    return function, (_random(12, 4096, 4096), _random(12, 4096, 64), _random(12, 4096, 64))


@_program()
def sinusoids_of_time() -> Made:
    def function(t, w):
        frequencies = torch.exp(-9.21034 * torch.arange(160, device=t.device) / 160)
        angles = t[:, None].float() * frequencies
        return torch.cat((angles.cos(), angles.sin()), -1) * w

    return function, (torch.rand(65536) * 1000, torch.randn(320))


@_program()
def encoding_of_points() -> Made:
    """Of radiance fields: sin and cos of ten octaves."""

    def function(x):
        octaves = 2.0 ** torch.arange(10, device=x.device)
        angles = (x[..., None] * octaves).flatten(-2)
        return torch.cat((x, angles.sin(), angles.cos()), -1)

    return function, (torch.rand(1 << 19, 3),)


@_program()
def words_positions_and_norm() -> Made:
    def function(words, positions, types, w, p, t, g, b):
        return F.layer_norm(w[words] + p[positions] + t[types], (768,), g, b)

    tables = _random(30522, 768, grad=True), _random(512, 768, grad=True), _random(2, 768, grad=True)
    positions = torch.arange(512).expand(64, 512)
    weights = _random(768, grad=True), _random(768, grad=True)
    return function, (_indices(30522, 64, 512), positions, _indices(2, 64, 512), *tables, *weights)


@_program()
def bag_of_embeddings() -> Made:
    def function(indices, weights, table):
        return (table[indices] * weights[..., None]).sum(1)

    return function, (_indices(200_000, 16384, 20), torch.rand(16384, 20), _random(200_000, 64, dtype=torch.float32))


@_program()
def unpacked_cache() -> Made:
    """int8 keys with a scale of each token and head, by pages."""

    def function(pages, scales, table):
        return (pages[table].to(BF16) * scales[table][..., None]).flatten(1, 2)

    pages = torch.randint(-128, 128, (4096, 16, 8, 128), dtype=torch.int8)
    return function, (pages, _random(4096, 16, 8), _indices(4096, 16, 128))


# Losses.


@_program()
def cross_entropy_of_pixels() -> Made:
    target = _indices(19, 4, 512, 512)
    return lambda x, y: F.cross_entropy(x, y), (_random(4, 19, 512, 512, dtype=torch.float32, grad=True), target)


@_program()
def cross_entropy_with_z() -> Made:
    def function(x, y):
        x = x.float()
        z = torch.logsumexp(x, -1)
        return (z - x.gather(-1, y[:, None])[:, 0]).mean() + 1e-4 * z.square().mean()

    return function, (_random(4096, 32128, grad=True), _indices(32128, 4096))


@_program()
def focal_loss_of_boxes() -> Made:
    def function(x, y):
        p = torch.sigmoid(x)
        loss = F.binary_cross_entropy_with_logits(x, y, reduction="none")
        p_t = p * y + (1 - p) * (1 - y)
        return (loss * (1 - p_t) ** 2 * (0.25 * y + 0.75 * (1 - y))).sum()

    arguments = _random(16, 8400, 80, dtype=torch.float32, grad=True), (torch.rand(16, 8400, 80) < 0.01).float()
    return function, arguments


@_program()
def dice_loss() -> Made:
    def function(x, y):
        p = torch.sigmoid(x).flatten(1)
        return (1 - (2 * (p * y).sum(1) + 1) / (p.sum(1) + y.sum(1) + 1)).mean()

    return function, (_random(100, 1, 256, 256, dtype=torch.float32, grad=True), (torch.rand(100, 65536) < 0.3).float())


@_program()
def distillation() -> Made:
    def function(student, teacher):
        logs = torch.log_softmax(student.float() / 2, -1)
        return F.kl_div(logs, torch.log_softmax(teacher.float() / 2, -1), log_target=True, reduction="batchmean")

    return function, (_random(4096, 32000, grad=True), _random(4096, 32000))


@_program()
def contrastive_loss() -> Made:
    def function(x, y, scale):
        logits = scale * (F.normalize(x.float()) @ F.normalize(y.float()).t())
        labels = torch.arange(4096, device=x.device)
        return F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)

    arguments = _random(4096, 512, grad=True), _random(4096, 512, grad=True)
    return function, (*arguments, torch.tensor(14.0, requires_grad=True))


@_program()
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


@_program()
def policy_loss() -> Made:
    def function(logs, old, advantage, mask):
        ratio = (logs - old).exp()
        loss = -torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
        apart = (old - logs).exp() - (old - logs) - 1
        return ((loss + 0.04 * apart) * mask).sum() / mask.sum()

    logs = (0.1 * torch.randn(1024, 2048)).requires_grad_()
    return function, (logs, 0.1 * torch.randn(1024, 2048), torch.randn(1024, 1), (torch.rand(1024, 2048) < 0.9).float())


# Quantisation.


@_program(1e-1)
def int8_of_tokens() -> Made:
    def function(x):
        scale = x.abs().amax(-1, keepdim=True).float() / 127
        return torch.round(x.float() / scale).clamp(-128, 127).to(torch.int8), scale

    return function, (_random(16384, 4096),)


@_program(1e-1)
def fp8_of_blocks() -> Made:
    def function(x):
        blocks = x.view(8192, 56, 128).float()
        scale = blocks.abs().amax(-1, keepdim=True) / 448
        return (blocks / scale).to(torch.float8_e4m3fn).view(8192, 7168), scale[..., 0]

    return function, (_random(8192, 7168),)


@_program(1e-1)
def fp8_of_square_blocks() -> Made:
    def function(w):
        blocks = w.view(32, 128, 32, 128).float()
        scale = blocks.abs().amax((1, 3), keepdim=True) / 448
        return (blocks / scale).to(torch.float8_e4m3fn).view(4096, 4096), scale[:, 0, :, 0]

    return function, (_random(4096, 4096),)


@_program()
def int4_of_words() -> Made:
    def function(words, scales, zeros):
        shifts = torch.arange(0, 32, 4, device=words.device)
        values = (words[:, :, None] >> shifts & 15).flatten(1).view(4096, 32, 128)
        return ((values - zeros[..., None]).to(BF16) * scales[..., None]).view(4096, 4096)

    words = torch.randint(-(2**31), 2**31, (4096, 512)).int()
    return function, (words, _random(4096, 32), torch.randint(0, 16, (4096, 32)).int())


@_program()
def fake_quantisation() -> Made:
    def function(x, scale):
        y = x / scale
        return x + ((torch.round(y).clamp(-8, 7) - y).detach() + y - x / scale.detach()) * scale

    return function, (_random(4096, 4096, dtype=torch.float32, grad=True), torch.rand(4096, 1) + 0.5)


@_program()
def bits_of_signs() -> Made:
    def function(x):
        weights = 2 ** torch.arange(8, device=x.device)
        return ((x.view(-1, 512, 8) > 0) * weights).sum(-1).to(torch.uint8)

    return function, (_random(8192, 4096),)


# Images, sound.


@_program()
def bytes_to_image() -> Made:
    def function(x, mean, std):
        return ((x.permute(0, 3, 1, 2).float() / 255 - mean) / std).to(FP16).contiguous()

    image = torch.randint(0, 256, (64, 256, 256, 3), dtype=torch.uint8)
    return function, (image, torch.rand(3, 1, 1), torch.rand(3, 1, 1) + 0.5)


@_program()
def patches_of_image() -> Made:
    def function(x):
        return x.view(32, 3, 14, 16, 14, 16).permute(0, 2, 4, 3, 5, 1).reshape(32, 196, 768).to(BF16)

    return function, (torch.rand(32, 3, 224, 224),)


@_program()
def bilinear_to_other_size() -> Made:
    def function(x):
        return F.interpolate(x, size=(96, 160), mode="bilinear", align_corners=False)

    return function, (_random(16, 64, 60, 100, dtype=torch.float32, grad=True),)


@_program()
def nearest_and_cat() -> Made:
    def function(x, skip):
        return F.silu(torch.cat((F.interpolate(x, scale_factor=2), skip), 1))

    return function, (_random(8, 256, 32, 32, grad=True), _random(8, 128, 64, 64, grad=True))


@_program()
def area_and_max_pool() -> Made:
    def function(x):
        return torch.cat((F.avg_pool2d(x, 3, 2, 1), F.max_pool2d(x, 3, 2, 1)), 1)

    return function, (_random(32, 64, 112, 112, grad=True),)


@_program()
def spatial_pyramid() -> Made:
    def function(x):
        a = F.max_pool2d(x, 5, 1, 2)
        b = F.max_pool2d(a, 5, 1, 2)
        return torch.cat((x, a, b), 1)

    return function, (_random(32, 256, 20, 20),)


@_program()
def sobel_of_gray() -> Made:
    def function(x):
        gray = 0.299 * x[:, 0] + 0.587 * x[:, 1] + 0.114 * x[:, 2]
        p = F.pad(gray, (1, 1, 1, 1), mode="reflect")
        dx = p[:, :-2, 2:] + 2 * p[:, 1:-1, 2:] + p[:, 2:, 2:] - p[:, :-2, :-2] - 2 * p[:, 1:-1, :-2] - p[:, 2:, :-2]
        dy = p[:, 2:, :-2] + 2 * p[:, 2:, 1:-1] + p[:, 2:, 2:] - p[:, :-2, :-2] - 2 * p[:, :-2, 1:-1] - p[:, :-2, 2:]
        return (dx * dx + dy * dy).sqrt()

    return function, (torch.rand(16, 3, 512, 512),)


@_program()
def total_variation() -> Made:
    def function(x):
        return (x[..., 1:, :] - x[..., :-1, :]).abs().mean() + (x[..., 1:] - x[..., :-1]).abs().mean()

    return function, (torch.rand(16, 3, 512, 512).requires_grad_(),)


@_program()
def structural_similarity() -> Made:
    def function(x, y):
        a, b, xx, yy, xy = (F.avg_pool2d(v, 7, 1) for v in (x, y, x * x, y * y, x * y))
        xx, yy, xy = xx - a * a, yy - b * b, xy - a * b
        return ((2 * a * b + 1e-4) * (2 * xy + 9e-4) / ((a * a + b * b + 1e-4) * (xx + yy + 9e-4))).mean()

    return function, (torch.rand(8, 3, 256, 256), torch.rand(8, 3, 256, 256))


@_program()
def magnitudes_in_decibels() -> Made:
    def function(real, imaginary):
        power = real.square() + imaginary.square()
        level = 10 * torch.log10(power.clamp(min=1e-10))
        return torch.maximum(level, level.amax((-2, -1), keepdim=True) - 80)

    return function, (torch.randn(32, 513, 1000), torch.randn(32, 513, 1000))


@_program()
def mu_law() -> Made:
    def function(x):
        y = torch.sign(x) * torch.log1p(255 * x.abs()) / 5.545177
        return ((y + 1) / 2 * 255 + 0.5).to(torch.int64)

    return function, (torch.rand(16, 1 << 18) * 2 - 1,)


@_program()
def colours_to_ycc() -> Made:
    def function(x):
        r, g, b = x.float().unbind(1)
        y = 0.299 * r + 0.587 * g + 0.114 * b
        return torch.stack((y, (b - y) * 0.564 + 128, (r - y) * 0.713 + 128), 1).round().clamp(0, 255).to(torch.uint8)

    return function, (torch.randint(0, 256, (32, 3, 512, 512), dtype=torch.uint8),)


# Recurrent, graphs, point clouds, tables.


@_program()
def gru_gates() -> Made:
    def function(x, h, hidden):
        reset, update, new = (part for part in x.chunk(3, -1))
        hr, hu, hn = hidden.chunk(3, -1)
        r, z = torch.sigmoid(reset + hr), torch.sigmoid(update + hu)
        n = torch.tanh(new + r * hn)
        return (1 - z) * n + z * h

    arguments = _random(8192, 3072, dtype=torch.float32, grad=True), _random(8192, 1024, dtype=torch.float32, grad=True)
    return function, (*arguments, _random(8192, 3072, dtype=torch.float32, grad=True))


@_program()
def messages_of_edges() -> Made:
    def function(x, source, target, weights):
        messages = F.relu(x[source]) * weights[:, None]
        return torch.zeros_like(x).index_add(0, target, messages)

    nodes, edges = 50_000, 400_000
    x = torch.randn(nodes, 64).requires_grad_()
    return function, (x, _indices(nodes, edges), _indices(nodes, edges), torch.rand(edges))


@_program()
def softmax_of_edges() -> Made:
    def function(scores, target):
        shape = target[:, None].expand_as(scores)
        largest = torch.full((50_000, 4), -1e30, device=scores.device).scatter_reduce(0, shape, scores, "amax")
        e = (scores - largest[target]).exp()
        return e / torch.zeros(50_000, 4, device=scores.device).scatter_add(0, shape, e)[target]

    return function, (torch.randn(400_000, 4), _indices(50_000, 400_000))


@_program()
def radial_basis() -> Made:
    def function(x, source, target):
        distance = (x[source] - x[target]).square().sum(-1).add(1e-12).sqrt()
        centres = torch.linspace(0, 5, 64, device=x.device)
        cutoff = 0.5 * (torch.cos(distance * 0.6283185) + 1) * (distance < 5)
        return torch.exp(-10 * (distance[:, None] - centres).square()) * cutoff[:, None]

    return function, (torch.randn(20_000, 3), _indices(20_000, 300_000), _indices(20_000, 300_000))


@_program()
def nearest_centre() -> Made:
    def function(x, centres):
        distance = x.square().sum(-1, keepdim=True) - 2 * x @ centres.t() + centres.square().sum(-1)
        return distance.min(-1)

    return function, (torch.randn(32768, 32), torch.randn(512, 32))


@_program()
def rotation_of_quaternions() -> Made:
    def function(q):
        w, x, y, z = F.normalize(q, dim=-1).unbind(-1)
        rows = (
            (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
            (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
            (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
        )
        return torch.stack([torch.stack(row, -1) for row in rows], -2)

    return function, (torch.randn(1 << 19, 4).requires_grad_(),)


@_program()
def running_sums_of_rewards() -> Made:
    return lambda x: (x.flip(-1).cumsum(-1).flip(-1) * 0.99, x.cummax(-1).values), (torch.randn(4096, 4096),)


@_program()
def interactions_of_fields() -> Made:
    """Factorisation machine."""
    return lambda x: 0.5 * (x.sum(1).square() - x.square().sum(1)).sum(-1), (_random(65536, 26, 16, grad=True),)


@_program()
def one_hot_and_smoothing() -> Made:
    return lambda y: F.one_hot(y, 1000).float() * 0.9 + 1e-4, (_indices(1000, 16384),)


# Optimisers.


@_program()
def step_of_lion() -> Made:
    def function(p, g, m):
        update = torch.sign(0.9 * m + 0.1 * g)
        return p * (1 - 1e-4) - 1e-4 * update, 0.99 * m + 0.01 * g

    return function, tuple(torch.randn(1 << 24) for _ in range(3))


@_program()
def step_of_adafactor() -> Made:
    def function(p, g, rows, columns):
        square = g.float().square() + 1e-30
        rows = 0.99 * rows + 0.01 * square.mean(-1)
        columns = 0.99 * columns + 0.01 * square.mean(-2)
        scale = (rows / rows.mean()).rsqrt()[:, None] * columns.rsqrt()
        return (p - 1e-3 * g * scale).to(BF16), rows, columns

    return function, (_random(4096, 11008), _random(4096, 11008), torch.rand(4096), torch.rand(11008))


@_program()
def norms_of_gradients() -> Made:
    def function(*gradients):
        total = torch.stack([g.float().square().sum() for g in gradients]).sum().sqrt()
        return [g * torch.clamp(1 / (total + 1e-6), max=1.0) for g in gradients]

    sizes = (4096, 4096), (4096,), (11008, 4096), (4096, 1024), (1000, 77)
    return function, tuple(_random(*size) for size in sizes)


@_program()
def moving_average_of_weights() -> Made:
    def function(average, p):
        return torch.lerp(average, p.float(), 1e-3), p.square().mean()

    return function, (torch.randn(1 << 24), _random(1 << 24))


@_program()
def step_of_adamw_in_bf16() -> Made:
    def function(p, g, m, v):
        m = (0.9 * m.float() + 0.1 * g.float()).to(BF16)
        v = (0.95 * v.float() + 0.05 * g.float().square()).to(BF16)
        update = m.float() / 0.9 / ((v.float() / 0.95).sqrt() + 1e-8)
        return (p.float() * (1 - 1e-3) - 1e-4 * update).to(BF16), m, v

    return function, (_random(1 << 24), _random(1 << 24), _random(1 << 24), torch.rand(1 << 24).to(BF16))
