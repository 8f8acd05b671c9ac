"""Loops that only accumulate what they load go four iterations at a time on CPUs, others stay, and all do the same."""

import numpy as np
import pytest
from backend.cuda.launching import compile_for

import deuteron
import deuteron.language as tl

UNROLLED = ["sums", "rows", "maxima", "pointers", "two sums"]
KEPT = ["asked for", "divides", "exponentials", "reduces", "stores"]


@deuteron.jit
def kernel(x, o, n, m, stride, KIND: tl.constexpr, ROWS: tl.constexpr, N: tl.constexpr):
    c = tl.program_id(0) * N + tl.arange(0, N)
    mask = c < m
    total = tl.zeros((N,), tl.float32)
    tile, squares = tl.zeros((ROWS, N), tl.float32), tl.zeros((ROWS, N), tl.float32)
    rows = tl.arange(0, ROWS)
    at = x + rows[:, None] * stride + c[None, :]
    if KIND == "sums":
        for r in range(n):
            total += tl.load(x + r * stride + c, mask=mask, other=0.0)
    elif KIND == "rows":
        for r in range(0, n, ROWS):
            inside = (r + rows < n)[:, None] & mask[None, :]
            tile += tl.load(x + (r + rows)[:, None] * stride + c[None, :], mask=inside, other=0.0)
    elif KIND == "maxima":
        for r in range(n):
            total = tl.maximum(total, tl.load(x + r * stride + c, mask=mask, other=0.0))
    elif KIND == "pointers":
        for r in range(tl.cdiv(n, ROWS)):
            tile += tl.load(at, mask=(r * ROWS + rows < n)[:, None] & mask[None, :], other=0.0)
            at += ROWS * stride
    elif KIND == "two sums":
        for r in range(0, n, ROWS):
            inside = (r + rows < n)[:, None] & mask[None, :]
            v = tl.load(x + (r + rows)[:, None] * stride + c[None, :], mask=inside, other=0.0)
            tile += v
            squares += v * v
    elif KIND == "asked for":
        for r in tl.range(n, loop_unroll_factor=1):
            total += tl.load(x + r * stride + c, mask=mask, other=0.0)
    elif KIND == "divides":
        for r in range(n):
            total += tl.load(x + r * stride + c, mask=mask, other=0.0) / 3
    elif KIND == "exponentials":
        for r in range(n):
            total += tl.exp(tl.load(x + r * stride + c, mask=mask, other=0.0))
    elif KIND == "reduces":
        for r in range(n):
            total += tl.sum(tl.load(x + r * stride + c, mask=mask, other=0.0))
    else:
        for r in range(n):
            total += tl.load(x + r * stride + c, mask=mask, other=0.0)
            tl.store(o + c, total, mask=mask)
    tl.store(o + c, total + tl.sum(tile, 0) + tl.sum(squares, 0), mask=mask)


def _expected(kind: str, x: np.ndarray, n: int) -> np.ndarray:
    rows = x[:n].astype(np.float64)
    if kind == "maxima":
        return np.fmax.reduce(rows, 0, initial=0)
    if kind == "two sums":
        return rows.sum(0) + (rows * rows).sum(0)
    return rows.sum(0)


@pytest.mark.parametrize("stride", [160, -160, 0, 3])
@pytest.mark.parametrize("kind", UNROLLED)
def test_each_row_counts_once(kind, stride):
    x = np.random.default_rng(5).standard_normal(160 * 80, dtype=np.float32)
    start = 160 * 40
    x[start : start + 4] = np.inf, -np.inf, -0.0, 1e-40
    for n in (0, 1, 3, 4, 5, 17, 33):
        for m in (10, 64, 71):
            o = np.full(100, 77, np.float32)
            kernel[(deuteron.cdiv(m, 32),)](x[start:], o, n, m, stride, kind, 4, 32)
            seen = np.lib.stride_tricks.as_strided(x[start:], (max(n, 1), m), (4 * stride, 4))
            with np.errstate(invalid="ignore"):
                np.testing.assert_allclose(o[:m], _expected(kind, seen, n), rtol=1e-5, atol=1e-5, err_msg=f"{n} {m}")
            assert (o[m:] == 77).all()


@pytest.mark.parametrize("kind", [*UNROLLED, *KEPT])
def test_which_loops_go_four_iterations_at_a_time(kind):
    array = np.zeros(1 << 12, np.float32)
    text = compile_for("cpu", kernel, array, array, 5, 64, 64, KIND=kind, ROWS=4, N=32).asm["ttir"]
    assert text.count("scf.for") == (2 if kind in UNROLLED else 1)
