"""Losses of language models: cross entropy with its gradient, with the product in front of it, divergences."""

from __future__ import annotations

import deuteron as triton
import deuteron.language as tl
import numpy as np
from tests.kernels.case import Case, Launch, case, normal, poisoned, softmax, wide


@triton.jit
def cross_entropy_kernel(
    x_ptr,
    x_stride,
    y_ptr,
    loss_ptr,
    n_vocabulary,
    n_not_ignored,
    ignore_index,
    label_smoothing: tl.constexpr,
    BLOCK: tl.constexpr,
    HAS_SOFTCAP: tl.constexpr,
    softcap,
):
    """The loss of a row of logits, and in their place its gradient; maximum and sum are found in one loop."""
    program = tl.program_id(0).to(tl.int64)
    y = tl.load(y_ptr + program)
    x_ptr += program * x_stride
    if y == ignore_index:
        for i in range(0, n_vocabulary, BLOCK):
            offsets = i + tl.arange(0, BLOCK)
            tl.store(x_ptr + offsets, 0.0, mask=offsets < n_vocabulary)
        return
    m = float("-inf")
    d = 0.0
    chosen = tl.load(x_ptr + y).to(tl.float32)
    if HAS_SOFTCAP:
        chosen = softcap * (2 * tl.sigmoid(2 * chosen / softcap) - 1)
    smooth = 0.0
    eps = label_smoothing / n_vocabulary
    for i in range(0, n_vocabulary, BLOCK):
        offsets = i + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < n_vocabulary, other=float("-inf")).to(tl.float32)
        if HAS_SOFTCAP:
            x = softcap * (2 * tl.sigmoid(2 * x / softcap) - 1)
            x = tl.where(offsets < n_vocabulary, x, float("-inf"))
        block_max = tl.max(x)
        if label_smoothing > 0:
            smooth += tl.sum(tl.where(offsets < n_vocabulary, -eps * x, 0.0))
        m_new = tl.maximum(m, block_max)
        d = d * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new))
        m = m_new
    lse = m + tl.log(d)
    for i in range(0, n_vocabulary, BLOCK):
        offsets = i + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < n_vocabulary, other=float("-inf")).to(tl.float32)
        if HAS_SOFTCAP:
            t = 2 * tl.sigmoid(2 * x / softcap) - 1
            x = softcap * t
        g = tl.exp(x - m) / d - eps
        g = tl.where(offsets != y, g, g - (1 - label_smoothing))
        if HAS_SOFTCAP:
            g = g * (1 - t * t)
        tl.store(x_ptr + offsets, g / n_not_ignored, mask=offsets < n_vocabulary)
    tl.debug_barrier()
    loss = lse - chosen
    if label_smoothing > 0:
        loss = loss * (1 - label_smoothing) + smooth + label_smoothing * lse
    tl.store(loss_ptr + program, loss / n_not_ignored)


