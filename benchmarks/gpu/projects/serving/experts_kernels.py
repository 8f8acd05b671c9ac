"""Experts in fp8, adapters (LoRA), tokens counted by expert."""

import triton
import triton.language as tl


@triton.jit
def experts_fp8_blocks(
    a_ptr,
    b_ptr,
    c_ptr,
    a_scale_ptr,
    b_scale_ptr,
    weights_ptr,
    ids_ptr,
    experts_ptr,
    num_padded_ptr,
    N,
    K,
    num_ids,
    stride_am,
    stride_be,
    stride_bn,
    stride_cm,
    stride_asm,
    stride_bse,
    stride_bsn,
    TOP_K: tl.constexpr,
    GROUP_K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    """Gathered rows times the weights of their expert, both in fp8 with a scale for each 128 along K."""
    pid = tl.program_id(0)
    num_padded = tl.load(num_padded_ptr)
    num_m = tl.cdiv(num_padded, BLOCK_M)
    num_n = tl.cdiv(N, BLOCK_N)
    in_group = GROUP_M * num_n
    first_m = pid // in_group * GROUP_M
    size_m = min(num_m - first_m, GROUP_M)
    pid_m = first_m + (pid % in_group) % size_m
    pid_n = (pid % in_group) // size_m
    if pid_m * BLOCK_M >= num_padded:
        return
    ids = tl.load(ids_ptr + pid_m * BLOCK_M + tl.arange(0, BLOCK_M).to(tl.int64)).to(tl.int64)
    is_real = ids < num_ids
    expert = tl.load(experts_ptr + pid_m).to(tl.int64)
    columns = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N).to(tl.int64)) % N
    ks = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (ids[:, None] // TOP_K * stride_am + ks[None, :])
    b_ptrs = b_ptr + expert * stride_be + (ks[:, None] + columns[None, :] * stride_bn)
    a_scale_ptrs = a_scale_ptr + (ids // TOP_K) * stride_asm
    b_scale_ptrs = b_scale_ptr + expert * stride_bse + columns // 128 * stride_bsn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=is_real[:, None] & (ks[None, :] < K - k * BLOCK_K), other=0.0)
        b = tl.load(b_ptrs, mask=ks[:, None] < K - k * BLOCK_K, other=0.0)
        place = k * BLOCK_K // GROUP_K
        a_scale = tl.load(a_scale_ptrs + place, mask=is_real, other=0.0)
        b_scale = tl.load(b_scale_ptrs + place)
        acc += tl.dot(a, b) * a_scale[:, None] * b_scale[None, :]
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    weight = tl.load(weights_ptr + ids, mask=is_real, other=0)
    acc = acc * weight[:, None]
    out_columns = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + stride_cm * ids[:, None] + out_columns[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=is_real[:, None] & (out_columns[None, :] < N))


@triton.jit
def lora_shrink(
    x_ptr,
    w_ptr,
    out_ptr,
    tokens_ptr,
    counts_ptr,
    starts_ptr,
    N,
    K,
    scale,
    stride_x,
    stride_w_lora,
    stride_w_n,
    stride_out,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SPLIT_K: tl.constexpr,
):
    """x of the tokens of an adapter times its first matrix, whose rank is small: shares of K are added by atomics."""
    lora = tl.program_id(2)
    pid = tl.program_id(0)
    share = pid % SPLIT_K
    pid_m = pid // SPLIT_K
    count = tl.load(counts_ptr + lora)
    if pid_m * BLOCK_M >= count:
        return
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    tokens = tl.load(tokens_ptr + tl.load(starts_ptr + lora) + rows % count)
    columns = tl.arange(0, BLOCK_N)
    ks = share * BLOCK_K + tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + tokens[:, None] * stride_x + ks[None, :]
    w_ptrs = w_ptr + lora * stride_w_lora + (columns % N)[None, :] * stride_w_n + ks[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K * SPLIT_K)):
        left = K - k * (BLOCK_K * SPLIT_K)
        x = tl.load(x_ptrs, mask=ks[None, :] < left, other=0.0)
        w = tl.load(w_ptrs, mask=ks[:, None] < left, other=0.0)
        acc += tl.dot(x, w)
        x_ptrs += BLOCK_K * SPLIT_K
        w_ptrs += BLOCK_K * SPLIT_K
    acc *= scale
    out_ptrs = out_ptr + tokens[:, None] * stride_out + columns[None, :]
    mask = (rows[:, None] < count) & (columns[None, :] < N)
    if SPLIT_K == 1:
        tl.store(out_ptrs, acc, mask=mask)
    else:
        tl.atomic_add(out_ptrs, acc, mask=mask, sem="relaxed")


@triton.jit
def lora_expand(
    x_ptr,
    w_ptr,
    out_ptr,
    tokens_ptr,
    counts_ptr,
    starts_ptr,
    N,
    K,
    stride_x,
    stride_w_lora,
    stride_w_n,
    stride_out,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """The small product times the second matrix, added to what is there."""
    lora = tl.program_id(2)
    pid_m = tl.program_id(0)
    count = tl.load(counts_ptr + lora)
    if pid_m * BLOCK_M >= count:
        return
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    tokens = tl.load(tokens_ptr + tl.load(starts_ptr + lora) + rows % count)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    in_columns = columns < N
    x = tl.load(x_ptr + tokens[:, None] * stride_x + ks[None, :], mask=ks[None, :] < K, other=0.0)
    w_ptrs = w_ptr + lora * stride_w_lora + (columns % N)[None, :] * stride_w_n + ks[:, None]
    w = tl.load(w_ptrs, mask=ks[:, None] < K, other=0.0)
    acc = tl.dot(x.to(w.dtype), w)
    out_ptrs = out_ptr + tokens[:, None] * stride_out + columns[None, :]
    mask = (rows[:, None] < count) & in_columns[None, :]
    acc += tl.load(out_ptrs, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def count_experts(ids_ptr, counts_ptr, n, EXPERTS: tl.constexpr, BLOCK: tl.constexpr):
    """How many tokens each expert has."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ids = tl.load(ids_ptr + places, mask=places < n, other=0)
    counts = tl.histogram(ids, EXPERTS, mask=places < n)
    tl.atomic_add(counts_ptr + tl.arange(0, EXPERTS), counts)
