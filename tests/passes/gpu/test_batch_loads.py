"""Loads that need nothing of each other come before what waits for the first of them, and the results stay the same."""

import re
from itertools import groupby

import numpy as np
import pytest
from backend.cuda.launching import compile_for, emulate
from ir_text import generic_asm

import deuteron
import deuteron.language as tl

X = np.zeros(1 << 14, np.float32)


@deuteron.jit
def windows(x, o, n, KIND: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    for k in tl.static_range(4):
        if KIND == "chained":
            total = tl.cos(tl.load(x + k * n + i + (total > 2.0).to(tl.int32)))
        elif KIND == "reduced":
            total += tl.sum(tl.load(x + k * n + i))
        else:
            total = tl.cos(total + tl.load(x + k * n + i, mask=i < n))
        if KIND == "stored":
            tl.store(o + N + k * N + i, total)
    tl.store(o + i, total)


@pytest.mark.parametrize(
    ("kind", "size", "num_warps", "n", "batch"),
    [
        ("plain", 1024, 4, 128, 4),
        ("plain", 4096, 4, 128, 2),  # of 32 registers each, of 95
        ("plain", 8192, 16, 128, 3),  # of 16 registers each, of 48
        ("plain", 1024, 4, 101, 1),  # a word at a time
        ("plain", 128, 4, 101, 4),
        ("chained", 1024, 4, 128, 1),
        ("stored", 1024, 4, 128, 1),
    ],
)
def test_what_is_computed_follows_a_batch(kind, size, num_warps, n, batch):
    """Windows of 3 by 3 taps, of which three were under way: 15.5 us became 14.4 on an H200."""
    text = generic_asm(compile_for("cuda:90", windows, X, X, n, KIND=kind, N=size, num_warps=num_warps), "ttgir")
    ops = re.findall(r'"(tt\.load|math\.cos|tt\.store)"', text)
    assert max(len(list(run)) for op, run in groupby(ops) if op == "tt.load") == batch


@pytest.mark.parametrize("kind", ["plain", "chained", "reduced", "stored"])
def test_the_same_results(rng, kind):
    x, o = rng.standard_normal(2048).astype(np.float32), np.zeros(256 * 5, np.float32)
    emulate(windows, x, o, 200, KIND=kind, N=256, num_warps=4)
    total, i = np.zeros(256), np.arange(256)
    for k in range(4):
        if kind == "chained":
            total = np.cos(x[k * 200 + i + (total > 2.0)].astype(float))
        elif kind == "reduced":
            total = total + x[k * 200 + i].astype(float).sum()
        else:
            total = np.cos(total + np.where(i < 200, x[k * 200 + i], 0))
    np.testing.assert_allclose(o[:256], total, rtol=1e-4, atol=1e-4)


@deuteron.jit
def mixed(x, y, bias, o, n, N: tl.constexpr, HAS_BIAS: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i, mask=i < n, other=0.0), tl.load(y + i, mask=i < n, other=0.0)
    if HAS_BIAS:
        a = tl.reshape(tl.reshape(a, (N // 128, 128)) + tl.load(bias + tl.arange(0, 128))[None, :], (N,))
    tl.store(o + i, tl.where(b > 0, a / b, a * b), mask=i < n)


@pytest.mark.parametrize(
    ("size", "n", "has_bias", "kept"),
    [
        (2048, 2000, False, 1),  # 32 registers
        (1024, 1000, False, 0),  # 16
        (8192, 8000, False, 0),  # 128, more than a batch has
        (2048, 2000, True, 0),  # a smaller tile besides
        (1024, 1001, False, 0),  # a word at a time
    ],
)
def test_what_follows_many_wide_loads_stays_behind_them(size, n, has_bias, kept):
    text = compile_for("cuda:90", mixed, X, X, X, X, n, N=size, HAS_BIAS=has_bias, num_warps=4).asm["ptx"]
    assert text.count("pmevent") == kept


@deuteron.jit
def after_a_sum(x, y, z, o, n, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.sum(tl.load(x + i, mask=i < n, other=0.0), axis=0)
    a, b = tl.load(y + i, mask=i < n, other=0.0), tl.load(z + i, mask=i < n, other=0.0)
    tl.store(o + i, total * a + b, mask=i < n)


def test_what_follows_later_loads_may_come_before_them():
    """Layer norm had 0.95 of its speed."""
    text = compile_for("cuda:90", after_a_sum, X, X, X, X, 2000, N=2048, num_warps=4).asm["ptx"]
    assert "pmevent" not in text
