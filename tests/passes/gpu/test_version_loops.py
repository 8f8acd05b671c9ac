"""Loops of loads that run a few times stay as they are, beside the version that is written out and loads ahead."""

import re

import numpy as np
import pytest
from backend.cuda.launching import compile_for, emulate

import deuteron
import deuteron.language as tl


@deuteron.jit
def sums(x, o, n, rows, KIND: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    if KIND == "stores":
        for k in range(rows):
            y = tl.load(x + k * n + i)
            tl.store(o + N + k * n + i, y)
            total += y
    elif KIND == "hint":
        for k in tl.range(rows, num_stages=1):
            total += tl.load(x + k * n + i)
    elif KIND == "known":
        for k in range(200):
            total += tl.load(x + k * n + i)
    elif KIND == "reductions":
        for k in range(rows):
            total += tl.sum(tl.load(x + k * n + i))
    else:
        for k in range(rows):
            total += tl.load(x + k * n + i, mask=i < n, other=0.0)
    tl.store(o + i, total)


@pytest.mark.parametrize(
    ("kind", "size", "versions"),
    [
        ("loads", 512, 1),
        ("loads", 4096, 0),
        ("stores", 512, 1),
        ("hint", 512, 0),
        ("known", 512, 0),
        ("reductions", 512, 0),
    ],
)
def test_a_loop_that_is_written_out_has_a_version_for_few_iterations(kind, size, versions):
    """With 32 registers for what an iteration loads it is not."""
    x = np.zeros(1 << 10, np.float32)
    text = compile_for("cuda:90", sums, x, x, 100, 100, KIND=kind, N=size).asm["ttgir"]
    assert len(re.findall(r"scf\.if", text)) == versions


@pytest.mark.parametrize(("rows", "size"), [(0, 128), (1, 128), (2, 128), (3, 128), (12, 128), (0, 1024), (3, 1024)])
def test_versions_give_the_same_sums(rng, rows, size):
    x, out = rng.standard_normal((max(rows, 1), 100)).astype(np.float32), np.full(size, np.nan, np.float32)
    emulate(sums, x, out, 100, rows, KIND="loads", N=size, num_warps=1)
    np.testing.assert_allclose(out[:100], x[:rows].sum(axis=0), rtol=1e-5, atol=1e-5)
    assert not out[100:].any()
