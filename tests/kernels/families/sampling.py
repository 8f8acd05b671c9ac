"""Softmax, the choice of a token, sorting, random numbers."""

from __future__ import annotations

import deuteron as triton
import deuteron.language as tl
import numpy as np
from tests.kernels.case import Case, Launch, case, normal, poisoned, softmax, wide


@triton.jit
def online_softmax_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """A long row read twice."""
    row = tl.program_id(0)
    m = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(0, n, BLOCK):
        columns = i + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + columns, mask=columns < n, other=float("-inf")).to(tl.float32)
        m_new = tl.maximum(m, x)
        safe = tl.where(m_new == float("-inf"), 0.0, m_new)
        total = total * tl.exp(m - safe) + tl.exp(x - safe)
        m = m_new
    most = tl.max(m, 0)
    total = tl.sum(tl.where(m == float("-inf"), 0.0, total * tl.exp(m - most)), 0)
    for i in range(0, n, BLOCK):
        columns = i + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + columns, mask=columns < n, other=float("-inf")).to(tl.float32)
        tl.store(out_ptr + row * n + columns, tl.exp(x - most) / total, mask=columns < n)


@triton.jit
def softmax_backward_kernel(y_ptr, dy_ptr, dx_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    y = tl.load(y_ptr + row * n + columns, mask=columns < n, other=0.0)
    dy = tl.load(dy_ptr + row * n + columns, mask=columns < n, other=0.0)
    tl.store(dx_ptr + row * n + columns, y * (dy - tl.sum(y * dy, 0)), mask=columns < n)


@triton.jit
def nucleus_kernel(p_ptr, out_ptr, n, top_p, BLOCK: tl.constexpr):
    """Keeps the fewest probabilities that add up to top_p, and makes them add up to 1."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    p = tl.load(p_ptr + row * n + columns, mask=columns < n, other=0.0)
    ordered = tl.sort(p, descending=True)
    before = tl.cumsum(ordered, 0) - ordered
    limit = tl.min(tl.where(before < top_p, ordered, float("inf")), 0)
    kept = tl.where(p >= limit, p, 0.0)
    tl.store(out_ptr + row * n + columns, kept / tl.sum(kept, 0), mask=columns < n)


@triton.jit
def top_k_kernel(x_ptr, out_ptr, n, K: tl.constexpr, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n + columns, mask=columns < n, other=float("-inf"))
    tl.store(out_ptr + tl.program_id(0) * K + tl.arange(0, K), tl.topk(x, K))


@triton.jit
def bitonic_sort_rows_kernel(x_ptr, out_ptr, N: tl.constexpr, BM: tl.constexpr, DESCENDING: tl.constexpr):
    at = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + at, tl.sort(tl.load(x_ptr + at), dim=1, descending=DESCENDING))


@triton.jit
def dropout_kernel(x_ptr, out_ptr, keep_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    keep = tl.rand(seed, offsets) > p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)
    tl.store(keep_ptr + offsets, keep.to(tl.int8), mask=mask)


@triton.jit
def gumbel_argmax_kernel(logits_ptr, token_ptr, n, temperature, seed, BLOCK: tl.constexpr):
    """A token drawn with the probabilities of the softmax: the largest of the logits with noise."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    logits = tl.load(logits_ptr + row * n + columns, mask=columns < n, other=float("-inf")) / temperature
    u = tl.maximum(tl.rand(seed, row * n + columns), 1e-7)
    noisy = logits - tl.log(-tl.log(u))
    tl.store(token_ptr + row, tl.argmax(tl.where(columns < n, noisy, float("-inf")), axis=0))


@case
def online_softmax(rng: np.random.Generator) -> Case:
    x, out = normal(rng, (4, 150), "float16", 3), poisoned((4, 150))
    return Case([Launch(online_softmax_kernel, (4,), (x, out, 150), {"BLOCK": 64})], [(out, softmax(wide(x)), 1e-5)])


@case
def softmax_backward(rng: np.random.Generator) -> Case:
    y, dy, dx = softmax(normal(rng, (3, 100))), normal(rng, (3, 100)), poisoned((3, 100))
    expected = wide(y) * (wide(dy) - (wide(y) * wide(dy)).sum(1, keepdims=True))
    return Case([Launch(softmax_backward_kernel, (3,), (y, dy, dx, 100), {"BLOCK": 128})], [(dx, expected, 1e-5)])


@case
def nucleus(rng: np.random.Generator) -> Case:
    p, out = softmax(normal(rng, (3, 50), scale=2)), poisoned((3, 50))
    sums = np.cumsum(-np.sort(-wide(p), 1), 1)
    top_p = max(np.linspace(0.7, 0.9, 21).tolist(), key=lambda limit: np.abs(sums - limit).min())  # no sum is that
    expected = np.zeros(p.shape)
    for row, values in enumerate(wide(p)):
        order = np.argsort(-values)
        count = np.searchsorted(sums[row], top_p) + 1
        expected[row, order[:count]] = values[order[:count]] / values[order[:count]].sum()
    return Case([Launch(nucleus_kernel, (3,), (p, out, 50, top_p), {"BLOCK": 64})], [(out, expected, 1e-5)])


@case
def top_k(rng: np.random.Generator) -> Case:
    x, out = normal(rng, (3, 100)), poisoned((3, 8))
    launch = Launch(top_k_kernel, (3,), (x, out, 100), {"K": 8, "BLOCK": 128})
    return Case([launch], [(out, -np.sort(-x, 1)[:, :8], 0)])


@case
def bitonic_sort_rows(rng: np.random.Generator) -> Case:
    x, y = rng.integers(-50, 50, (8, 64)).astype(np.int16), normal(rng, (4, 32))
    up, down = poisoned(x.shape, "int16"), poisoned(y.shape)
    launches = [
        Launch(bitonic_sort_rows_kernel, (2,), (x, up), {"N": 64, "BM": 4, "DESCENDING": False}),
        Launch(bitonic_sort_rows_kernel, (1,), (y, down), {"N": 32, "BM": 4, "DESCENDING": True}),
    ]
    return Case(launches, [(up, np.sort(x, 1), 0), (down, -np.sort(-y, 1), 0)])


def philox(seed: int, offsets: np.ndarray) -> np.ndarray:
    """The first word of Philox-4x32-10, of Salmon, Moraes, Dror and Shaw (2011)."""
    c = [offsets.astype(np.uint64), *(np.zeros(len(offsets), np.uint64) for _ in range(3))]
    key = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> np.uint64(32)) ^ c[1] ^ key[0], b & low, (a >> np.uint64(32)) ^ c[3] ^ key[1], a & low]
        key = [(key[0] + np.uint64(0x9E3779B9)) & low, (key[1] + np.uint64(0xBB67AE85)) & low]
    return c[0].astype(np.uint32)


