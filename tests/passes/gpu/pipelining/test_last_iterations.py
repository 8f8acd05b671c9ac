"""What comes after the middle of a split loop: a few iterations, beyond which nothing is copied; one is no loop."""

from __future__ import annotations

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate_compiled
from ir_text import generic_asm

import deuteron
import deuteron.language as tl

D = 32


@deuteron.jit
def attention(q, k, v, out, n, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr):
    rows, keys, dims = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + dims[None, :])
    top = tl.full((BM,), float("-inf"), tl.float32)
    total, acc = tl.zeros((BM,), tl.float32), tl.zeros((BM, D), tl.float32)
    end = tl.minimum((tl.program_id(0) + 1) * BM, n) if CAUSAL else n
    for start in range(0, end, BN):
        here = start + keys
        y = tl.load(k + here[:, None] * D + dims[None, :], mask=here[:, None] < n, other=0.0)
        scores = tl.where(here[None, :] < n, tl.dot(x, tl.trans(y)), float("-inf"))
        if CAUSAL:
            scores = tl.where(rows[:, None] >= here[None, :], scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp(scores - new_top[:, None])
        alpha = tl.exp(top - new_top)
        z = tl.load(v + here[:, None] * D + dims[None, :], mask=here[:, None] < n, other=0.0)
        acc = tl.dot(p.to(z.dtype), z, acc * alpha[:, None])
        total = total * alpha + tl.sum(p, 1)
        top = new_top
    tl.store(out + rows[:, None] * D + dims[None, :], acc / total[:, None])


def expected(q, k, v, n, causal):
    q, k, v = (values.astype(np.float64) for values in (q, k[:n], v[:n]))
    scores = q @ k.T
    if causal:
        scores = np.where(np.arange(len(q))[:, None] >= np.arange(n)[None, :], scores, -np.inf)
    p = np.exp(scores - scores.max(1, keepdims=True))
    return p @ v / p.sum(1, keepdims=True)


@pytest.mark.parametrize(("bm", "bn", "causal", "loops"), [(64, 64, False, 1), (64, 64, True, 1), (64, 32, True, 2)])
def test_lengths(rng, way, bm, bn, causal, loops):
    rows = 2 * bm
    arrays = [aligned(rng.standard_normal((rows, D)).astype(np.float16)) for _ in range(3)]
    out = aligned(np.full((rows, D), np.nan, np.float32))
    kernel = compile_for("cuda:90", attention, *arrays, out, rows - 1, BM=bm, BN=bn, D=D, CAUSAL=causal, num_stages=3)
    assert generic_asm(kernel, "ttgir").count('"scf.for"') == loops
    for n in (1, bn + 1, rows - 1):
        out[:] = np.nan
        emulate_compiled(kernel, *arrays, out, n, grid=(2,))
        assert np.abs(out - expected(*arrays, n, causal)).max() < 2e-3
