"""Products of odd sizes, orders and precisions, of batches and vectors, with epilogues."""

import triton
import triton.language as tl


@triton.jit
def gemm(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    PRECISION: tl.constexpr,
    ACC_FP16: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    """Any strides, masks along K, rows and columns by remainders, programs in groups."""
    pid = tl.program_id(0)
    num_m = tl.cdiv(M, BLOCK_M)
    num_n = tl.cdiv(N, BLOCK_N)
    in_group = GROUP_M * num_n
    first_m = pid // in_group * GROUP_M
    size_m = min(num_m - first_m, GROUP_M)
    pid_m = first_m + (pid % in_group) % size_m
    pid_n = (pid % in_group) // size_m
    m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (m[:, None] * stride_am + k[None, :] * stride_ak)
    b_ptrs = b_ptr + (k[:, None] * stride_bk + n[None, :] * stride_bn)
    ACC: tl.constexpr = tl.float16 if ACC_FP16 else tl.float32
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    for step in range(tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=k[None, :] < K - step * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=k[:, None] < K - step * BLOCK_K, other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION, out_dtype=ACC)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    cm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.store(
        c_ptr + cm[:, None] * N + cn[None, :],
        acc.to(c_ptr.dtype.element_ty),
        mask=(cm[:, None] < M) & (cn[None, :] < N),
    )


@triton.jit
def nearest_centroid(
    x_ptr, c_ptr, norms_ptr, out_ptr, N, K, D: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    """K-means: of each row the centroid that is nearest, by a product and a running minimum."""
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    d = tl.arange(0, D)
    x = tl.load(x_ptr + n[:, None] * D + d[None, :], mask=(n < N)[:, None], other=0.0)
    best = tl.full([BLOCK_N], float("inf"), tl.float32)
    winner = tl.zeros([BLOCK_N], tl.int32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        c = tl.load(c_ptr + k[None, :] * D + d[:, None], mask=(k < K)[None, :], other=0.0)
        norm = tl.load(norms_ptr + k, mask=k < K, other=float("inf"))
        distance = norm[None, :] - 2 * tl.dot(x, c)
        value, place = tl.min(distance, axis=1, return_indices=True)
        winner = tl.where(value < best, start + place, winner)
        best = tl.minimum(value, best)
    tl.store(out_ptr + n, winner, mask=n < N)


@triton.jit
def syrk(x_ptr, out_ptr, M, K, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    """The lower triangle of X X^T; programs above it return, those below store both ways."""
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    if pid_n > pid_m:
        return
    m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = pid_n * BLOCK_M + tl.arange(0, BLOCK_M)
    k = tl.arange(0, BLOCK_K)
    acc = tl.zeros([BLOCK_M, BLOCK_M], tl.float32)
    for start in range(0, K, BLOCK_K):
        a = tl.load(
            x_ptr + m[:, None] * K + (start + k)[None, :], mask=(m < M)[:, None] & (start + k < K)[None, :], other=0.0
        )
        b = tl.load(
            x_ptr + n[:, None] * K + (start + k)[None, :], mask=(n < M)[:, None] & (start + k < K)[None, :], other=0.0
        )
        acc = tl.dot(a, b.T, acc)
    out = acc.to(out_ptr.dtype.element_ty)
    mask = (m < M)[:, None] & (n < M)[None, :]
    tl.store(out_ptr + m[:, None] * M + n[None, :], out, mask=mask)
    if pid_m != pid_n:
        tl.store(out_ptr + n[:, None] * M + m[None, :], out.T, mask=mask.T)


@triton.jit
def batched_gemv(w_ptr, x_ptr, out_ptr, N, K, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """w [batch, N, K] times x [batch, K], rows by sums."""
    batch = tl.program_id(1).to(tl.int64)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    acc = tl.zeros([BLOCK_N, BLOCK_K], tl.float32)
    for start in range(0, K, BLOCK_K):
        mask = (start + k) < K
        w = tl.load(
            w_ptr + (batch * N + n)[:, None] * K + (start + k)[None, :],
            mask=(n < N)[:, None] & mask[None, :],
            other=0.0,
        )
        x = tl.load(x_ptr + batch * K + start + k, mask=mask, other=0.0)
        acc += w.to(tl.float32) * x.to(tl.float32)[None, :]
    tl.store(out_ptr + batch * N + n, tl.sum(acc, axis=1).to(out_ptr.dtype.element_ty), mask=n < N)


@triton.jit
def vector_matrix(x_ptr, w_ptr, out_ptr, N, K, SHARE: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """x times w [K, N], whose rows are contiguous along N: shares of K are added by atomics."""
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    begin = tl.program_id(1) * SHARE
    acc = tl.zeros([BLOCK_N], tl.float32)
    for start in range(begin, begin + SHARE, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + k, mask=k < K, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + k[:, None] * N + n[None, :], mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
        acc += tl.sum(x[:, None] * w.to(tl.float32), axis=0)
    tl.atomic_add(out_ptr + n, acc, mask=n < N)


@triton.jit
def gemm_with_row_statistics(
    a_ptr, b_ptr, c_ptr, sums_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    """A product whose rows are summed and squared as well, by atomics; b [K, N]."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + m[:, None] * K + k[None, :]
    b_ptrs = b_ptr + k[:, None] * N + n[None, :]
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for _ in range(0, K, BLOCK_K):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N
    tl.atomic_add(sums_ptr + m * 2, tl.sum(acc, axis=1))
    tl.atomic_add(sums_ptr + m * 2 + 1, tl.sum(acc * acc, axis=1))
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty))


@triton.jit
def batched_dot_3d(a_ptr, b_ptr, out_ptr, B: tl.constexpr, N: tl.constexpr):
    """Several small products by one dot of three dimensions."""
    batch = tl.program_id(0) * B + tl.arange(0, B)
    i = tl.arange(0, N)
    offsets = batch[:, None, None] * N * N + i[None, :, None] * N + i[None, None, :]
    out = tl.dot(tl.load(a_ptr + offsets), tl.load(b_ptr + offsets))
    tl.store(out_ptr + offsets, out.to(out_ptr.dtype.element_ty))


@triton.jit
def grouped_descriptors(
    x_ptr,
    w_ptr,
    out_ptr,
    starts_ptr,
    G,
    N,
    K,
    NUM_PROGRAMS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Rows of each group times weights of its own, w [G, N, K]; descriptors begin where the groups do."""
    tile = tl.program_id(0)
    done = 0
    num_columns = tl.cdiv(N, BLOCK_N)
    for g in range(G):
        start = tl.load(starts_ptr + g)
        m = tl.load(starts_ptr + g + 1) - start
        num_rows = tl.cdiv(m, BLOCK_M)
        if m > 0:
            x = tl.make_tensor_descriptor(x_ptr + start.to(tl.int64) * K, [m, K], [K, 1], [BLOCK_M, BLOCK_K])
            w = tl.make_tensor_descriptor(w_ptr + g.to(tl.int64) * N * K, [N, K], [K, 1], [BLOCK_N, BLOCK_K])
            out = tl.make_tensor_descriptor(out_ptr + start.to(tl.int64) * N, [m, N], [N, 1], [BLOCK_M, BLOCK_N])
            while tile >= done and tile < done + num_rows * num_columns:
                row = (tile - done) % num_rows * BLOCK_M
                column = (tile - done) // num_rows * BLOCK_N
                acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
                for k in range(0, K, BLOCK_K):
                    acc = tl.dot(x.load([row, k]), w.load([column, k]).T, acc)
                out.store([row, column], acc.to(tl.bfloat16))
                tile += NUM_PROGRAMS
        done += num_rows * num_columns
