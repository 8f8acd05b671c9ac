"""Matrix products whose weights are stored in fewer bits, or whose results are scaled."""

import triton
import triton.language as tl


@triton.jit
def weight_only(
    a_ptr,
    w_ptr,
    scales_ptr,
    out_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """out[m, n] = sum of a[m, k] * w[n, k], times scales[n]; w in 8 bits becomes a's type."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    in_rows = (rows < M)[:, None]
    in_columns = columns < N
    a_ptrs = a_ptr + rows[:, None] * K + ks[None, :]
    w_ptrs = w_ptr + columns[None, :] * K + ks[:, None]
    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for _ in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=in_rows, other=0.0)
        w = tl.load(w_ptrs, mask=in_columns[None, :], other=0.0)
        acc += tl.dot(a, w.to(a.dtype))
        a_ptrs += BLOCK_K
        w_ptrs += BLOCK_K
    acc *= tl.load(scales_ptr + columns, mask=in_columns, other=0.0)[None, :]
    out_ptrs = out_ptr + rows[:, None] * N + columns[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=in_rows & in_columns[None, :])


@triton.jit
def weight_only_int4(
    a_ptr,
    w_ptr,
    scales_ptr,
    zeros_ptr,
    out_ptr,
    M,
    N,
    K,
    GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Words of 32 bits hold eight successive k of a column, w [K / 8, N]; scales and zeros [K / GROUP, N]."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    in_rows = (rows < M)[:, None]
    in_columns = (columns < N)[None, :]
    a_ptrs = a_ptr + rows[:, None] * K + ks[None, :]
    w_ptrs = w_ptr + (ks // 8)[:, None] * N + columns[None, :]
    shifts = (ks % 8 * 4)[:, None]
    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=in_rows, other=0.0)
        words = tl.load(w_ptrs, mask=in_columns, other=0)
        group = k // GROUP * N + columns[None, :]
        scale = tl.load(scales_ptr + group, mask=in_columns, other=0.0)
        zero = tl.load(zeros_ptr + group, mask=in_columns, other=0.0)
        w = ((words >> shifts) & 0xF).to(a.dtype) * scale - zero
        acc += tl.dot(a, w)
        a_ptrs += BLOCK_K
        w_ptrs += BLOCK_K // 8 * N
    out_ptrs = out_ptr + rows[:, None] * N + columns[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=in_rows & in_columns)


@triton.jit
def weight_only_int4_pairs(
    a_ptr,
    w_ptr,
    scales_ptr,
    out_ptr,
    M,
    N,
    K,
    GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Bytes hold two successive k of a row, w [N, K / 2], as signed numbers; scales [N, K / GROUP]."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    halves = tl.arange(0, BLOCK_K // 2)
    in_rows = (rows < M)[:, None]
    in_columns = (columns < N)[:, None]
    a_ptrs = a_ptr + rows[:, None] * K + ks[None, :]
    w_ptrs = w_ptr + columns[:, None] * (K // 2) + halves[None, :]
    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=in_rows, other=0.0)
        pairs = tl.load(w_ptrs, mask=in_columns, other=0)
        low = ((pairs << 4).to(tl.int8) >> 4).to(a.dtype)
        high = (pairs >> 4).to(a.dtype)
        w = tl.join(low, high).reshape(BLOCK_N, BLOCK_K)
        scale = tl.load(scales_ptr + columns * (K // GROUP) + k // GROUP, mask=columns < N, other=0.0)
        acc += tl.dot(a, w.T) * scale[None, :]
        a_ptrs += BLOCK_K
        w_ptrs += BLOCK_K // 2
    out_ptrs = out_ptr + rows[:, None] * N + columns[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=in_rows & (columns < N)[None, :])


@triton.jit
def matrix_vector(w_ptr, x_ptr, out_ptr, N, K, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """One row, without a dot: products are summed along k in the end."""
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    mask = (columns < N)[:, None]
    w_ptrs = w_ptr + columns.to(tl.int64)[:, None] * K + ks[None, :]
    acc = tl.zeros([BLOCK_N, BLOCK_K], dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        x = tl.load(x_ptr + k + ks).to(tl.float32)
        acc += tl.load(w_ptrs + k, mask=mask, other=0.0).to(tl.float32) * x[None, :]
    tl.store(out_ptr + columns, tl.sum(acc, axis=1).to(out_ptr.dtype.element_ty), mask=columns < N)


@triton.jit
def scaled(
    a_ptr,
    w_ptr,
    a_scales_ptr,
    w_scales_ptr,
    out_ptr,
    M,
    N,
    K,
    IS_INTEGER: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Both in 8 bits, w [N, K]; a scale for each row of a and each row of w."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    in_rows = rows < M
    in_columns = columns < N
    a_ptrs = a_ptr + rows[:, None] * K + ks[None, :]
    w_ptrs = w_ptr + columns[None, :] * K + ks[:, None]
    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.int32 if IS_INTEGER else tl.float32)
    for _ in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=in_rows[:, None], other=0.0)
        w = tl.load(w_ptrs, mask=in_columns[None, :], other=0.0)
        acc = tl.dot(a, w, acc)
        a_ptrs += BLOCK_K
        w_ptrs += BLOCK_K
    a_scales = tl.load(a_scales_ptr + rows, mask=in_rows, other=0.0)
    w_scales = tl.load(w_scales_ptr + columns, mask=in_columns, other=0.0)
    out = acc.to(tl.float32) * a_scales[:, None] * w_scales[None, :]
    out_ptrs = out_ptr + rows[:, None] * N + columns[None, :]
    tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty), mask=in_rows[:, None] & in_columns[None, :])


@triton.jit
def scaled_blocks(
    a_ptr,
    w_ptr,
    a_scales_ptr,
    w_scales_ptr,
    out_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """A scale for each row of a and BLOCK_K of k, and for each BLOCK_N x BLOCK_K of w: sums are scaled in the loop."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    in_rows = rows < M
    num_k = K // BLOCK_K
    a_ptrs = a_ptr + rows[:, None] * K + ks[None, :]
    w_ptrs = w_ptr + columns[None, :] * K + ks[:, None]
    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for k in range(num_k):
        a = tl.load(a_ptrs, mask=in_rows[:, None], other=0.0)
        w = tl.load(w_ptrs)
        a_scales = tl.load(a_scales_ptr + rows * num_k + k, mask=in_rows, other=0.0)
        w_scale = tl.load(w_scales_ptr + tl.program_id(1) * num_k + k)
        acc += tl.dot(a, w) * (a_scales * w_scale)[:, None]
        a_ptrs += BLOCK_K
        w_ptrs += BLOCK_K
    out_ptrs = out_ptr + rows[:, None] * N + columns[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=in_rows[:, None])
