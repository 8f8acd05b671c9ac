"""Products of packed operands: microscaled formats, weights of 4 bits, sparse blocks."""

import triton
import triton.language as tl


@triton.jit
def gemm_scaled(
    a_ptr,
    a_scale_ptr,
    b_ptr,
    b_scale_ptr,
    c_ptr,
    M,
    N,
    K,
    A_FORMAT: tl.constexpr,
    B_FORMAT: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Microscaled formats: a scale of 8 bits for each 32 along K; e2m1 has two in a byte."""
    A_PACK: tl.constexpr = 2 if A_FORMAT == "e2m1" else 1
    B_PACK: tl.constexpr = 2 if B_FORMAT == "e2m1" else 1
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ka = tl.arange(0, BLOCK_K // A_PACK)
    kb = tl.arange(0, BLOCK_K // B_PACK)
    ks = tl.arange(0, BLOCK_K // 32)
    a_ptrs = a_ptr + m[:, None] * (K // A_PACK) + ka[None, :]
    b_ptrs = b_ptr + n[None, :] * (K // B_PACK) + kb[:, None]
    a_scale_ptrs = a_scale_ptr + m[:, None] * (K // 32) + ks[None, :]
    b_scale_ptrs = b_scale_ptr + n[:, None] * (K // 32) + ks[None, :]
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for _ in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs)
        b = tl.load(b_ptrs)
        a_scale = tl.load(a_scale_ptrs)
        b_scale = tl.load(b_scale_ptrs)
        acc = tl.dot_scaled(a, a_scale, A_FORMAT, b, b_scale, B_FORMAT, acc)
        a_ptrs += BLOCK_K // A_PACK
        b_ptrs += BLOCK_K // B_PACK
        a_scale_ptrs += BLOCK_K // 32
        b_scale_ptrs += BLOCK_K // 32
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty))


@triton.jit
def block_sparse(a_ptr, b_ptr, c_ptr, starts_ptr, columns_ptr, N, K, BLOCK: tl.constexpr, BLOCK_N: tl.constexpr):
    """Blocks of A that are there, in rows of blocks, times B; each lies in memory as one piece."""
    row = tl.program_id(0)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    i = tl.arange(0, BLOCK)
    begin = tl.load(starts_ptr + row)
    end = tl.load(starts_ptr + row + 1)
    acc = tl.zeros([BLOCK, BLOCK_N], tl.float32)
    for block in range(begin, end):
        column = tl.load(columns_ptr + block)
        a = tl.load(a_ptr + block * BLOCK * BLOCK + i[:, None] * BLOCK + i[None, :])
        b = tl.load(b_ptr + (column * BLOCK + i)[:, None] * N + n[None, :], mask=(n < N)[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
    c_ptrs = c_ptr + (row * BLOCK + i)[:, None] * N + n[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(n < N)[None, :])


@triton.jit
def gptq_gemm(
    a_ptr,
    b_ptr,
    scales_ptr,
    zeros_ptr,
    c_ptr,
    M,
    N,
    K,
    GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Weights of four bits along K in words of 32, zeros of four bits along N, scales for groups of K."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + m[:, None] * K + k[None, :]
    b_ptrs = b_ptr + (k // 8)[:, None] * N + n[None, :]
    shifts = (k % 8) * 4
    zero_shifts = (n % 8) * 4
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, K, BLOCK_K):
        group = start // GROUP
        scales = tl.load(scales_ptr + group * N + n)
        zeros = tl.load(zeros_ptr + group * (N // 8) + n // 8)
        zeros = (zeros >> zero_shifts) & 0xF
        a = tl.load(a_ptrs, mask=(m < M)[:, None], other=0.0)
        b = tl.load(b_ptrs)
        b = (b >> shifts[:, None]) & 0xF
        w = (b - zeros[None, :]) * scales[None, :]
        acc += tl.dot(a, w.to(a.dtype))
        a_ptrs += BLOCK_K
        b_ptrs += (BLOCK_K // 8) * N
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty), mask=(m < M)[:, None])
