"""What servers of language models launch for each token: decoding over pages, experts, LoRA, caches, sampling."""

import triton
import triton.language as tl


@triton.jit
def soft_capped(x, CAP: tl.constexpr):
    """`CAP` times the tanh of x over it; x where there is none."""
    if CAP > 0:
        return CAP * (2 * tl.sigmoid(2 * x / CAP) - 1)
    return x


@triton.jit
def decode_part_grouped(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    slots_ptr,
    lengths_ptr,
    scale,
    stride_q_seq,
    stride_q_head,
    stride_kv_token,
    stride_kv_head,
    stride_out_seq,
    stride_out_head,
    stride_out_part,
    max_slots,
    GROUP: tl.constexpr,
    HEADS: tl.constexpr,
    CAP: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_PE: tl.constexpr,
    BLOCK_V: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_N: tl.constexpr,
    PARTS: tl.constexpr,
):
    """A part of a sequence's keys for the heads of a group; each token has a slot of its own. `BLOCK_PE` further
    dimensions of keys are the position; the values of `BLOCK_PE` > 0 are the keys' first (latent attention).
    """
    sequence = tl.program_id(0)
    head_block = tl.program_id(1)
    part = tl.program_id(2)
    BLOCKS: tl.constexpr = (GROUP + BLOCK_H - 1) // BLOCK_H
    kv_head = head_block // BLOCKS
    heads = kv_head * GROUP + (head_block % BLOCKS) * BLOCK_H + tl.arange(0, BLOCK_H)
    in_heads = (heads < (kv_head + 1) * GROUP) & (heads < HEADS)
    dims = tl.arange(0, BLOCK_D)
    value_dims = tl.arange(0, BLOCK_V)
    q_base = q_ptr + sequence * stride_q_seq + heads[:, None] * stride_q_head
    length = tl.load(lengths_ptr + sequence)
    per_part = tl.cdiv(length, PARTS)
    begin = per_part * part
    end = tl.minimum(begin + per_part, length)
    largest = tl.zeros([BLOCK_H], dtype=tl.float32) - float("inf")
    total = tl.zeros([BLOCK_H], dtype=tl.float32)
    acc = tl.zeros([BLOCK_H, BLOCK_V], dtype=tl.float32)
    if end > begin:
        q = tl.load(q_base + dims[None, :], mask=in_heads[:, None], other=0.0)
        if BLOCK_PE > 0:
            pe_dims = BLOCK_D + tl.arange(0, BLOCK_PE)
            q_pe = tl.load(q_base + pe_dims[None, :], mask=in_heads[:, None], other=0.0)
        for start in range(begin, end, BLOCK_N):
            keys = start + tl.arange(0, BLOCK_N)
            in_keys = keys < end
            slots = tl.load(slots_ptr + max_slots * sequence + keys, mask=in_keys, other=0)
            k_offsets = slots[None, :] * stride_kv_token + kv_head * stride_kv_head
            k = tl.load(k_ptr + k_offsets + dims[:, None], mask=in_keys[None, :], other=0.0)
            scores = tl.dot(q, k.to(q.dtype))
            if BLOCK_PE > 0:
                k_pe = tl.load(k_ptr + k_offsets + pe_dims[:, None], mask=in_keys[None, :], other=0.0)
                scores += tl.dot(q_pe, k_pe.to(q_pe.dtype))
            scores = soft_capped(scores * scale, CAP)
            scores = tl.where(in_heads[:, None] & in_keys[None, :], scores, float("-inf"))
            v_offsets = slots[:, None] * stride_kv_token + kv_head * stride_kv_head + value_dims[None, :]
            v = tl.load(v_ptr + v_offsets, mask=in_keys[:, None], other=0.0)
            new = tl.maximum(tl.max(scores, 1), largest)
            rescale = tl.exp(largest - new)
            p = tl.exp(scores - new[:, None])
            acc *= rescale[:, None]
            acc += tl.dot(p.to(v.dtype), v)
            total = total * rescale + tl.sum(p, 1)
            largest = new
        place = sequence * stride_out_seq + heads * stride_out_head + part * stride_out_part
        tl.store(out_ptr + place[:, None] + value_dims[None, :], acc / total[:, None], mask=in_heads[:, None])
        tl.store(out_ptr + place + BLOCK_V, largest + tl.log(total), mask=in_heads)