def uniform(seed: int, offsets: np.ndarray) -> np.ndarray:
    bits = philox(seed, offsets).view(np.int32)
    return np.where(bits < 0, ~bits, bits).astype(np.float32) * np.float32(4.6566127342e-10)


@case
def dropout(rng: np.random.Generator) -> Case:
    n, seed = 500, int(rng.integers(1 << 31))
    x, out, keep = normal(rng, n), poisoned(n), poisoned(n, "int8")
    kept = uniform(seed, np.arange(n)) > 0.3
    launch = Launch(dropout_kernel, (4,), (x, out, keep, n, 0.3, seed), {"BLOCK": 128})
    return Case([launch], [(keep, kept, 0), (out, np.where(kept, wide(x) / 0.7, 0), 1e-6)])


@case
def gumbel_argmax(rng: np.random.Generator) -> Case:
    rows, n, seed = 3, 60, int(rng.integers(1 << 31))
    logits, tokens = normal(rng, (rows, n)), poisoned(rows, "int32")
    u = np.maximum(uniform(seed, np.arange(rows * n)).reshape(rows, n), 1e-7)
    expected = (wide(logits) / 0.7 - np.log(-np.log(wide(u)))).argmax(1)
    logits[np.arange(rows), expected] += 0.01  # another one is not as large but for rounding
    launch = Launch(gumbel_argmax_kernel, (rows,), (logits, tokens, n, 0.7, seed), {"BLOCK": 64})
    return Case([launch], [(tokens, expected, 0)])
