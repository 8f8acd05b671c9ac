"""Convolutions in one and two dimensions, and pooling."""

from __future__ import annotations

import deuteron as triton
import deuteron.language as tl
import numpy as np
from tests.kernels.case import Case, Launch, case, normal, poisoned, silu, wide


@triton.jit
def causal_conv1d_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, length, dim, WIDTH: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr,
    ACTIVATE: tl.constexpr,
):  # fmt: skip
    """A filter for each channel over the steps behind: [batch, length, dim]."""
    batch = tl.program_id(2)
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    acc = tl.zeros((BT, BD), dtype=tl.float32)
    acc += tl.load(b_ptr + d, mask=d < dim, other=0.0)[None, :]
    for i in tl.static_range(WIDTH):
        before = t - (WIDTH - 1) + i
        mask = (before >= 0)[:, None] & (before < length)[:, None] & (d < dim)[None, :]
        x = tl.load(x_ptr + (batch * length + before)[:, None] * dim + d[None, :], mask=mask, other=0.0)
        w = tl.load(w_ptr + d * WIDTH + i, mask=d < dim, other=0.0)
        acc += x * w[None, :]
    if ACTIVATE:
        acc = acc * tl.sigmoid(acc)
    mask = (t < length)[:, None] & (d < dim)[None, :]
    tl.store(y_ptr + (batch * length + t)[:, None] * dim + d[None, :], acc, mask=mask)


@triton.jit
def conv2d_kernel(
    x_ptr, w_ptr, y_ptr, batch, height, width, channels, out_height, out_width, out_channels, R: tl.constexpr,
    S: tl.constexpr, STRIDE: tl.constexpr, PAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """As a product: pixels of all images by filters, over the taps and channels; channels last."""
    pixels = tl.program_id(0) * BM + tl.arange(0, BM)
    column = pixels % out_width
    row = pixels // out_width % out_height
    image = pixels // (out_width * out_height)
    filters = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    steps = tl.cdiv(channels, BK)
    for i in range(R * S * steps):
        tap = i // steps
        c = (i % steps) * BK + tl.arange(0, BK)
        y = row * STRIDE - PAD + tap // S
        x = column * STRIDE - PAD + tap % S
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < width) & (image < batch)
        at = ((image * height + y) * width + x)[:, None] * channels + c[None, :]
        a = tl.load(x_ptr + at, mask=inside[:, None] & (c < channels)[None, :], other=0.0)
        of_w = (filters[None, :] * R * S + tap) * channels + c[:, None]
        b = tl.load(w_ptr + of_w, mask=(filters < out_channels)[None, :] & (c < channels)[:, None], other=0.0)
        acc = tl.dot(a, b, acc)
    mask = (image < batch)[:, None] & (filters < out_channels)[None, :]
    tl.store(y_ptr + pixels[:, None] * out_channels + filters[None, :], acc.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def max_pool2d_kernel(
    x_ptr, y_ptr, index_ptr, height, width, out_height, out_width, SIZE: tl.constexpr, STRIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The largest of a window, and where in the plane it is."""
    plane = tl.program_id(1)
    out = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, column = out // out_width * STRIDE, out % out_width * STRIDE
    mask = out < out_height * out_width
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    place = tl.zeros((BLOCK,), tl.int32)
    for i in tl.static_range(SIZE * SIZE):
        y, x = row + i // SIZE, column + i % SIZE
        inside = mask & (y < height) & (x < width)
        value = tl.load(x_ptr + plane * height * width + y * width + x, mask=inside, other=float("-inf"))
        place = tl.where(value > best, y * width + x, place)
        best = tl.maximum(best, value)
    tl.store(y_ptr + plane * out_height * out_width + out, best, mask=mask)
    tl.store(index_ptr + plane * out_height * out_width + out, place, mask=mask)


@case
def causal_conv1d(rng: np.random.Generator) -> Case:
    batch, length, dim, width = 2, 21, 10, 4
    x, w, b = normal(rng, (batch, length, dim)), normal(rng, (dim, width)), normal(rng, dim)
    y = poisoned(x.shape)
    padded = np.pad(wide(x), ((0, 0), (width - 1, 0), (0, 0)))
    expected = silu(wide(b) + sum(padded[:, i : i + length] * wide(w)[:, i] for i in range(width)))
    options = {"WIDTH": width, "BT": 16, "BD": 8, "ACTIVATE": True}
    return Case(
        [Launch(causal_conv1d_kernel, (2, 2, batch), (x, w, b, y, length, dim), options)], [(y, expected, 1e-5)]
    )


@case
def conv2d(rng: np.random.Generator) -> Case:
    n, h, w, c, k, r, s, stride, pad = 2, 9, 8, 20, 24, 3, 3, 2, 1
    x, weight = normal(rng, (n, h, w, c), "float16"), normal(rng, (k, r, s, c), "float16")
    p, q = (h + 2 * pad - r) // stride + 1, (w + 2 * pad - s) // stride + 1
    y, expected = poisoned((n, p, q, k), "float16"), np.zeros((n, p, q, k))
    padded = np.pad(wide(x), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    for i in range(r):
        for j in range(s):
            part = padded[:, i : i + stride * p : stride, j : j + stride * q : stride][:, :p, :q]
            expected += part @ wide(weight)[:, i, j].T
    options = {"R": r, "S": s, "STRIDE": stride, "PAD": pad, "BM": 16, "BN": 32, "BK": 16}
    launch = Launch(conv2d_kernel, (-(-n * p * q // 16), 1), (x, weight, y, n, h, w, c, p, q, k), options)
    return Case([launch], [(y, expected, 2e-3)])


@case
def max_pool2d(rng: np.random.Generator) -> Case:
    planes, h, w, p, q = 3, 11, 9, 5, 4
    x, y, index = normal(rng, (planes, h, w)), poisoned((planes, p, q)), poisoned((planes, p, q), "int32")
    windows = np.stack([x[:, i : i + 2 * p : 2, j : j + 2 * q : 2][:, :p, :q] for i in range(3) for j in range(3)])
    tap = windows.argmax(0)
    rows, columns = 2 * np.arange(p)[:, None] + tap // 3, 2 * np.arange(q) + tap % 3
    launch = Launch(max_pool2d_kernel, (1, planes), (x, y, index, h, w, p, q), {"SIZE": 3, "STRIDE": 2, "BLOCK": 32})
    return Case([launch], [(y, windows.max(0), 0), (index, rows * w + columns, 0)])