@triton.jit
def decode_part(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    slots_ptr,
    lengths_ptr,
    scale,
    stride_q_seq,
    stride_q_head,
    stride_kv_token,
    stride_kv_head,
    stride_out_seq,
    stride_out_head,
    stride_out_part,
    max_slots,
    CAP: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_N: tl.constexpr,
    PARTS: tl.constexpr,
):
    """The same of one head for each head of keys, by sums."""
    sequence = tl.program_id(0)
    head = tl.program_id(1)
    part = tl.program_id(2)
    dims = tl.arange(0, BLOCK_D)
    length = tl.load(lengths_ptr + sequence)
    q = tl.load(q_ptr + sequence * stride_q_seq + head * stride_q_head + dims)
    per_part = tl.cdiv(length, PARTS)
    begin = per_part * part
    end = tl.minimum(begin + per_part, length)
    largest = -float("inf")
    total = 0.0
    acc = tl.zeros([BLOCK_D], dtype=tl.float32)
    if end > begin:
        for start in range(begin, end, BLOCK_N):
            keys = start + tl.arange(0, BLOCK_N)
            in_keys = keys < end
            slots = tl.load(slots_ptr + max_slots * sequence + keys, mask=in_keys, other=0)
            offsets = slots[:, None] * stride_kv_token + head * stride_kv_head + dims[None, :]
            k = tl.load(k_ptr + offsets, mask=in_keys[:, None], other=0.0)
            scores = soft_capped(tl.sum(q[None, :] * k, 1) * scale, CAP)
            scores = tl.where(in_keys, scores, float("-inf"))
            v = tl.load(v_ptr + offsets, mask=in_keys[:, None], other=0.0)
            new = tl.maximum(tl.max(scores, 0), largest)
            rescale = tl.exp(largest - new)
            p = tl.exp(scores - new)
            acc *= rescale
            acc += tl.sum(p[:, None] * v, 0)
            total = total * rescale + tl.sum(p, 0)
            largest = new
        place = sequence * stride_out_seq + head * stride_out_head + part * stride_out_part
        tl.store(out_ptr + place + dims, acc / total)
        tl.store(out_ptr + place + BLOCK_D, largest + tl.log(total))


