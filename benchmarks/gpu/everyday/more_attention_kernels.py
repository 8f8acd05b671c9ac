"""Attention's backward pass, and decoding of one token from pages of keys and values."""

import triton
import triton.language as tl


@triton.jit
def gradients_of_keys(
    q_ptr,
    dout_ptr,
    lse_ptr,
    delta_ptr,
    k,
    v,
    keys,
    base,
    row_base,
    scale,
    begin,
    end,
    CAUSAL: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """dk, dv of a block of keys, over the rows from `begin` to `end`; scores are transposed, [keys, rows]."""
    dims = tl.arange(0, HEAD_DIM)
    dk = tl.zeros([BLOCK_N, HEAD_DIM], dtype=tl.float32)
    dv = tl.zeros([BLOCK_N, HEAD_DIM], dtype=tl.float32)
    for start in range(begin, end, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        q_t = tl.load(q_ptr + base + rows[None, :] * HEAD_DIM + dims[:, None])
        lse = tl.load(lse_ptr + row_base + rows)
        p_t = tl.exp2(tl.dot(k, q_t) * scale - lse[None, :])
        if CAUSAL:
            p_t = tl.where(rows[None, :] >= keys[:, None], p_t, 0.0)
        dout = tl.load(dout_ptr + base + rows[:, None] * HEAD_DIM + dims[None, :])
        dv = tl.dot(p_t.to(dout.dtype), dout, dv)
        delta = tl.load(delta_ptr + row_base + rows)
        dp_t = tl.dot(v, tl.trans(dout))
        ds_t = p_t * (dp_t - delta[None, :])
        dk = tl.dot(ds_t.to(q_t.dtype), tl.trans(q_t), dk)
    return dk, dv


@triton.jit
def gradient_of_queries(
    k_ptr,
    v_ptr,
    q,
    dout,
    lse,
    delta,
    rows,
    base,
    scale,
    end,
    CAUSAL: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    dims = tl.arange(0, HEAD_DIM)
    dq = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    for start in range(0, end, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        offsets = base + keys[None, :] * HEAD_DIM + dims[:, None]
        k_t = tl.load(k_ptr + offsets)
        v_t = tl.load(v_ptr + offsets)
        p = tl.exp2(tl.dot(q, k_t) * scale - lse[:, None])
        if CAUSAL:
            p = tl.where(rows[:, None] >= keys[None, :], p, 0.0)
        ds = p * (tl.dot(dout, v_t) - delta[:, None])
        dq = tl.dot(ds.to(k_t.dtype), tl.trans(k_t), dq)
    return dq


@triton.jit
def backward(
    q_ptr,
    k_ptr,
    v_ptr,
    dout_ptr,
    lse_ptr,
    delta_ptr,
    dq_ptr,
    dk_ptr,
    dv_ptr,
    scale,
    length,
    CAUSAL: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCK_LOOP: tl.constexpr,
):
    """A program has a block of keys, then the rows of the same numbers. lse: of 2; delta: sums of out * dout."""
    first = tl.program_id(0) * BLOCK
    head = tl.program_id(1).to(tl.int64)
    base = head * length * HEAD_DIM
    row_base = head * length
    own = first + tl.arange(0, BLOCK)
    dims = tl.arange(0, HEAD_DIM)
    offsets = base + own[:, None] * HEAD_DIM + dims[None, :]
    scale_2 = scale * 1.4426950408889634
    k = tl.load(k_ptr + offsets)
    v = tl.load(v_ptr + offsets)
    dk, dv = gradients_of_keys(
        q_ptr,
        dout_ptr,
        lse_ptr,
        delta_ptr,
        k,
        v,
        own,
        base,
        row_base,
        scale_2,
        first if CAUSAL else 0,
        length,
        CAUSAL,
        HEAD_DIM,
        BLOCK_LOOP,
        BLOCK,
    )
    tl.store(dv_ptr + offsets, dv.to(dv_ptr.dtype.element_ty))
    tl.store(dk_ptr + offsets, (dk * scale).to(dk_ptr.dtype.element_ty))
    q = tl.load(q_ptr + offsets)
    dout = tl.load(dout_ptr + offsets)
    lse = tl.load(lse_ptr + row_base + own)
    delta = tl.load(delta_ptr + row_base + own)
    end = first + BLOCK if CAUSAL else length
    dq = gradient_of_queries(
        k_ptr, v_ptr, q, dout, lse, delta, own, base, scale_2, end, CAUSAL, HEAD_DIM, BLOCK, BLOCK_LOOP
    )
    tl.store(dq_ptr + offsets, (dq * scale).to(dq_ptr.dtype.element_ty))


@triton.jit
def paged_decode(
    q_ptr,
    k_ptr,
    v_ptr,
    pages_ptr,
    lengths_ptr,
    out_ptr,
    lse_ptr,
    scale,
    num_kv_heads,
    group,
    max_pages,
    keys_per_part,
    PAGE: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """One token of each sequence: q [sequences, kv heads, group, HEAD_DIM], pages [pages, PAGE, kv heads, HEAD_DIM].

    A program has the part of a sequence's keys that its place on the third axis says, for the queries of a head of
    keys; out is [sequences, kv heads, parts, group, HEAD_DIM], lse the logarithms (of 2) of what rows are divided by.
    """
    sequence = tl.program_id(0)
    kv_head = tl.program_id(1)
    part = tl.program_id(2)
    queries = tl.arange(0, BLOCK_H)
    columns = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, HEAD_DIM)
    in_group = queries < group
    head = sequence * num_kv_heads + kv_head
    q_offsets = (head * group + queries)[:, None] * HEAD_DIM + dims[None, :]
    q = tl.load(q_ptr + q_offsets, mask=in_group[:, None], other=0.0)
    begin = part * keys_per_part
    end = tl.minimum(begin + keys_per_part, tl.load(lengths_ptr + sequence))
    m_i = tl.full([BLOCK_H], -1.0e30, dtype=tl.float32)
    l_i = tl.zeros([BLOCK_H], dtype=tl.float32)
    acc = tl.zeros([BLOCK_H, HEAD_DIM], dtype=tl.float32)
    for start in range(begin, end, BLOCK_N):
        keys = start + columns
        in_keys = keys < end
        page = tl.load(pages_ptr + sequence * max_pages + keys // PAGE, mask=in_keys, other=0).to(tl.int64)
        places = ((page * PAGE + keys % PAGE) * num_kv_heads + kv_head) * HEAD_DIM
        k = tl.load(k_ptr + places[None, :] + dims[:, None], mask=in_keys[None, :], other=0.0)
        scores = tl.where(in_keys[None, :], tl.dot(q, k) * scale, -float("inf"))
        m_new = tl.maximum(m_i, tl.max(scores, 1))
        p = tl.exp2(scores - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(v_ptr + places[:, None] + dims[None, :], mask=in_keys[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m_i = m_new
    place = (head * tl.num_programs(2) + part) * group + queries
    tl.store(out_ptr + place[:, None] * HEAD_DIM + dims[None, :], acc / l_i[:, None], mask=in_group[:, None])
    tl.store(lse_ptr + place, m_i + tl.log2(l_i), mask=in_group)


@triton.jit
def paged_decode_of_one(
    q_ptr,
    k_ptr,
    v_ptr,
    pages_ptr,
    lengths_ptr,
    out_ptr,
    lse_ptr,
    scale,
    num_kv_heads,
    max_pages,
    keys_per_part,
    PAGE: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """The same of one query for each head of keys, without dots."""
    sequence = tl.program_id(0)
    kv_head = tl.program_id(1)
    part = tl.program_id(2)
    columns = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, HEAD_DIM)
    head = sequence * num_kv_heads + kv_head
    q = tl.load(q_ptr + head * HEAD_DIM + dims).to(tl.float32)
    begin = part * keys_per_part
    end = tl.minimum(begin + keys_per_part, tl.load(lengths_ptr + sequence))
    m_i = -float("inf")
    l_i = 0.0
    acc = tl.zeros([HEAD_DIM], dtype=tl.float32)
    for start in range(begin, end, BLOCK_N):
        keys = start + columns
        in_keys = keys < end
        page = tl.load(pages_ptr + sequence * max_pages + keys // PAGE, mask=in_keys, other=0).to(tl.int64)
        places = ((page * PAGE + keys % PAGE) * num_kv_heads + kv_head) * HEAD_DIM
        k = tl.load(k_ptr + places[:, None] + dims[None, :], mask=in_keys[:, None], other=0.0).to(tl.float32)
        scores = tl.where(in_keys, tl.sum(q[None, :] * k, 1) * scale, -float("inf"))
        m_new = tl.maximum(m_i, tl.max(scores, 0))
        p = tl.exp2(scores - m_new)
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 0)
        v = tl.load(v_ptr + places[:, None] + dims[None, :], mask=in_keys[:, None], other=0.0).to(tl.float32)
        acc = acc * alpha + tl.sum(p[:, None] * v, 0)
        m_i = m_new
    place = head * tl.num_programs(2) + part
    tl.store(out_ptr + place * HEAD_DIM + dims, acc / l_i)
    tl.store(lse_ptr + place, m_i + tl.log2(l_i))
