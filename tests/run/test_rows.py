"""Loops over rows and blocks without dots: what is loaded ahead, summed up, added to memory, updated in place."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl

pytestmark = pytest.mark.each_gpu


@triton.jit
def norm_backward(dx_ptr, dy_ptr, dw_ptr, db_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, rows, n, ROWS, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    w = tl.load(w_ptr + i, mask=mask, other=0.0).to(tl.float32)
    dw, db = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    first = tl.program_id(0) * ROWS
    for row in range(first, min(first + ROWS, rows)):
        x = tl.load(x_ptr + row * n + i, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * n + i, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        xhat = (x - tl.load(mean_ptr + row)) * rstd
        wdy = w * dy
        c1, c2 = tl.sum(xhat * wdy, axis=0) / n, tl.sum(wdy, axis=0) / n
        tl.store(dx_ptr + row * n + i, (wdy - (xhat * c1 + c2)) * rstd, mask=mask)
        dw += dy * xhat
        db += dy
    tl.atomic_add(dw_ptr + i, dw, mask=mask)
    tl.atomic_add(db_ptr + i, db, mask=mask)


@pytest.mark.parametrize(("dtype", "n", "num_warps"), [("float32", 100, 2), ("float16", 128, 4), ("bfloat16", 64, 1)])
def test_sums_of_rows_that_end_in_atomics(draw, poisoned, check_norm, dtype, n, num_warps):
    rows, w = 7, draw(dtype, n)
    x, dy, dx = draw(dtype, (rows, n)), draw(dtype, (rows, n)), poisoned(dtype, (rows, n))
    wide_x, wide_dy = x.astype(np.float64), dy.astype(np.float64)
    mean, rstd = wide_x.mean(1).astype(np.float32), (1 / np.sqrt(wide_x.var(1) + 1e-5)).astype(np.float32)
    dw, db = np.zeros(n, np.float32), np.zeros(n, np.float32)
    args = dx, dy, dw, db, x, w, mean, rstd, rows, n, 3
    norm_backward[(3,)](*args, BLOCK=128, num_warps=num_warps)
    xhat = (wide_x - mean[:, None]) * rstd[:, None].astype(np.float64)
    wdy = w.astype(np.float64) * wide_dy
    by_row = [(a.sum(1, keepdims=True) / n) for a in (xhat * wdy, wdy)]
    check_norm(dx, (wdy - (xhat * by_row[0] + by_row[1])) * rstd[:, None], 1e-5 if dtype == "float32" else 1e-2)
    check_norm(dw, (wide_dy * xhat).sum(0), 1e-5)
    check_norm(db, wide_dy.sum(0), 1e-5)


@triton.jit
def blocks(p, q, out, n, step, BLOCK: tl.constexpr, CASE: tl.constexpr):
    """Each block depends on the one before."""
    i = tl.arange(0, BLOCK)
    total = 0.0
    for k in range(0, n, BLOCK):
        x = tl.load(p + k + i, mask=k + i < n, other=0.0)
        y = tl.load(q + k // BLOCK * step)
        total += tl.max(x) * y
        if CASE == "in place":
            tl.store(p + k + i, x + total, mask=k + i < n)
        if CASE == "next":
            tl.store(p + k + BLOCK + i, x + total, mask=k + BLOCK + i < n)
        if CASE == "last":
            tl.store(p + k + 1 + i, x + total, mask=k + 1 + i < n)
    tl.store(out, total)


@pytest.mark.share(2)
@pytest.mark.parametrize("case", ["none", "in place", "next", "last"])
@pytest.mark.parametrize("n", [0, 1, 64, 300])
def test_blocks_that_are_updated_while_others_are_loaded(draw, poisoned, case, n):
    block, step = 64, 3
    p, q = (draw("int8", size, -3, 3).astype(np.float32) for size in (320, 32))
    out = poisoned("float32", 1)
    expected, total = p.copy(), 0.0
    for number, k in enumerate(range(0, n, block)):
        x = np.where(k + np.arange(block) < n, expected[k : k + block], 0)
        total += x.max() * q[number * step]
        ahead = {"none": n, "in place": 0, "next": block, "last": 1}[case]
        end = min(k + ahead + block, n)
        if end > k + ahead:
            expected[k + ahead : end] = (x + total)[: end - k - ahead]
    blocks[(1,)](p, q, out, n, step, BLOCK=block, CASE=case, num_warps=2)
    np.testing.assert_array_equal(p, expected)
    assert out[0] == total


@triton.jit
def rotate(q_ptr, cos_ptr, rows_ptr, out_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Small tiles that every row needs, and numbers of rows that every column does."""
    i, r = tl.arange(0, BLOCK), tl.arange(0, ROWS)
    cos = tl.load(cos_ptr + i).to(tl.float32)
    row = tl.load(rows_ptr + r)
    q = tl.load(q_ptr + row[:, None] * BLOCK + i[None, :])
    tl.store(out_ptr + r[:, None] * BLOCK + i[None, :], q * cos[None, :] + tl.exp(cos - 1)[None, :])


@pytest.mark.parametrize(("rows", "block", "num_warps"), [(16, 64, 4), (4, 256, 2), (2, 8, 4)])
def test_small_tiles_for_all_rows(draw, poisoned, check_norm, rows, block, num_warps):
    q, cos, out = draw("float32", (20, block)), draw("float16", block), poisoned("float32", (rows, block))
    numbers = draw("int64", rows, 0, 19)
    rotate[(1,)](q, cos, numbers, out, ROWS=rows, BLOCK=block, num_warps=num_warps)
    wide = cos.astype(np.float64)
    check_norm(out, q[numbers] * wide + np.exp(wide - 1), 1e-5)


@triton.jit
def recurrence(before, after, n, stride, BLOCK: tl.constexpr):
    """A row is made of the one before; `before` and `after` may be one array."""
    i = tl.arange(0, BLOCK)
    for t in range(1, n):
        x = tl.load(before + (t - 1) * stride + i)
        tl.store(after + t * stride + i, 2 * x + 1)


def test_one_array_as_two_arguments(draw):
    states = draw("int32", (6, 64), -9, 9)
    expected = states.copy()
    for t in range(1, 6):
        expected[t] = 2 * expected[t - 1] + 1
    recurrence[(1,)](states, states, 6, 64, BLOCK=64)
    np.testing.assert_array_equal(states, expected)