@triton.jit
def linear_cross_entropy_kernel(
    h_ptr, w_ptr, y_ptr, loss_ptr, lse_ptr, n, vocabulary, K: tl.constexpr, BM: tl.constexpr, BV: tl.constexpr
):
    """Logits of a tile of tokens are never stored: a product for each tile of the vocabulary, and a running sum."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ks = tl.arange(0, K)
    h = tl.load(h_ptr + rows[:, None] * K + ks[None, :], mask=rows[:, None] < n, other=0.0)
    y = tl.load(y_ptr + rows, mask=rows < n, other=-1)
    m = tl.full((BM,), float("-inf"), tl.float32)
    d = tl.zeros((BM,), tl.float32)
    chosen = tl.zeros((BM,), tl.float32)
    for v in range(0, vocabulary, BV):
        columns = v + tl.arange(0, BV)
        w = tl.load(w_ptr + columns[:, None] * K + ks[None, :], mask=columns[:, None] < vocabulary, other=0.0)
        logits = tl.dot(h, tl.trans(w))
        logits = tl.where(columns[None, :] < vocabulary, logits, float("-inf"))
        chosen += tl.sum(tl.where(columns[None, :] == y[:, None], logits, 0.0), axis=1)
        m_new = tl.maximum(m, tl.max(logits, axis=1))
        d = d * tl.exp(m - m_new) + tl.sum(tl.exp(logits - m_new[:, None]), axis=1)
        m = m_new
    lse = m + tl.log(d)
    tl.store(lse_ptr + rows, lse, mask=rows < n)
    tl.store(loss_ptr + rows, lse - chosen, mask=rows < n)


@triton.jit
def element_mul_kernel(x_ptr, stride, factor_ptr, n_columns, BLOCK: tl.constexpr):
    """The gradient that comes from above, one number."""
    x_ptr += tl.program_id(0).to(tl.int64) * stride
    factor = tl.load(factor_ptr)
    for i in range(0, n_columns, BLOCK):
        offsets = i + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < n_columns)
        tl.store(x_ptr + offsets, x * factor, mask=offsets < n_columns)


@triton.jit
def kl_divergence_kernel(
    p_ptr, q_ptr, loss_ptr, n, BLOCK: tl.constexpr, LOG_TARGET: tl.constexpr = False, REDUCE: tl.constexpr = True
):
    """p: logarithms; q: probabilities, or their logarithms."""
    row = tl.program_id(0)
    total = 0.0
    for i in range(0, n, BLOCK):
        offsets = i + tl.arange(0, BLOCK)
        mask = offsets < n
        p = tl.load(p_ptr + row * n + offsets, mask=mask, other=0.0)
        q = tl.load(q_ptr + row * n + offsets, mask=mask, other=0.0)
        if LOG_TARGET:
            loss = tl.exp(q) * (q - p)
        else:
            loss = q * (tl.log(tl.maximum(q, 1e-10)) - p)
        if REDUCE:
            total += tl.sum(tl.where(mask, loss, 0.0), axis=0)
        else:
            tl.store(loss_ptr + row * n + offsets, loss, mask=mask)
    if REDUCE:
        tl.store(loss_ptr + row, total)


@triton.jit
def jensen_shannon_kernel(x_ptr, y_ptr, loss_ptr, dx_ptr, beta: tl.constexpr, n, BLOCK: tl.constexpr):
    """x, y: logarithms of probabilities; the gradient is that of x."""
    row = tl.program_id(0).to(tl.int64) * n
    for i in range(0, n, BLOCK):
        offsets = row + i + tl.arange(0, BLOCK)
        mask = i + tl.arange(0, BLOCK) < n
        x = tl.load(x_ptr + offsets, mask=mask, other=float("-inf")).to(tl.float32)
        y = tl.load(y_ptr + offsets, mask=mask, other=float("-inf")).to(tl.float32)
        q, p = tl.exp(x), tl.exp(y)
        mixed = beta * p + (1 - beta) * q
        log_mixed = tl.log(mixed)
        loss = beta * p * (y - log_mixed) + (1 - beta) * q * (x - log_mixed)
        tl.store(loss_ptr + offsets, loss, mask=mask)
        tl.store(dx_ptr + offsets, (1 - beta) * q * (x - log_mixed), mask=mask)


@case
def cross_entropy(rng: np.random.Generator) -> Case:
    rows, n, smoothing = 5, 150, 0.1
    x, y, loss = normal(rng, (rows, n), scale=3), rng.integers(0, n, rows), np.zeros(rows, np.float32)
    y[2] = -100
    p = softmax(wide(x))
    lse = np.log(np.exp(wide(x)).sum(1))
    kept = (y != -100)[:, None]
    one_hot = np.eye(n)[np.where(y < 0, 0, y)]
    target = one_hot * (1 - smoothing) + smoothing / n
    losses = np.where(kept[:, 0], (target * (lse[:, None] - wide(x))).sum(1), 0) / 4
    gradient = np.where(kept, p - target, 0) / 4
    args = x, n, y, loss, n, 4, -100
    options = {"label_smoothing": smoothing, "BLOCK": 64, "HAS_SOFTCAP": False, "softcap": 0.0}
    launch = Launch(cross_entropy_kernel, (rows,), args, options)
    return Case([launch], [(loss, losses, 1e-5), (x, gradient, 1e-5)])


@case
def cross_entropy_with_softcap(rng: np.random.Generator) -> Case:
    rows, n, cap = 3, 70, 5.0
    x, y, loss = normal(rng, (rows, n), scale=3), rng.integers(0, n, rows).astype(np.int32), poisoned(rows)
    t = np.tanh(wide(x) / cap)
    p = softmax(cap * t)
    losses = -np.log(p[np.arange(rows), y])
    gradient = (p - np.eye(n)[y]) * (1 - t * t)
    options = {"label_smoothing": 0.0, "BLOCK": 64, "HAS_SOFTCAP": True, "softcap": cap}
    launch = Launch(cross_entropy_kernel, (rows,), (x, n, y, loss, n, 1, -100), options)
    return Case([launch], [(loss, losses, 1e-4), (x, gradient, 1e-4)])


@case
def linear_cross_entropy(rng: np.random.Generator) -> Case:
    n, vocabulary, k = 20, 75, 32
    h, w, y = normal(rng, (n, k), "float16"), normal(rng, (vocabulary, k), "float16"), rng.integers(0, vocabulary, n)
    loss, lse = poisoned(n), poisoned(n)
    logits = wide(h) @ wide(w).T
    expected = np.log(np.exp(logits).sum(1))
    options = {"K": k, "BM": 16, "BV": 32}
    launch = Launch(linear_cross_entropy_kernel, (2,), (h, w, y, loss, lse, n, vocabulary), options)
    return Case([launch], [(lse, expected, 1e-4), (loss, expected - logits[np.arange(n), y], 1e-4)])


@case
def scaled_gradient(rng: np.random.Generator) -> Case:
    x, factor = normal(rng, (3, 100), "bfloat16"), np.array([0.5], np.float32)
    return Case([Launch(element_mul_kernel, (3,), (x, 100, factor, 100), {"BLOCK": 64})], [(x, wide(x) * 0.5, 1e-2)])


@case
def kl_divergence(rng: np.random.Generator) -> Case:
    p, q = np.log(softmax(normal(rng, (4, 90)))).astype(np.float32), softmax(normal(rng, (4, 90))).astype(np.float32)
    loss, single, log_q = poisoned(4), poisoned((4, 90)), np.log(q)
    launches = [
        Launch(kl_divergence_kernel, (4,), (p, q, loss, 90), {"BLOCK": 64}),
        Launch(kl_divergence_kernel, (4,), (p, log_q, single, 90), {"BLOCK": 64, "LOG_TARGET": True, "REDUCE": False}),
    ]
    each = wide(q) * (np.log(wide(q)) - wide(p))
    return Case(launches, [(loss, each.sum(1), 1e-4), (single, each, 1e-4)])


@case
def jensen_shannon(rng: np.random.Generator) -> Case:
    x, y = (np.log(softmax(normal(rng, (3, 100)))).astype(np.float32) for _ in range(2))
    loss, dx = poisoned(x.shape), poisoned(x.shape)
    q, p = np.exp(wide(x)), np.exp(wide(y))
    m = np.log(0.3 * p + 0.7 * q)
    launch = Launch(jensen_shannon_kernel, (3,), (x, y, loss, dx), {"beta": 0.3, "n": 100, "BLOCK": 64})
    expected = 0.3 * p * (y - m) + 0.7 * q * (x - m), 0.7 * q * (x - m)
    return Case([launch], [(loss, expected[0], 1e-4), (dx, expected[1], 1e-4)])
