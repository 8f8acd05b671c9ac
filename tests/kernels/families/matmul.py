"""Matrix products: split and streamed along K, grouped, batched, persistent, of quantised weights, LoRA."""

from __future__ import annotations

import deuteron as triton
import deuteron.language as tl
import numpy as np
from tests.kernels.case import Case, Launch, case, dtype_of, normal, poisoned, silu, wide


@triton.jit
def split_k_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr, SPLIT_K: tl.constexpr,
):  # fmt: skip
    """Programs that share a tile of the result add their parts to it, which was zero."""
    pid, pid_k = tl.program_id(0), tl.program_id(1)
    columns_of_tiles = tl.cdiv(N, BN)
    rm = (pid // columns_of_tiles) * BM + tl.arange(0, BM)
    rn = (pid % columns_of_tiles) * BN + tl.arange(0, BN)
    rk = pid_k * BK + tl.arange(0, BK)
    a_ptrs = a_ptr + rm[:, None] * stride_am + rk[None, :] * stride_ak
    b_ptrs = b_ptr + rk[:, None] * stride_bk + rn[None, :] * stride_bn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK * SPLIT_K)):
        left = K - k * (BK * SPLIT_K)
        a = tl.load(a_ptrs, mask=(rm[:, None] < M) & (rk[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(rk[:, None] < left) & (rn[None, :] < N), other=0.0)
        acc += tl.dot(a, b)
        a_ptrs += BK * SPLIT_K * stride_ak
        b_ptrs += BK * SPLIT_K * stride_bk
    c_ptrs = c_ptr + rm[:, None] * N + rn[None, :]
    mask = (rm < M)[:, None] & (rn < N)[None, :]
    if SPLIT_K == 1:
        tl.store(c_ptrs, acc, mask=mask)
    else:
        tl.atomic_add(c_ptrs, acc, mask=mask, sem="relaxed")


@triton.jit
def mac_loop(a_ptr, b_ptr, c_ptr, M, N, K, tile, first, last, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tile // tl.cdiv(N, BN) * BM + tl.arange(0, BM)
    rn = tile % tl.cdiv(N, BN) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(first, last):
        rk = step * BK + tl.arange(0, BK)
        a = tl.load(a_ptr + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        b = tl.load(b_ptr + rk[:, None] * N + rn[None, :], mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    tl.atomic_add(c_ptr + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def stream_k_kernel(a_ptr, b_ptr, c_ptr, M, N, K, per_program, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """All steps of all tiles in one row, of which each program has as many: a tile may be shared by several."""
    steps = tl.cdiv(K, BK)
    total = tl.cdiv(M, BM) * tl.cdiv(N, BN) * steps
    start = tl.program_id(0) * per_program
    end = tl.minimum(start + per_program, total)
    while start < end:
        tile = start // steps
        stop = tl.minimum((tile + 1) * steps, end)
        mac_loop(a_ptr, b_ptr, c_ptr, M, N, K, tile, start - tile * steps, stop - tile * steps, BM, BN, BK)
        start = stop


@triton.jit
def grouped_gemm_kernel(
    a_ptr, b_ptr, c_ptr, at_ptr, sizes_ptr, n_groups, PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr,
):  # fmt: skip
    """Products of several sizes, one after the other in memory; programs go through the tiles of all."""
    tile = tl.program_id(0)
    end_of_last = 0
    for g in range(n_groups):
        m = tl.load(sizes_ptr + g * 3)
        n = tl.load(sizes_ptr + g * 3 + 1)
        k = tl.load(sizes_ptr + g * 3 + 2)
        tiles_n = tl.cdiv(n, BN)
        tiles = tl.cdiv(m, BM) * tiles_n
        while tile >= end_of_last and tile < end_of_last + tiles:
            a = a_ptr + tl.load(at_ptr + g * 3)
            b = b_ptr + tl.load(at_ptr + g * 3 + 1)
            c = c_ptr + tl.load(at_ptr + g * 3 + 2)
            here = tile - end_of_last
            rm = here // tiles_n * BM + tl.arange(0, BM)
            rn = here % tiles_n * BN + tl.arange(0, BN)
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            for kk in range(0, k, BK):
                rk = kk + tl.arange(0, BK)
                x = tl.load(a + rm[:, None] * k + rk[None, :], mask=(rm[:, None] < m) & (rk[None, :] < k), other=0.0)
                y = tl.load(b + rk[:, None] * n + rn[None, :], mask=(rk[:, None] < k) & (rn[None, :] < n), other=0.0)
                acc += tl.dot(x, y)
            at = rm[:, None] * n + rn[None, :]
            tl.store(c + at, acc.to(tl.float16), mask=(rm[:, None] < m) & (rn[None, :] < n))
            tile += PROGRAMS
        end_of_last = end_of_last + tiles


@triton.jit
def batched_matmul_kernel(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACT: tl.constexpr
):
    batch = tl.program_id(2)
    pid_m, pid_n = tl.swizzle2d(tl.program_id(0), tl.program_id(1), tl.num_programs(0), tl.num_programs(1), 2)
    a = tl.make_block_ptr(a_ptr + batch * M * K, (M, K), (K, 1), (pid_m * BM, 0), (BM, BK), (1, 0))
    b = tl.make_block_ptr(b_ptr + batch * K * N, (K, N), (N, 1), (0, pid_n * BN), (BK, BN), (1, 0))
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(a, boundary_check=(0, 1)), tl.load(b, boundary_check=(0, 1)), acc)
        a = tl.advance(a, [0, BK])
        b = tl.advance(b, [BK, 0])
    rn = pid_n * BN + tl.arange(0, BN)
    acc += tl.load(bias_ptr + rn, mask=rn < N, other=0.0)[None, :]
    if ACT == "silu":
        acc = acc * tl.sigmoid(acc)
    elif ACT == "relu":
        acc = tl.where(acc > 0, acc, 0.0)
    c = tl.make_block_ptr(c_ptr + batch * M * N, (M, N), (N, 1), (pid_m * BM, pid_n * BN), (BM, BN), (1, 0))
    tl.store(c, acc.to(c_ptr.dtype.element_ty), boundary_check=(0, 1))


@triton.jit
def persistent_matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    PROGRAMS: tl.constexpr,
):  # fmt: skip
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, PROGRAMS, flatten=True):
        in_group = GROUP * tiles_n
        first_m = tile // in_group * GROUP
        height = min(tiles_m - first_m, GROUP)
        pid_m = first_m + tile % height
        pid_n = tile % in_group // height
        rm = pid_m * BM + tl.arange(0, BM)
        rn = pid_n * BN + tl.arange(0, BN)
        am = tl.max_contiguous(tl.multiple_of(tl.where(rm < M, rm, 0), BM), BM)
        bn = tl.max_contiguous(tl.multiple_of(tl.where(rn < N, rn, 0), BN), BN)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            rk = k * BK + tl.arange(0, BK)
            a = tl.load(a_ptr + am[:, None] * K + rk[None, :], mask=rk[None, :] < K - 0, other=0.0)
            b = tl.load(b_ptr + rk[:, None] * N + bn[None, :], mask=rk[:, None] < K, other=0.0)
            acc = tl.dot(a, b, acc)
        mask = (rm[:, None] < M) & (rn[None, :] < N)
        tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def int8_weight_kernel(a_ptr, b_ptr, scale_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """fp16 activations, int8 weights [N, K] with a scale for each row."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        a = tl.load(a_ptr + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        b = tl.load(b_ptr + rn[None, :] * K + rk[:, None], mask=(rn[None, :] < N) & (rk[:, None] < K), other=0)
        acc += tl.dot(a, b.to(a.dtype))
    scale = tl.load(scale_ptr + rn, mask=rn < N, other=0.0)
    out = (acc * scale[None, :]).to(c_ptr.dtype.element_ty)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], out, mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def int4_weight_kernel(
    a_ptr, q_ptr, scale_ptr, zero_ptr, c_ptr, M, N, K, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr,
):  # fmt: skip
    """Eight weights in a word [K / 8, N]; scales [K / GROUP, N], and zeros packed like the weights, along N."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    shift = (tl.arange(0, BK) % 8) * 4
    zero_shift = (rn % 8) * 4
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        a = tl.load(a_ptr + rm[:, None] * K + rk[None, :], mask=rm[:, None] < M, other=0.0)
        q = tl.load(q_ptr + (rk // 8)[:, None] * N + rn[None, :])
        of_group = k // GROUP
        scale = tl.load(scale_ptr + of_group * N + rn)
        zero = (tl.load(zero_ptr + of_group * (N // 8) + rn // 8) >> zero_shift) & 0xF
        b = ((q >> shift[:, None]) & 0xF) - zero[None, :]
        acc += tl.dot(a, (b * scale[None, :]).to(a.dtype))
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(c_ptr.dtype.element_ty), mask=rm[:, None] < M)


@triton.jit
def block_scaled_fp8_kernel(
    a_ptr, b_ptr, as_ptr, bs_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """A scale for each BK of a row of a, and for each BN x BK of b [N, K]: sums of each step are scaled."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    steps = tl.cdiv(K, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(steps):
        rk = i * BK + tl.arange(0, BK)
        a = tl.load(a_ptr + rm[:, None] * K + rk[None, :], mask=rm[:, None] < M, other=0.0)
        b = tl.load(b_ptr + rn[None, :] * K + rk[:, None], mask=rn[None, :] < N, other=0.0)
        a_s = tl.load(as_ptr + rm * steps + i, mask=rm < M, other=0.0)
        b_s = tl.load(bs_ptr + tl.program_id(1) * steps + i)
        acc += tl.dot(a, b) * a_s[:, None] * b_s
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def lora_shrink_kernel(
    x_ptr, a_ptr, which_ptr, out_ptr, K, scale, RANK: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr
):
    """A token for each program, with the adapter that it asks for: x [K] times a [RANK, K]."""
    token, split = tl.program_id(0), tl.program_id(1)
    which = tl.load(which_ptr + token)
    if which < 0:
        return
    ranks = tl.arange(0, RANK)
    acc = tl.zeros((RANK,), dtype=tl.float32)
    for k in range(split * BK, K, BK * SPLIT):
        rk = k + tl.arange(0, BK)
        x = tl.load(x_ptr + token * K + rk, mask=rk < K, other=0.0).to(tl.float32)
        at = (which * RANK + ranks)[:, None] * K + rk[None, :]
        a = tl.load(a_ptr + at, mask=rk[None, :] < K, other=0.0).to(tl.float32)
        acc += tl.sum(a * x[None, :], 1)
    acc *= scale
    if SPLIT == 1:
        tl.store(out_ptr + token * RANK + ranks, acc)
    else:
        tl.atomic_add(out_ptr + token * RANK + ranks, acc)


@triton.jit
def lora_expand_kernel(x_ptr, b_ptr, which_ptr, out_ptr, N, RANK: tl.constexpr, BN: tl.constexpr, ADD: tl.constexpr):
    token, pid_n = tl.program_id(0), tl.program_id(1)
    which = tl.load(which_ptr + token)
    if which == -1:
        return
    rn, ranks = pid_n * BN + tl.arange(0, BN), tl.arange(0, RANK)
    x = tl.load(x_ptr + token * RANK + ranks)
    b = tl.load(b_ptr + (which * N + rn)[:, None] * RANK + ranks[None, :], mask=rn[:, None] < N, other=0.0)
    out = tl.sum(b.to(tl.float32) * x[None, :], 1)
    if ADD:
        out += tl.load(out_ptr + token * N + rn, mask=rn < N).to(tl.float32)
    tl.store(out_ptr + token * N + rn, out.to(out_ptr.dtype.element_ty), mask=rn < N)


def matrices(rng, m, n, k, dtype="float16"):
    return normal(rng, (m, k), dtype), normal(rng, (k, n), dtype)


@case
def split_k_matmul(rng: np.random.Generator) -> Case:
    m, n, k = 20, 40, 150
    a, b = matrices(rng, m, n, k)
    c, single = np.zeros((m, n), np.float32), poisoned((m, n))
    options = {"BM": 16, "BN": 32, "BK": 16}
    args = lambda out: (a, b, out, m, n, k, k, 1, n, 1)  # noqa: E731
    launches = [
        Launch(split_k_kernel, (4, 3), args(c), options | {"SPLIT_K": 3}),
        Launch(split_k_kernel, (4, 1), args(single), options | {"SPLIT_K": 1}),
    ]
    return Case(launches, [(out, wide(a) @ wide(b), 1e-3) for out in (c, single)])


@case
def stream_k_matmul(rng: np.random.Generator) -> Case:
    m, n, k = 40, 50, 70
    a, b = matrices(rng, m, n, k)
    c = np.zeros((m, n), np.float32)
    launch = Launch(stream_k_kernel, (4,), (a, b, c, m, n, k, 8), {"BM": 16, "BN": 32, "BK": 16})
    return Case([launch], [(c, wide(a) @ wide(b), 1e-3)])


@case
def grouped_gemm(rng: np.random.Generator) -> Case:
    sizes = np.array([(20, 30, 40), (5, 64, 16), (33, 17, 50)], np.int32)
    m, n, k = sizes.T.astype(np.int64)
    ends = np.cumsum(np.stack([m * k, k * n, m * n], 1), 0)
    begins = np.concatenate([np.zeros((1, 3), np.int64), ends[:-1]])
    a, b, c = (normal(rng, size, "float16") for size in ends[-1])
    c, expected = poisoned(c.shape, "float16"), np.empty(c.shape)
    for g, (of_a, of_b, of_c) in enumerate(begins):
        x = wide(a[of_a : ends[g, 0]]).reshape(m[g], k[g])
        y = wide(b[of_b : ends[g, 1]]).reshape(k[g], n[g])
        expected[of_c : ends[g, 2]] = (x @ y).ravel()
    options = {"PROGRAMS": 4, "BM": 16, "BN": 32, "BK": 16}
    launch = Launch(grouped_gemm_kernel, (4,), (a, b, c, begins, sizes, 3), options)
    return Case([launch], [(c, expected, 2e-3)])


@case
def batched_matmul(rng: np.random.Generator) -> Case:
    batch, m, n, k = 2, 40, 24, 56
    a, b, bias = normal(rng, (batch, m, k), "float16"), normal(rng, (batch, k, n), "float16"), normal(rng, n)
    c = poisoned((batch, m, n), "float16")
    options = {"BM": 16, "BN": 16, "BK": 32, "ACT": "silu"}
    launch = Launch(batched_matmul_kernel, (3, 2, batch), (a, b, bias, c, m, n, k), options)
    return Case([launch], [(c, silu(wide(a) @ wide(b) + wide(bias)), 3e-3)])


@case
def persistent_matmul(rng: np.random.Generator) -> Case:
    m, n, k = 100, 70, 64
    a, b = matrices(rng, m, n, k, "bfloat16")
    c = poisoned((m, n), "bfloat16")
    options = {"BM": 32, "BN": 32, "BK": 32, "GROUP": 2, "PROGRAMS": 5}
    return Case([Launch(persistent_matmul_kernel, (5,), (a, b, c, m, n, k), options)], [(c, wide(a) @ wide(b), 1e-2)])


@case
def int8_weight_matmul(rng: np.random.Generator) -> Case:
    m, n, k = 20, 40, 70
    a, b = normal(rng, (m, k), "float16"), rng.integers(-128, 128, (n, k)).astype(np.int8)
    scale, c = np.abs(normal(rng, n)) / 128, poisoned((m, n), "float16")
    options = {"BM": 16, "BN": 32, "BK": 32}
    launch = Launch(int8_weight_kernel, (2, 2), (a, b, scale, c, m, n, k), options)
    return Case([launch], [(c, wide(a) @ wide(b).T * wide(scale), 2e-3)])


@case
def int4_weight_matmul(rng: np.random.Generator) -> Case:
    m, n, k, group = 20, 64, 128, 64
    a, c = normal(rng, (m, k), "float16"), poisoned((m, n), "float16")
    q, zeros = rng.integers(0, 16, (k, n)).astype(np.uint32), rng.integers(0, 16, (k // group, n)).astype(np.uint32)
    shifts = 4 * np.arange(8, dtype=np.uint32)
    words = np.bitwise_or.reduce(q.reshape(k // 8, 8, n) << shifts[:, None], 1).view(np.int32)
    packed_zeros = np.bitwise_or.reduce(zeros.reshape(k // group, n // 8, 8) << shifts, 2).view(np.int32)
    scale = (np.abs(normal(rng, (k // group, n))) / 8).astype(np.float16)
    weights = (wide(q) - np.repeat(wide(zeros), group, 0)) * np.repeat(wide(scale), group, 0)
    options = {"GROUP": group, "BM": 16, "BN": 32, "BK": 32}
    launch = Launch(int4_weight_kernel, (2, 2), (a, words, scale, packed_zeros, c, m, n, k), options)
    return Case([launch], [(c, wide(a) @ weights, 3e-3)])


@case
def block_scaled_fp8_matmul(rng: np.random.Generator) -> Case:
    m, n, k = 24, 64, 128
    a, b = (normal(rng, shape, scale=4).astype(dtype_of("float8_e4m3fn")) for shape in ((m, k), (n, k)))
    a_s, b_s, c = np.abs(normal(rng, (m, 2))), np.abs(normal(rng, (2, 2))), poisoned((m, n), "bfloat16")
    scaled_a = wide(a) * np.repeat(wide(a_s), 64, 1)
    scaled_b = wide(b) * np.repeat(np.repeat(wide(b_s), 32, 0), 64, 1)
    options = {"BM": 16, "BN": 32, "BK": 64}
    launch = Launch(block_scaled_fp8_kernel, (2, 2), (a, b, a_s, b_s, c, m, n, k), options)
    return Case([launch], [(c, scaled_a @ scaled_b.T, 1e-2)])


@case
def lora(rng: np.random.Generator) -> Case:
    tokens, k, n, rank, adapters = 5, 90, 50, 16, 3
    x, a = normal(rng, (tokens, k), "float16"), normal(rng, (adapters, rank, k), "float16")
    b, out = normal(rng, (adapters, n, rank), "float16"), normal(rng, (tokens, n), "float16")
    which = np.array([2, 0, -1, 1, 0], np.int32)
    inner = np.zeros((tokens, rank), np.float32)
    shrunk = np.einsum("tk,trk->tr", wide(x), wide(a)[which]) * 0.5 * (which >= 0)[:, None]
    expected = wide(out) + np.einsum("tr,tnr->tn", shrunk, wide(b)[which])
    launches = [
        Launch(lora_shrink_kernel, (tokens, 2), (x, a, which, inner, k, 0.5), {"RANK": rank, "BK": 32, "SPLIT": 2}),
        Launch(lora_expand_kernel, (tokens, 2), (inner, b, which, out, n), {"RANK": rank, "BN": 32, "ADD": True}),
    ]
    return Case(launches, [(inner, shrunk, 1e-4), (out, expected, 2e-3)])
