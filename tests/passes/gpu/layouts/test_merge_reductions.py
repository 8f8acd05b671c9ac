"""Reductions that do not depend on each other are one; everything else stays as it is, and so do the results."""

import numpy as np
import pytest
from backend.cuda.launching import aligned, emulate, instructions_with
from ir_text import generic_asm

import deuteron
import deuteron.language as tl


@deuteron.jit
def sums(x, y, out, N: tl.constexpr, CASE: tl.constexpr):
    i = tl.arange(0, N)
    v, w = tl.load(x + i), tl.load(y + i)
    a = tl.sum(v)
    scaled = a * 2.0
    if CASE == "dependent":
        w = w * scaled
    if CASE == "stored":
        tl.store(out + 3, scaled)
    if CASE == "branch" and scaled > 0:
        w += 1
    b = tl.max(w)
    if CASE == "three":
        index = tl.argmin(v + w, 0)
        tl.store(out + 2, index.to(tl.float32))
    tl.store(out, scaled)
    tl.store(out + 1, b)


CASES = {"plain": 1, "dependent": 2, "stored": 2, "branch": 2, "three": 1}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("num_warps", [1, 4])
def test_what_is_merged(rng, case, num_warps):
    x, y = (aligned(rng.integers(-50, 50, 256).astype(np.float32)) for _ in range(2))
    out = aligned(np.full(4, np.nan, np.float32))
    kernel = emulate(sums, x, y, out, N=256, CASE=case, num_warps=num_warps)
    scaled = 2 * x.sum()
    w = y * scaled if case == "dependent" else y + (case == "branch" and scaled > 0)
    np.testing.assert_array_equal(out[:2], [scaled, w.max()])
    if case == "three":
        assert out[2] == np.argmin(x + y)
    reductions = generic_asm(kernel, "ttgir").count('"tt.reduce"')
    expected = CASES[case] if num_warps > 1 else 3 if case == "three" else 2
    assert reductions == expected
    assert len(instructions_with(kernel, "bar.sync")) == (expected if num_warps > 1 else 0)


@deuteron.jit
def of_other_shapes(x, rows, columns, N: tl.constexpr):
    """Sums along two axes are of other warps."""
    i = tl.arange(0, N)
    v = tl.load(x + i[:, None] * N + i[None, :])
    tl.store(rows + i, tl.sum(v, 1))
    tl.store(columns + i, tl.sum(v, 0))
    tl.store(rows + N + i, tl.max(v, 1))


def test_along_two_axes(rng):
    x = aligned(rng.integers(-50, 50, (32, 32)).astype(np.float32))
    rows, columns = aligned(np.full((2, 32), np.nan, np.float32)), aligned(np.full(32, np.nan, np.float32))
    emulate(of_other_shapes, x, rows, columns, N=32, num_warps=8)
    np.testing.assert_array_equal(rows, [x.sum(1), x.max(1)])
    np.testing.assert_array_equal(columns, x.sum(0))
