"""Attention over pages and slots: decoding in parts, merging them, prompts and tokens in one launch."""

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
