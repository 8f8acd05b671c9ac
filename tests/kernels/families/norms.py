"""Normalisation of rows, forward and backward."""

from __future__ import annotations

import deuteron as triton
import deuteron.language as tl
import numpy as np
from tests.kernels.case import Case, Launch, case, normal, poisoned, wide


@triton.jit
def rms_norm_forward_kernel(
    y_ptr, y_stride, x_ptr, x_stride, w_ptr, rstd_ptr, n, eps, offset, BLOCK: tl.constexpr, CAST_FIRST: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    x_ptr += row * x_stride
    x = tl.load(x_ptr + columns, mask=mask, other=0)
    dtype = x.dtype
    x = x.to(tl.float32)
    w = tl.load(w_ptr + columns, mask=mask, other=0)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n + eps)
    tl.store(rstd_ptr + row, rstd)
    x = x * rstd
    if CAST_FIRST:
        x = x.to(dtype)
    tl.store(y_ptr + row * y_stride + columns, x * (offset + w), mask=mask)


@triton.jit
def rms_norm_backward_kernel(
    dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr, dw_ptr, n_rows, n, rows_per_program: tl.constexpr, BLOCK: tl.constexpr
):
    """Each program has some rows and a row of partial sums of the gradient of the weight."""
    program = tl.program_id(0)
    begin = program * rows_per_program
    end = min(begin + rows_per_program, n_rows)
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    w = tl.load(w_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(begin, end):
        dy = tl.load(dy_ptr + row * n + columns, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + row * n + columns, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        m = dy * w
        dx = rstd * m - rstd * rstd * rstd / n * tl.sum(m * x, axis=0) * x
        dw += dy * (x * rstd)
        tl.store(dx_ptr + row * n + columns, dx.to(dx_ptr.dtype.element_ty), mask=mask)
    tl.store(dw_ptr + program * n + columns, dw, mask=mask)


@triton.jit
def layer_norm_forward_kernel(
    x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride, n, eps, BLOCK: tl.constexpr, HAS_BIAS: tl.constexpr
):
    """Rows longer than a tile: three loops over it."""
    row = tl.program_id(0)
    x_ptr += row * stride
    y_ptr += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / n
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)
        x = tl.where(columns < n, x - mean, 0.0)
        squares += x * x
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / n + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        mask = columns < n
        w = tl.load(w_ptr + columns, mask=mask)
        y = (tl.load(x_ptr + columns, mask=mask, other=0.0).to(tl.float32) - mean) * rstd * w
        if HAS_BIAS:
            y += tl.load(b_ptr + columns, mask=mask)
        tl.store(y_ptr + columns, y, mask=mask)


@triton.jit
def layer_norm_backward_kernel(
    dx_ptr,
    dy_ptr,
    dw_ptr,
    db_ptr,
    x_ptr,
    w_ptr,
    mean_ptr,
    rstd_ptr,
    lock_ptr,
    stride,
    n,
    GROUP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Programs of a group take turns, by a lock, at adding to one row of partial sums; the first of them stores it."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    x_ptr += row * stride
    dy_ptr += row * stride
    dx_ptr += row * stride
    group = row % GROUP
    lock_ptr += group
    count_ptr = lock_ptr + GROUP
    dw_ptr += group * n + columns
    db_ptr += group * n + columns
    x = tl.load(x_ptr + columns, mask=mask, other=0).to(tl.float32)
    dy = tl.load(dy_ptr + columns, mask=mask, other=0).to(tl.float32)
    w = tl.load(w_ptr + columns, mask=mask).to(tl.float32)
    mean = tl.load(mean_ptr + row)
    rstd = tl.load(rstd_ptr + row)
    xhat = tl.where(mask, (x - mean) * rstd, 0.0)
    wdy = tl.where(mask, w * dy, 0.0)
    c1 = tl.sum(xhat * wdy, axis=0) / n
    c2 = tl.sum(wdy, axis=0) / n
    tl.store(dx_ptr + columns, (wdy - (xhat * c1 + c2)) * rstd, mask=mask)
    dw = dy * xhat
    db = dy
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    count = tl.load(count_ptr)
    if count == 0:
        tl.atomic_xchg(count_ptr, 1)
    else:
        dw += tl.load(dw_ptr, mask=mask)
        db += tl.load(db_ptr, mask=mask)
    tl.store(dw_ptr, dw, mask=mask)
    tl.store(db_ptr, db, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def sum_of_groups_kernel(dw_ptr, db_ptr, final_dw_ptr, final_db_ptr, m, n, BM: tl.constexpr, BN: tl.constexpr):
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    dw = tl.zeros((BM, BN), dtype=tl.float32)
    db = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(0, m, BM):
        rows = i + tl.arange(0, BM)
        mask = (rows[:, None] < m) & (columns[None, :] < n)
        offsets = rows[:, None] * n + columns[None, :]
        dw += tl.load(dw_ptr + offsets, mask=mask, other=0.0)
        db += tl.load(db_ptr + offsets, mask=mask, other=0.0)
    tl.store(final_dw_ptr + columns, tl.sum(dw, axis=0), mask=columns < n)
    tl.store(final_db_ptr + columns, tl.sum(db, axis=0), mask=columns < n)


@triton.jit
def welford_combine(mean_a, m2_a, weight_a, mean_b, m2_b, weight_b):
    delta = mean_b - mean_a
    weight = weight_a + weight_b
    ratio = tl.where(weight == 0.0, 0.0, weight_b / weight)
    return mean_a + delta * ratio, m2_a + m2_b + delta * delta * weight_a * ratio, weight


@triton.jit
def group_norm_kernel(x_ptr, w_ptr, b_ptr, y_ptr, n, channels, pixels, eps, BLOCK: tl.constexpr):
    """A group of channels for each program, its moments combined pair by pair."""
    group = tl.program_id(1)
    first = (tl.program_id(0) * tl.num_programs(1) + group) * n
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + first + offsets, mask=mask, other=0.0).to(tl.float32)
    weight = mask.to(tl.float32)
    mean, m2, count = tl.reduce((x, tl.zeros_like(x), weight), 0, welford_combine)
    rstd = tl.math.rsqrt(m2 / count + eps)
    channel = group * channels + offsets // pixels
    y = (x - mean) * rstd * tl.load(w_ptr + channel, mask=mask) + tl.load(b_ptr + channel, mask=mask)
    tl.store(y_ptr + first + offsets, y, mask=mask)


@triton.jit
def l2_norm_kernel(x_ptr, y_ptr, rows, eps, D: tl.constexpr, BT: tl.constexpr):
    """Several short rows for each program."""
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    d = tl.arange(0, D)
    at = t[:, None] * D + d[None, :]
    x = tl.load(x_ptr + at, mask=(t < rows)[:, None], other=0.0).to(tl.float32)
    norm = tl.sqrt(tl.sum(x * x, 1) + eps)
    tl.store(y_ptr + at, (x / norm[:, None]).to(y_ptr.dtype.element_ty), mask=(t < rows)[:, None])


def rms(x: np.ndarray, eps: float) -> np.ndarray:
    return np.sqrt((x * x).mean(-1, keepdims=True) + eps)


@case
def rms_norm_forward(rng: np.random.Generator) -> Case:
    x, w = normal(rng, (6, 200), "float16"), normal(rng, 200, "float16")
    y, rstd = poisoned((6, 200), "float16"), poisoned(6)
    options = {"BLOCK": 256, "CAST_FIRST": True}
    launch = Launch(rms_norm_forward_kernel, (6,), (y, 200, x, 200, w, rstd, 200, 1e-6, 1.0), options)
    expected = wide(x) / rms(wide(x), 1e-6) * (1 + wide(w))
    return Case([launch], [(y, expected, 3e-3), (rstd, 1 / rms(wide(x), 1e-6)[:, 0], 1e-5)])


@case
def rms_norm_backward(rng: np.random.Generator) -> Case:
    dy, x, w = normal(rng, (7, 100)), normal(rng, (7, 100)), normal(rng, 100)
    dx, partial, total = poisoned((7, 100)), poisoned((3, 100)), poisoned(100)
    r = 1 / rms(wide(x), 1e-6)
    m = wide(dy) * wide(w)
    expected = r * m - r**3 / 100 * (m * wide(x)).sum(-1, keepdims=True) * wide(x)
    args = dy, x, w, r[:, 0].astype(np.float32), dx, partial, 7, 100
    launch = Launch(rms_norm_backward_kernel, (3,), args, {"rows_per_program": 3, "BLOCK": 128})
    add = lambda: np.copyto(total, partial.sum(0))  # noqa: E731
    return Case([launch, add], [(dx, expected, 1e-5), (total, (wide(dy) * wide(x) * r).sum(0), 1e-5)])


@case
def layer_norm_forward(rng: np.random.Generator) -> Case:
    x, w, b = normal(rng, (4, 150)), normal(rng, 150), normal(rng, 150)
    y, mean, rstd = poisoned((4, 150)), poisoned(4), poisoned(4)
    args = x, y, w, b, mean, rstd, 150, 150, 1e-5
    mu, var = wide(x).mean(1), wide(x).var(1)
    expected = (wide(x) - mu[:, None]) / np.sqrt(var + 1e-5)[:, None] * wide(w) + wide(b)
    launch = Launch(layer_norm_forward_kernel, (4,), args, {"BLOCK": 64, "HAS_BIAS": True})
    return Case([launch], [(y, expected, 1e-5), (mean, mu, 1e-5), (rstd, 1 / np.sqrt(var + 1e-5), 1e-5)])


@case
def layer_norm_backward(rng: np.random.Generator) -> Case:
    rows, n, group = 5, 100, 2
    x, dy, w, dx = normal(rng, (rows, n)), normal(rng, (rows, n)), normal(rng, n), poisoned((rows, n))
    mean, rstd = x.mean(1), (1 / np.sqrt(wide(x).var(1) + 1e-5)).astype(np.float32)
    dw, db, final_dw, final_db = poisoned((group, n)), poisoned((group, n)), poisoned(n), poisoned(n)
    locks = np.zeros(2 * group, np.int32)
    args = dx, dy, dw, db, x, w, mean, rstd, locks, n, n
    xhat = (wide(x) - wide(x).mean(1, keepdims=True)) * wide(rstd)[:, None]
    wdy = wide(w) * wide(dy)
    expected = (wdy - xhat * (xhat * wdy).mean(1, keepdims=True) - wdy.mean(1, keepdims=True)) * wide(rstd)[:, None]
    launches = [
        Launch(layer_norm_backward_kernel, (rows,), args, {"GROUP": group, "BLOCK": 128}),
        Launch(sum_of_groups_kernel, (2,), (dw, db, final_dw, final_db, group, n), {"BM": 4, "BN": 64}),
    ]
    sums = (wide(dy) * xhat).sum(0), wide(dy).sum(0)
    return Case(launches, [(dx, expected, 1e-5), (final_dw, sums[0], 1e-5), (final_db, sums[1], 1e-5)])


@case
def group_norm(rng: np.random.Generator) -> Case:
    batch, groups, channels, pixels = 2, 3, 4, 9
    x = normal(rng, (batch, groups, channels, pixels)) + 3
    w, b, y = normal(rng, groups * channels), normal(rng, groups * channels), poisoned(x.shape)
    args = x, w, b, y, channels * pixels, channels, pixels, 1e-5
    mu, var = (getattr(wide(x), name)((2, 3), keepdims=True) for name in ("mean", "var"))
    shaped = (wide(v).reshape(1, groups, channels, 1) for v in (w, b))
    expected = (wide(x) - mu) / np.sqrt(var + 1e-5) * next(shaped) + next(shaped)
    launch = Launch(group_norm_kernel, (batch, groups), args, {"BLOCK": 64, "num_warps": 2})
    return Case([launch], [(y, expected, 1e-5)])


@case
def l2_norm(rng: np.random.Generator) -> Case:
    x, y = normal(rng, (37, 32), "bfloat16"), poisoned((37, 32), "bfloat16")
    launch = Launch(l2_norm_kernel, (3,), (x, y, 37, 1e-6), {"D": 32, "BT": 16})
    return Case([launch], [(y, wide(x) / np.sqrt((wide(x) ** 2).sum(1, keepdims=True) + 1e-6), 1e-2)])
