"""Attention in the spellings and kinds that are in use: one loop, two loops, groups of heads, windows, biases, packed
sequences. Queries are [batch, heads, length, HEAD_DIM] unless it says otherwise; scores are in powers of 2.
"""

import triton
import triton.language as tl


@triton.jit
def causal_in_one_loop(
    q_ptr, k_ptr, v_ptr, out_ptr, scale, length, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Every tile of scores is masked."""
    first = tl.program_id(0) * BLOCK_M
    base = tl.program_id(1).to(tl.int64) * length * HEAD_DIM
    rows = first + tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, HEAD_DIM)
    q = tl.load(q_ptr + base + rows[:, None] * HEAD_DIM + dims[None, :])
    k_ptrs = k_ptr + base + columns[None, :] * HEAD_DIM + dims[:, None]
    v_ptrs = v_ptr + base + columns[:, None] * HEAD_DIM + dims[None, :]
    m_i = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    for start in range(0, first + BLOCK_M, BLOCK_N):
        k = tl.load(k_ptrs + start * HEAD_DIM)
        scores = tl.dot(q, k) * scale
        scores = tl.where(rows[:, None] >= start + columns[None, :], scores, -float("inf"))
        m_new = tl.maximum(m_i, tl.max(scores, 1))
        p = tl.exp2(scores - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(v_ptrs + start * HEAD_DIM)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m_i = m_new
    out = (acc / l_i[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + base + rows[:, None] * HEAD_DIM + dims[None, :], out)


@triton.jit
def causal_in_two_loops(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    lse_ptr,
    scale,
    length,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """First the keys that all rows see, then those on the diagonal, into the same m_i, l_i, acc."""
    first = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1).to(tl.int64)
    rows = first + tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, HEAD_DIM)
    q_offsets = head * length * HEAD_DIM + rows[:, None] * HEAD_DIM + dims[None, :]
    q = tl.load(q_ptr + q_offsets)
    k_ptrs = k_ptr + head * length * HEAD_DIM + columns[None, :] * HEAD_DIM + dims[:, None]
    v_ptrs = v_ptr + head * length * HEAD_DIM + columns[:, None] * HEAD_DIM + dims[None, :]
    m_i = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    for _ in range(0, first, BLOCK_N):
        scores = tl.dot(q, tl.load(k_ptrs))
        m_new = tl.maximum(m_i, tl.max(scores, 1) * scale)
        p = tl.exp2(scores * scale - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(v_ptrs)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m_i = m_new
        k_ptrs += BLOCK_N * HEAD_DIM
        v_ptrs += BLOCK_N * HEAD_DIM
    for start in range(first, first + BLOCK_M, BLOCK_N):
        scores = tl.dot(q, tl.load(k_ptrs))
        scores = tl.where(rows[:, None] >= start + columns[None, :], scores * scale, -float("inf"))
        m_new = tl.maximum(m_i, tl.max(scores, 1))
        p = tl.exp2(scores - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(v_ptrs)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m_i = m_new
        k_ptrs += BLOCK_N * HEAD_DIM
        v_ptrs += BLOCK_N * HEAD_DIM
    out = (acc / l_i[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + q_offsets, out)
    tl.store(lse_ptr + head * length + rows, m_i + tl.log2(l_i))


@triton.jit
def grouped_heads(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    scale,
    length,
    num_keys,
    num_heads,
    num_kv_heads,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Several heads of queries have one of keys; [batch, length, heads, HEAD_DIM], of any lengths, not causal."""
    batch = tl.program_id(2).to(tl.int64)
    head = tl.program_id(1)
    kv_head = head // (num_heads // num_kv_heads)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, HEAD_DIM)
    q_offsets = ((batch * length + rows)[:, None] * num_heads + head) * HEAD_DIM + dims[None, :]
    in_rows = (rows < length)[:, None]
    q = tl.load(q_ptr + q_offsets, mask=in_rows, other=0.0)
    base = (batch * num_keys * num_kv_heads + kv_head) * HEAD_DIM
    stride = num_kv_heads * HEAD_DIM
    m_i = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    for start in range(0, num_keys, BLOCK_N):
        keys = start + columns
        in_keys = keys < num_keys
        k = tl.load(k_ptr + base + keys[None, :] * stride + dims[:, None], mask=in_keys[None, :], other=0.0)
        scores = tl.where(in_keys[None, :], tl.dot(q, k) * scale, -float("inf"))
        m_new = tl.maximum(m_i, tl.max(scores, 1))
        p = tl.exp2(scores - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(v_ptr + base + keys[:, None] * stride + dims[None, :], mask=in_keys[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m_i = m_new
    out = (acc / l_i[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + q_offsets, out, mask=in_rows)


@triton.jit
def sliding_window(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    scale,
    length,
    window,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Each row sees `window` keys, its own the last."""
    first = tl.program_id(0) * BLOCK_M
    base = tl.program_id(1).to(tl.int64) * length * HEAD_DIM
    rows = first + tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, HEAD_DIM)
    q = tl.load(q_ptr + base + rows[:, None] * HEAD_DIM + dims[None, :])
    begin = tl.maximum(first - window + 1, 0) // BLOCK_N * BLOCK_N
    m_i = tl.full([BLOCK_M], -1.0e30, dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    for start in range(begin, first + BLOCK_M, BLOCK_N):
        keys = start + columns
        k = tl.load(k_ptr + base + keys[None, :] * HEAD_DIM + dims[:, None])
        distance = rows[:, None] - keys[None, :]
        scores = tl.where((distance >= 0) & (distance < window), tl.dot(q, k) * scale, -float("inf"))
        m_new = tl.maximum(m_i, tl.max(scores, 1))
        p = tl.exp2(scores - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(v_ptr + base + keys[:, None] * HEAD_DIM + dims[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m_i = m_new
    out = (acc / l_i[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + base + rows[:, None] * HEAD_DIM + dims[None, :], out)


@triton.jit
def alibi(
    q_ptr,
    k_ptr,
    v_ptr,
    slopes_ptr,
    out_ptr,
    scale,
    num_heads,
    length,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Causal, with a bias that falls with the distance by the slope of the head."""
    first = tl.program_id(0) * BLOCK_M
    base = tl.program_id(1).to(tl.int64) * length * HEAD_DIM
    slope = tl.load(slopes_ptr + tl.program_id(1) % num_heads) * 1.4426950408889634
    rows = first + tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, HEAD_DIM)
    q = tl.load(q_ptr + base + rows[:, None] * HEAD_DIM + dims[None, :])
    m_i = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    for start in range(0, first + BLOCK_M, BLOCK_N):
        keys = start + columns
        k = tl.load(k_ptr + base + keys[None, :] * HEAD_DIM + dims[:, None])
        distance = rows[:, None] - keys[None, :]
        scores = tl.dot(q, k) * scale - slope * distance
        scores = tl.where(distance >= 0, scores, -float("inf"))
        m_new = tl.maximum(m_i, tl.max(scores, 1))
        p = tl.exp2(scores - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(v_ptr + base + keys[:, None] * HEAD_DIM + dims[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m_i = m_new
    out = (acc / l_i[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + base + rows[:, None] * HEAD_DIM + dims[None, :], out)


@triton.jit
def packed_sequences(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    starts_ptr,
    scale,
    num_heads,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Sequences one after the other, [tokens, heads, HEAD_DIM]; s is from starts[s] to starts[s + 1]. Causal."""
    sequence = tl.program_id(2)
    begin = tl.load(starts_ptr + sequence)
    length = tl.load(starts_ptr + sequence + 1) - begin
    first = tl.program_id(0) * BLOCK_M
    if first >= length:
        return
    rows = first + tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, HEAD_DIM)
    stride = num_heads * HEAD_DIM
    base = begin.to(tl.int64) * stride + tl.program_id(1) * HEAD_DIM
    q_offsets = base + rows[:, None] * stride + dims[None, :]
    in_rows = (rows < length)[:, None]
    q = tl.load(q_ptr + q_offsets, mask=in_rows, other=0.0)
    m_i = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    for start in range(0, tl.minimum(first + BLOCK_M, length), BLOCK_N):
        keys = start + columns
        in_keys = keys < length
        k = tl.load(k_ptr + base + keys[None, :] * stride + dims[:, None], mask=in_keys[None, :], other=0.0)
        seen = (rows[:, None] >= keys[None, :]) & in_keys[None, :]
        scores = tl.where(seen, tl.dot(q, k) * scale, -float("inf"))
        m_new = tl.maximum(m_i, tl.max(scores, 1))
        p = tl.exp2(scores - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(v_ptr + base + keys[:, None] * stride + dims[None, :], mask=in_keys[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m_i = m_new
    out = (acc / l_i[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + q_offsets, out, mask=in_rows)
