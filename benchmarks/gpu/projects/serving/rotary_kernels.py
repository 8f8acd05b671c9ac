"""Rotary embeddings, in place and interleaved, and the cache that keys and values are written to."""

import triton
import triton.language as tl


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