@triton.jit
def decode_merge(
    parts_ptr,
    out_ptr,
    lengths_ptr,
    stride_seq,
    stride_head,
    stride_part,
    stride_out_seq,
    stride_out_head,
    PARTS: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """What the parts of a sequence gave, by the logarithms that come after each."""
    sequence = tl.program_id(0)
    head = tl.program_id(1)
    length = tl.load(lengths_ptr + sequence)
    dims = tl.arange(0, BLOCK_D)
    largest = -float("inf")
    total = 0.0
    acc = tl.zeros([BLOCK_D], dtype=tl.float32)
    base = sequence * stride_seq + head * stride_head
    per_part = tl.cdiv(length, PARTS)
    for part in range(PARTS):
        begin = per_part * part
        end = tl.minimum(begin + per_part, length)
        if end > begin:
            x = tl.load(parts_ptr + base + part * stride_part + dims)
            lse = tl.load(parts_ptr + base + part * stride_part + BLOCK_D)
            new = tl.maximum(lse, largest)
            rescale = tl.exp(largest - new)
            weight = tl.exp(lse - new)
            acc = acc * rescale + weight * x
            total = total * rescale + weight
            largest = new
    tl.store(out_ptr + sequence * stride_out_seq + head * stride_out_head + dims, acc / total)


@triton.jit
def find_sequence(starts_ptr, place, num_sequences, BLOCK_Q: tl.constexpr):
    """The sequence of a block of queries, by bisection; each has a block more than its queries fill."""
    left: tl.int32 = 0
    right = num_sequences
    while left < right:
        mid = (left + right) // 2
        if tl.load(starts_ptr + mid) // BLOCK_Q + mid <= place:
            left = mid + 1
        else:
            right = mid
    return left - 1


@triton.jit
def unified_attention(
    out_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    sinks_ptr,
    pages_ptr,
    lengths_ptr,
    starts_ptr,
    scale,
    cap,
    max_pages,
    stride_q_token,
    stride_q_head,
    stride_page,
    stride_token,
    stride_head,
    num_sequences,
    GROUP: tl.constexpr,
    PAGE: tl.constexpr,
    TILE: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    WINDOW: tl.constexpr,
    HAS_CAP: tl.constexpr,
    BLOCK_M: tl.constexpr,
):
    """Prefill and decode of one batch: rows of a block are tokens times the heads of a group."""
    BLOCK_Q: tl.constexpr = BLOCK_M // GROUP
    place = tl.program_id(0)
    kv_head = tl.program_id(1)
    sequence = find_sequence(starts_ptr, place, num_sequences, BLOCK_Q)
    first = tl.load(starts_ptr + sequence)
    local = place - (first // BLOCK_Q + sequence)
    query_length = tl.load(starts_ptr + sequence + 1) - first
    if local * BLOCK_Q >= query_length:
        return
    rows = tl.arange(0, BLOCK_M)
    dims = tl.arange(0, HEAD_DIM)
    tokens = local * BLOCK_Q + rows // GROUP
    heads = kv_head * GROUP + rows % GROUP
    in_rows = tokens < query_length
    q_offsets = (first + tokens)[:, None] * stride_q_token + heads[:, None] * stride_q_head + dims[None, :]
    q = tl.load(q_ptr + q_offsets, mask=in_rows[:, None], other=0.0)
    largest = tl.load(sinks_ptr + heads, mask=in_rows, other=float("-inf")).to(tl.float32)
    total = tl.full([BLOCK_M], 1.0, dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    context = tl.load(lengths_ptr + sequence) - query_length
    longest = tl.minimum(context + local * BLOCK_Q + (BLOCK_M - 1) // GROUP + 1, context + query_length)
    tile_begin = 0
    if WINDOW > 0:
        tile_begin = tl.maximum(0, (context + local * BLOCK_Q - WINDOW + 1) // TILE)
    for tile in range(tile_begin, tl.cdiv(longest, TILE)):
        keys = tile * TILE + tl.arange(0, TILE)
        in_keys = keys < longest
        page = tl.load(pages_ptr + sequence * max_pages + keys // PAGE).to(tl.int64)
        base = page * stride_page + (keys % PAGE) * stride_token + kv_head * stride_head
        k = tl.load(k_ptr + base[None, :] + dims[:, None], mask=in_keys[None, :], other=0.0)
        v = tl.load(v_ptr + base[:, None] + dims[None, :], mask=in_keys[:, None], other=0.0)
        scores = scale * tl.dot(q, k)
        if HAS_CAP:
            scores = cap * (2 * tl.sigmoid(2 * scores / cap) - 1)
        seen = keys[None, :] < context + tokens[:, None] + 1
        scores = tl.where(in_rows[:, None] & seen, scores, float("-inf"))
        if WINDOW > 0:
            scores = tl.where(context + tokens[:, None] - keys[None, :] < WINDOW, scores, float("-inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        new = tl.where(new > float("-inf"), new, 0.0)
        p = tl.exp(scores - new[:, None])
        alpha = tl.exp(largest - new)
        acc = acc * alpha[:, None]
        total = total * alpha + tl.sum(p, axis=1)
        largest = new
        acc += tl.dot(p.to(v.dtype), v)
    acc = acc / total[:, None]
    tl.store(out_ptr + q_offsets, acc.to(out_ptr.dtype.element_ty), mask=in_rows[:, None])


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
def rope_in_place(
    q_ptr,
    k_ptr,
    cos_ptr,
    sin_ptr,
    positions_ptr,
    stride_q,
    stride_k,
    Q_HEADS: tl.constexpr,
    K_HEADS: tl.constexpr,
    PAD_Q: tl.constexpr,
    PAD_K: tl.constexpr,
    DIM: tl.constexpr,
):
    """All heads of a token's queries and keys, turned where they are."""
    token = tl.program_id(0).to(tl.int64)
    position = tl.load(positions_ptr + token)
    half = tl.arange(0, DIM // 2)
    cos = tl.load(cos_ptr + position * (DIM // 2) + half)[None, :]
    sin = tl.load(sin_ptr + position * (DIM // 2) + half)[None, :]
    q_heads = tl.arange(0, PAD_Q)[:, None]
    k_heads = tl.arange(0, PAD_K)[:, None]
    q_first = q_ptr + token * stride_q + q_heads * DIM + half[None, :]
    k_first = k_ptr + token * stride_k + k_heads * DIM + half[None, :]
    q1 = tl.load(q_first, mask=q_heads < Q_HEADS, other=0).to(cos.dtype)
    k1 = tl.load(k_first, mask=k_heads < K_HEADS, other=0).to(cos.dtype)
    q2 = tl.load(q_first + DIM // 2, mask=q_heads < Q_HEADS, other=0).to(cos.dtype)
    k2 = tl.load(k_first + DIM // 2, mask=k_heads < K_HEADS, other=0).to(cos.dtype)
    tl.store(q_first, (q1 * cos - q2 * sin).to(q_ptr.dtype.element_ty), mask=q_heads < Q_HEADS)
    tl.store(q_first + DIM // 2, (q2 * cos + q1 * sin).to(q_ptr.dtype.element_ty), mask=q_heads < Q_HEADS)
    tl.store(k_first, (k1 * cos - k2 * sin).to(k_ptr.dtype.element_ty), mask=k_heads < K_HEADS)
    tl.store(k_first + DIM // 2, (k2 * cos + k1 * sin).to(k_ptr.dtype.element_ty), mask=k_heads < K_HEADS)


@triton.jit
def rope_interleaved(
    x_ptr, cos_ptr, sin_ptr, out_ptr, length, HEADS: tl.constexpr, DIM: tl.constexpr, ROWS: tl.constexpr
):
    """Pairs are neighbours: loaded as one tile and taken apart; x [tokens, heads, dim]."""
    tokens = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    head = tl.program_id(1)
    dims = tl.arange(0, DIM)
    half = tl.arange(0, DIM // 2)
    mask = (tokens < length)[:, None]
    offsets = (tokens[:, None] * HEADS + head) * DIM + dims[None, :]
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    cos = tl.load(cos_ptr + tokens[:, None] * (DIM // 2) + half[None, :], mask=mask, other=0.0)
    sin = tl.load(sin_ptr + tokens[:, None] * (DIM // 2) + half[None, :], mask=mask, other=0.0)
    x0, x1 = tl.split(tl.reshape(x, [ROWS, DIM // 2, 2]))
    out = tl.reshape(tl.join(x0 * cos - x1 * sin, x0 * sin + x1 * cos), [ROWS, DIM])
    tl.store(out_ptr + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def write_cache(
    k_ptr, v_ptr, k_cache_ptr, v_cache_ptr, slots_ptr, stride_token, WIDTH: tl.constexpr, TILE: tl.constexpr
):
    """Keys and values of a token to its slot in the cache; -1 has none."""
    token = tl.program_id(0)
    slot = tl.load(slots_ptr + token).to(tl.int64)
    if slot < 0:
        return
    places = tl.program_id(1) * TILE + tl.arange(0, TILE)
    k = tl.load(k_ptr + token * stride_token + places, mask=places < WIDTH)
    v = tl.load(v_ptr + token * stride_token + places, mask=places < WIDTH)
    tl.store(k_cache_ptr + slot * WIDTH + places, k, mask=places < WIDTH)
    tl.store(v_cache_ptr + slot * WIDTH + places, v, mask=places < WIDTH)


@triton.jit
def quantise_groups(x_ptr, out_ptr, scales_ptr, groups, GROUP: tl.constexpr, ROWS: tl.constexpr):
    """fp8 with a scale for each 128 elements of a row."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, GROUP)
    mask = (rows < groups)[:, None]
    x = tl.load(x_ptr + rows[:, None] * GROUP + columns[None, :], mask=mask, other=0.0).to(tl.float32)
    largest = tl.maximum(tl.max(tl.abs(x), axis=1), 1e-10)
    scale = largest / 448.0
    q = tl.clamp(x / scale[:, None], -448.0, 448.0).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + rows[:, None] * GROUP + columns[None, :], q, mask=mask)
    tl.store(scales_ptr + rows, scale, mask=rows < groups)


@triton.jit
def quantise_tokens_int8(x_ptr, out_ptr, scales_ptr, stride_x, stride_out, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < N
    x = tl.load(x_ptr + row * stride_x + columns, mask=mask, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x)), 1e-10) / 127
    q = x * (127 / tl.maximum(tl.max(tl.abs(x)), 1e-10))
    q = tl.floor(q + 0.5).to(tl.int8)
    tl.store(out_ptr + row * stride_out + columns, q, mask=mask)
    tl.store(scales_ptr + row, scale)


@triton.jit
def top_p_threshold(logits_ptr, out_ptr, stride, V, p, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """The probability that the nucleus of a row ends with, by bisection over the whole row."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    base = logits_ptr + row * stride
    largest = tl.full([BLOCK], -float("inf"), tl.float32)
    for start in range(0, V, BLOCK):
        x = tl.load(base + start + columns, mask=start + columns < V, other=-float("inf")).to(tl.float32)
        largest = tl.maximum(largest, x)
    top = tl.max(largest, axis=0)
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, V, BLOCK):
        x = tl.load(base + start + columns, mask=start + columns < V, other=-float("inf")).to(tl.float32)
        sums += tl.exp(x - top)
    total = tl.sum(sums, axis=0)
    low = 0.0
    high = 1.0
    for _ in range(STEPS):
        mid = (low + high) * 0.5
        sums = tl.zeros([BLOCK], tl.float32)
        for start in range(0, V, BLOCK):
            x = tl.load(base + start + columns, mask=start + columns < V, other=-float("inf")).to(tl.float32)
            e = tl.exp(x - top)
            sums += tl.where(e >= mid, e, 0.0)
        if tl.sum(sums, axis=0) >= p * total:
            low = mid
        else:
            high = mid
    tl.store(out_ptr + row, low / total)


@triton.jit
def gumbel_sample(logits_ptr, out_ptr, noise_ptr, stride, V, temperature, BLOCK: tl.constexpr):
    """The token that a row samples: the largest of logits over the temperature minus the logarithm of noise."""
    row = tl.program_id(0).to(tl.int64)
    best = -float("inf")
    winner = 0
    for start in range(0, V, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        mask = columns < V
        x = tl.load(logits_ptr + row * stride + columns, mask=mask, other=-float("inf")).to(tl.float32) / temperature
        noise = tl.load(noise_ptr + row * stride + columns, mask=mask, other=1.0)
        x = x - tl.log(noise)
        value, place = tl.max(x, axis=0, return_indices=True)
        winner = tl.where(value > best, start + place, winner)
        best = tl.maximum(value, best)
    tl.store(out_ptr + row, winner)


@triton.jit
def dequantise_nf4(packed_ptr, absmax_ptr, table_ptr, out_ptr, n, BLOCK: tl.constexpr, GROUP: tl.constexpr):
    """Two numbers of four bits in a byte, looked up, times the largest of their 64."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = places < n
    packed = tl.load(packed_ptr + places, mask=mask, other=0)
    high = tl.load(table_ptr + (packed >> 4).to(tl.int32))
    low = tl.load(table_ptr + (packed & 15).to(tl.int32))
    scale = tl.load(absmax_ptr + places * 2 // GROUP, mask=mask, other=0.0)
    out = tl.interleave(high * scale, low * scale)
    wide = tl.program_id(0) * BLOCK * 2 + tl.arange(0, 2 * BLOCK)
    tl.store(out_ptr + wide, out.to(out_ptr.dtype.element_ty), mask=wide < 2 * n)


@triton.jit
def count_experts(ids_ptr, counts_ptr, n, EXPERTS: tl.constexpr, BLOCK: tl.constexpr):
    """How many tokens each expert has."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ids = tl.load(ids_ptr + places, mask=places < n, other=0)
    counts = tl.histogram(ids, EXPERTS, mask=places < n)
    tl.atomic_add(counts_ptr + tl.arange(0, EXPERTS), counts)
