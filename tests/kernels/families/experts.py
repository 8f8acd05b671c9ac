"""A mixture of experts: which expert each token goes to, tokens sorted by expert, their products, and the sum."""

from __future__ import annotations

import deuteron as triton
import deuteron.language as tl
import numpy as np
from tests.kernels.case import Case, Launch, case, normal, poisoned, softmax, wide


@triton.jit
def route_kernel(
    logits_ptr, weight_ptr, id_ptr, E: tl.constexpr, BLOCK_E: tl.constexpr, K: tl.constexpr, NORMALIZE: tl.constexpr
):
    """The K experts of a token, one after the other: the largest, then without it."""
    token = tl.program_id(0)
    experts = tl.arange(0, BLOCK_E)
    logits = tl.load(logits_ptr + token * E + experts, mask=experts < E, other=float("-inf")).to(tl.float32)
    p = tl.softmax(logits)
    total = 0.0
    for i in tl.static_range(K):
        weight, chosen = tl.max(p, axis=0, return_indices=True)
        tl.store(weight_ptr + token * K + i, weight)
        tl.store(id_ptr + token * K + i, chosen)
        total += weight
        p = tl.where(experts == chosen, -1.0, p)
    if NORMALIZE:
        ks = tl.arange(0, K)
        tl.debug_barrier()
        weights = tl.load(weight_ptr + token * K + ks)
        tl.debug_barrier()
        tl.store(weight_ptr + token * K + ks, weights / total)


@triton.jit
def count_experts_kernel(id_ptr, count_ptr, n, E: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ids = tl.load(id_ptr + offsets, mask=offsets < n, other=0)
    counts = tl.histogram(ids, E, mask=offsets < n)
    tl.atomic_add(count_ptr + tl.arange(0, E), counts)


@triton.jit
def sort_by_expert_kernel(
    id_ptr, count_ptr, next_ptr, sorted_ptr, tile_expert_ptr, n, E: tl.constexpr, BM: tl.constexpr
):
    """Places of tokens, tiles of one expert each: a token takes the next free place of its expert."""
    offset = tl.program_id(0)
    experts = tl.arange(0, E)
    padded = tl.cdiv(tl.load(count_ptr + experts), BM) * BM
    ends = tl.cumsum(padded, 0)
    if offset < n:
        expert = tl.load(id_ptr + offset)
        begin = tl.sum(tl.where(experts == expert, ends - padded, 0), 0)
        place = begin + tl.atomic_add(next_ptr + expert, 1)
        tl.store(sorted_ptr + place, offset)
        tl.store(tile_expert_ptr + place // BM, expert)


@triton.jit
def experts_gemm_kernel(
    x_ptr, w_ptr, out_ptr, weight_ptr, sorted_ptr, tile_expert_ptr, n, N, K: tl.constexpr, TOP_K: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Rows of x gathered by the sorted tokens, times the matrix of the tile's expert."""
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    expert = tl.load(tile_expert_ptr + pid_m)
    if expert == -1:
        return
    at = tl.load(sorted_ptr + pid_m * BM + tl.arange(0, BM))
    mask = at < n
    rn = (pid_n * BN + tl.arange(0, BN)) % N
    rk = tl.arange(0, BK)
    x_ptrs = x_ptr + (at // TOP_K)[:, None] * K + rk[None, :]
    w_ptrs = w_ptr + expert.to(tl.int64) * N * K + rn[None, :] * K + rk[:, None]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        x = tl.load(x_ptrs, mask=mask[:, None] & (rk[None, :] < K - k * BK), other=0.0)
        w = tl.load(w_ptrs, mask=rk[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(x, w, acc=acc)
        x_ptrs += BK
        w_ptrs += BK
    acc = acc * tl.load(weight_ptr + at, mask=mask, other=0)[:, None]
    columns = pid_n * BN + tl.arange(0, BN)
    tl.store(
        out_ptr + at[:, None] * N + columns[None, :], acc.to(out_ptr.dtype.element_ty),
        mask=mask[:, None] & (columns[None, :] < N),
    )  # fmt: skip


@triton.jit
def sum_experts_kernel(parts_ptr, out_ptr, N, TOP_K: tl.constexpr, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in tl.static_range(TOP_K):
        total += tl.load(parts_ptr + (token * TOP_K + i) * N + columns, mask=columns < N, other=0.0)
    tl.store(out_ptr + token * N + columns, total, mask=columns < N)


@case
def mixture_of_experts(rng: np.random.Generator) -> Case:
    tokens, e, k, hidden, n, bm = 21, 6, 2, 48, 40, 16
    logits, x = normal(rng, (tokens, e)), normal(rng, (tokens, hidden), "float16")
    w = normal(rng, (e, n, hidden), "float16")
    logits += np.float32(0.01) * logits.argsort(1).argsort(1)  # no two are the same but for rounding
    weights, ids = poisoned((tokens, k)), poisoned((tokens, k), "int32")
    count, taken = np.zeros(8, np.int32), np.zeros(8, np.int32)
    most = e + tokens * k // bm
    places, of_tile = np.full(most * bm, tokens * k, np.int32), np.full(most, -1, np.int32)
    parts, out = poisoned((tokens * k, n)), poisoned((tokens, n))
    p = softmax(wide(logits))
    chosen = np.argsort(-p, 1)[:, :k]
    share = np.take_along_axis(p, chosen, 1)
    share /= share.sum(1, keepdims=True)
    expected = np.einsum("tk,tknh,th->tn", share, wide(w)[chosen], wide(x))
    m = tokens * k
    gemm = {"K": hidden, "TOP_K": k, "BM": bm, "BN": 32, "BK": 32}
    launches = [
        Launch(route_kernel, (tokens,), (logits, weights, ids), {"E": e, "BLOCK_E": 8, "K": k, "NORMALIZE": True}),
        Launch(count_experts_kernel, (2,), (ids, count, m), {"E": 8, "BLOCK": 32, "num_warps": 1}),
        Launch(
            sort_by_expert_kernel, (m,), (ids, count, taken, places, of_tile, m), {"E": 8, "BM": bm, "num_warps": 1}
        ),
        Launch(experts_gemm_kernel, (most, 2), (x, w, parts, weights, places, of_tile, m, n), gemm),
        Launch(sum_experts_kernel, (tokens, 2), (parts, out, n), {"TOP_K": k, "BLOCK": 32}),
    ]
    return Case(launches, [(ids, chosen, 0), (weights, share, 1e-5), (out, expected, 2e-3)])
