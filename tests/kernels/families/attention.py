"""Attention: forward by block pointers and by descriptors, backward, windows, ALiBi, packed sequences, pages."""

from __future__ import annotations

import deuteron as triton
import deuteron.language as tl
import numpy as np
from deuteron.backend.tensor_descriptor import TensorDescriptor
from tests.kernels.case import Case, Launch, case, normal, poisoned, softmax, wide

LOG2E = 1.4426950408889634


@triton.jit
def attention_by_block_pointers(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, scale, stride, length, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    CAUSAL: tl.constexpr,
):  # fmt: skip
    """Two loops: tiles that are not masked, then those on the diagonal and at the end."""
    start_m, head = tl.program_id(0), tl.program_id(1)
    q_block = tl.make_block_ptr(
        base=q_ptr + head * stride, shape=(length, D), strides=(D, 1), offsets=(start_m * BM, 0), block_shape=(BM, D),
        order=(1, 0),
    )  # fmt: skip
    k_block = tl.make_block_ptr(k_ptr + head * stride, (D, length), (1, D), (0, 0), (D, BN), (0, 1))
    v_block = tl.make_block_ptr(v_ptr + head * stride, (length, D), (D, 1), (0, 0), (BN, D), (1, 0))
    rows = start_m * BM + tl.arange(0, BM)
    m_i = tl.zeros([BM], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BM], dtype=tl.float32)
    acc = tl.zeros([BM, D], dtype=tl.float32)
    q = tl.load(q_block, boundary_check=(0,), padding_option="zero")
    q = (q * (scale * 1.44269504)).to(k_ptr.dtype.element_ty)
    unmasked = (start_m * BM if CAUSAL else length) // BN * BN
    for _ in range(0, unmasked, BN):
        s = tl.dot(q, tl.load(k_block))
        m_new = tl.maximum(m_i, tl.max(s, 1))
        alpha = tl.math.exp2(m_i - m_new)
        p = tl.math.exp2(s - m_new[:, None])
        acc = tl.dot(p.to(v_ptr.dtype.element_ty), tl.load(v_block), acc * alpha[:, None])
        l_i = l_i * alpha + tl.sum(p, 1)
        m_i = m_new
        k_block = tl.advance(k_block, (0, BN))
        v_block = tl.advance(v_block, (BN, 0))
    end = tl.minimum((start_m + 1) * BM, length) if CAUSAL else length
    for start_n in range(unmasked, end, BN):
        columns = start_n + tl.arange(0, BN)
        s = tl.dot(q, tl.load(k_block, boundary_check=(1,), padding_option="zero"))
        keep = columns[None, :] < length
        if CAUSAL:
            keep = keep & (rows[:, None] >= columns[None, :])
        s = tl.where(keep, s, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(s, 1))
        alpha = tl.math.exp2(m_i - m_new)
        p = tl.math.exp2(s - m_new[:, None])
        v = tl.load(v_block, boundary_check=(0,), padding_option="zero")
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        l_i = l_i * alpha + tl.sum(p, 1)
        m_i = m_new
        k_block = tl.advance(k_block, (0, BN))
        v_block = tl.advance(v_block, (BN, 0))
    tl.store(lse_ptr + head * length + rows, (m_i + tl.math.log2(l_i)) * 0.6931471805599453, mask=rows < length)
    o_block = tl.make_block_ptr(o_ptr + head * stride, (length, D), (D, 1), (start_m * BM, 0), (BM, D), (1, 0))
    tl.store(o_block, (acc / l_i[:, None]).to(o_ptr.dtype.element_ty), boundary_check=(0,))


@triton.jit
def attention_by_descriptors(
    q_desc, k_desc, v_desc, o_ptr, scale, length, HEADS: tl.constexpr, D: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr,
):  # fmt: skip
    start, head = tl.program_id(0) * BM, tl.program_id(1)
    o_desc = tl.make_tensor_descriptor(o_ptr, [HEADS * length, D], [D, 1], [BM, D])
    first = head * length
    rows = start + tl.arange(0, BM)
    m_i = tl.full((BM,), float("-inf"), tl.float32)
    l_i = tl.full((BM,), 1.0, tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    q = q_desc.load([first + start, 0])
    for n in tl.range(0, start + BM, BN):
        k = k_desc.load([first + n, 0])
        s = tl.dot(q, k.T) * (scale * 1.44269504)
        s = tl.where(rows[:, None] >= n + tl.arange(0, BN)[None, :], s, -1.0e6)
        m_new = tl.maximum(m_i, tl.max(s, 1))
        p = tl.exp2(s - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = v_desc.load([first + n, 0])
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m_i = m_new
    l_i = l_i - tl.exp2(float("-inf") - m_i)
    o_desc.store([first + start, 0], (acc / l_i[:, None]).to(o_ptr.dtype.element_ty))


@triton.jit
def delta_kernel(o_ptr, do_ptr, delta_ptr, length, D: tl.constexpr, BM: tl.constexpr):
    """The sum of o * do of each row."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    at = (tl.program_id(1) * length + rows)[:, None] * D + tl.arange(0, D)[None, :]
    mask = (rows < length)[:, None]
    o = tl.load(o_ptr + at, mask=mask, other=0.0).to(tl.float32)
    do = tl.load(do_ptr + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(delta_ptr + tl.program_id(1) * length + rows, tl.sum(o * do, axis=1), mask=rows < length)


@triton.jit
def attention_backward_dkdv_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, scale, length, D: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr,
):  # fmt: skip
    """A tile of keys for each program, over the rows that see it."""
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    first = tl.program_id(1) * length
    d = tl.arange(0, D)
    at = (first + columns)[:, None] * D + d[None, :]
    k = tl.load(k_ptr + at, mask=columns[:, None] < length, other=0.0)
    v = tl.load(v_ptr + at, mask=columns[:, None] < length, other=0.0)
    dk = tl.zeros([BN, D], dtype=tl.float32)
    dv = tl.zeros([BN, D], dtype=tl.float32)
    begin = tl.program_id(0) * BN // BM * BM
    for start in range(begin, length, BM):
        rows = start + tl.arange(0, BM)
        mask = rows < length
        q = tl.load(q_ptr + (first + rows)[:, None] * D + d[None, :], mask=mask[:, None], other=0.0)
        do = tl.load(do_ptr + (first + rows)[:, None] * D + d[None, :], mask=mask[:, None], other=0.0)
        lse = tl.load(lse_ptr + first + rows, mask=mask, other=0.0)
        delta = tl.load(delta_ptr + first + rows, mask=mask, other=0.0)
        s = tl.dot(k, tl.trans(q)) * scale
        keep = (columns[:, None] <= rows[None, :]) & mask[None, :]
        p = tl.where(keep, tl.exp(s - lse[None, :]), 0.0)
        dv += tl.dot(p.to(do.dtype), do)
        dp = tl.dot(v, tl.trans(do))
        ds = p * (dp - delta[None, :]) * scale
        dk += tl.dot(ds.to(q.dtype), q)
    tl.store(dk_ptr + at, dk, mask=columns[:, None] < length)
    tl.store(dv_ptr + at, dv, mask=columns[:, None] < length)


@triton.jit
def attention_backward_dq_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, scale, length, D: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    first = tl.program_id(1) * length
    d = tl.arange(0, D)
    at = (first + rows)[:, None] * D + d[None, :]
    mask = rows[:, None] < length
    q = tl.load(q_ptr + at, mask=mask, other=0.0)
    do = tl.load(do_ptr + at, mask=mask, other=0.0)
    lse = tl.load(lse_ptr + first + rows, mask=rows < length, other=0.0)
    delta = tl.load(delta_ptr + first + rows, mask=rows < length, other=0.0)
    dq = tl.zeros([BM, D], dtype=tl.float32)
    for start in range(0, tl.minimum((tl.program_id(0) + 1) * BM, length), BN):
        columns = start + tl.arange(0, BN)
        of_keys = (first + columns)[None, :] * D + d[:, None]
        k = tl.load(k_ptr + of_keys, mask=columns[None, :] < length, other=0.0)
        v = tl.load(v_ptr + of_keys, mask=columns[None, :] < length, other=0.0)
        s = tl.dot(q, k) * scale
        p = tl.where(columns[None, :] <= rows[:, None], tl.exp(s - lse[:, None]), 0.0)
        ds = p * (tl.dot(do, v) - delta[:, None]) * scale
        dq = tl.dot(ds.to(k.dtype), tl.trans(k), dq)
    tl.store(dq_ptr + at, dq, mask=mask)


@triton.jit
def window_attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, slope_ptr, scale, length, WINDOW: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, ALIBI: tl.constexpr,
):  # fmt: skip
    """Each row sees the keys of a window behind it; several heads share one of keys; ALiBi takes from those far off."""
    start = tl.program_id(0) * BM
    head = tl.program_id(1)
    rows, d = start + tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(q_ptr + (head * length + rows)[:, None] * D + d[None, :], mask=rows[:, None] < length, other=0.0)
    of_keys = head // GROUP * length
    m_i = tl.full([BM], float("-inf"), dtype=tl.float32)
    l_i = tl.zeros([BM], dtype=tl.float32)
    acc = tl.zeros([BM, D], dtype=tl.float32)
    if ALIBI:
        slope = tl.load(slope_ptr + head)
    lower = tl.maximum(start - WINDOW + 1, 0) // BN * BN
    for n in range(lower, tl.minimum(start + BM, length), BN):
        columns = n + tl.arange(0, BN)
        at = (of_keys + columns)[:, None] * D + d[None, :]
        k = tl.load(k_ptr + at, mask=columns[:, None] < length, other=0.0)
        v = tl.load(v_ptr + at, mask=columns[:, None] < length, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        distance = rows[:, None] - columns[None, :]
        if ALIBI:
            s -= slope * distance
        s = tl.where((distance >= 0) & (distance < WINDOW), s, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(s, 1))
        safe = tl.where(m_new == float("-inf"), 0.0, m_new)
        p = tl.exp(s - safe[:, None])
        alpha = tl.exp(m_i - safe)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        l_i = l_i * alpha + tl.sum(p, 1)
        m_i = m_new
    out = (acc / l_i[:, None]).to(o_ptr.dtype.element_ty)
    tl.store(o_ptr + (head * length + rows)[:, None] * D + d[None, :], out, mask=rows[:, None] < length)


@triton.jit
def packed_attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, begin_ptr, scale, H: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    """Sequences of several lengths one after the other: [tokens, H, D], with where each begins."""
    sequence, head = tl.program_id(1), tl.program_id(2)
    begin = tl.load(begin_ptr + sequence)
    length = tl.load(begin_ptr + sequence + 1) - begin
    start = tl.program_id(0) * BM
    if start >= length:
        return
    rows, columns, d = start + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    q_at = (begin + rows)[:, None] * (H * D) + head * D + d[None, :]
    q = tl.load(q_ptr + q_at, mask=rows[:, None] < length, other=0.0)
    m_i = tl.full([BM], float("-inf"), dtype=tl.float32)
    l_i = tl.zeros([BM], dtype=tl.float32)
    acc = tl.zeros([BM, D], dtype=tl.float32)
    for n in range(0, tl.minimum(start + BM, length), BN):
        n = tl.multiple_of(n, BN)
        at = (begin + n + columns)[:, None] * (H * D) + head * D + d[None, :]
        keep = n + columns < length
        k = tl.load(k_ptr + at, mask=keep[:, None], other=0.0)
        s = tl.dot(q, k.T) * scale
        s = tl.where((rows[:, None] >= n + columns[None, :]) & keep[None, :], s, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(s, 1))
        p = tl.exp(s - m_new[:, None])
        alpha = tl.exp(m_i - m_new)
        v = tl.load(v_ptr + at, mask=keep[:, None], other=0.0)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        l_i = l_i * alpha + tl.sum(p, 1)
        m_i = m_new
    tl.store(o_ptr + q_at, (acc / l_i[:, None]).to(o_ptr.dtype.element_ty), mask=rows[:, None] < length)


@triton.jit
def paged_decode_kernel(
    q_ptr, k_cache_ptr, v_cache_ptr, table_ptr, length_ptr, part_ptr, part_lse_ptr, scale, max_pages,
    H: tl.constexpr, KV_HEADS: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr, SPLITS: tl.constexpr,
    BLOCK_H: tl.constexpr,
):  # fmt: skip
    """One new token of each sequence; its keys are in pages of a cache, and shared out over several programs."""
    sequence, kv_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    GROUP: tl.constexpr = H // KV_HEADS
    heads = kv_head * GROUP + tl.arange(0, BLOCK_H)
    mask_h = tl.arange(0, BLOCK_H) < GROUP
    d, within = tl.arange(0, D), tl.arange(0, PAGE)
    q = tl.load(q_ptr + sequence * H * D + heads[:, None] * D + d[None, :], mask=mask_h[:, None], other=0.0)
    length = tl.load(length_ptr + sequence)
    pages = tl.cdiv(length, PAGE)
    per_split = tl.cdiv(pages, SPLITS)
    begin = split * per_split
    end = tl.minimum(begin + per_split, pages)
    m_i = tl.zeros([BLOCK_H], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BLOCK_H], dtype=tl.float32)
    acc = tl.zeros([BLOCK_H, D], dtype=tl.float32)
    for i in range(begin, end):
        page = tl.load(table_ptr + sequence * max_pages + i).to(tl.int64)
        at = ((page * PAGE + within) * KV_HEADS + kv_head)[:, None] * D + d[None, :]
        keep = i * PAGE + within < length
        k = tl.load(k_cache_ptr + at, mask=keep[:, None], other=0.0)
        v = tl.load(v_cache_ptr + at, mask=keep[:, None], other=0.0)
        s = tl.where(keep[None, :], tl.dot(q, k.T) * scale, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(s, 1))
        p = tl.exp(s - m_new[:, None])
        alpha = tl.exp(m_i - m_new)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        l_i = l_i * alpha + tl.sum(p, 1)
        m_i = m_new
    out = (sequence * H + heads) * SPLITS + split
    l_safe = tl.where(l_i > 0, l_i, 1.0)
    tl.store(part_ptr + out[:, None] * D + d[None, :], acc / l_safe[:, None], mask=mask_h[:, None])
    tl.store(part_lse_ptr + out, tl.where(l_i > 0, m_i + tl.log(l_safe), float("-inf")), mask=mask_h)


@triton.jit
def combine_splits_kernel(part_ptr, part_lse_ptr, o_ptr, D: tl.constexpr, SPLITS: tl.constexpr):
    row = tl.program_id(0)
    splits, d = tl.arange(0, SPLITS), tl.arange(0, D)
    lse = tl.load(part_lse_ptr + row * SPLITS + splits)
    weight = tl.exp(lse - tl.max(lse, 0))
    parts = tl.load(part_ptr + (row * SPLITS + splits)[:, None] * D + d[None, :])
    parts = tl.where((weight > 0)[:, None], parts, 0.0)
    out = tl.sum(parts * weight[:, None], 0) / tl.sum(weight, 0)
    tl.store(o_ptr + row * D + d, out.to(o_ptr.dtype.element_ty))


def attention(q, k, v, scale, keep=None, bias=0.0):
    scores = wide(q) @ np.swapaxes(wide(k), -1, -2) * scale + bias
    scores = scores if keep is None else np.where(keep, scores, -np.inf)
    return softmax(scores) @ wide(v), np.log(np.exp(scores).sum(-1))


def causal_mask(n):
    return np.tril(np.ones((n, n), bool))


def forward_by_block_pointers(rng, causal):
    heads, n, d = 2, 70, 32
    q, k, v = (normal(rng, (heads, n, d), "float16") for _ in range(3))
    o, lse = poisoned((heads, n, d), "float16"), poisoned((heads, n))
    expected = attention(q, k, v, 0.2, causal_mask(n) if causal else None)
    options = {"D": d, "BM": 32, "BN": 16, "CAUSAL": causal}
    launch = Launch(attention_by_block_pointers, (3, heads), (q, k, v, o, lse, 0.2, n * d, n), options)
    return Case([launch], [(o, expected[0], 4e-3), (lse, expected[1], 2e-3)])


@case
def attention_forward_by_block_pointers(rng: np.random.Generator) -> Case:
    return forward_by_block_pointers(rng, causal=False)


@case
def causal_attention_forward_by_block_pointers(rng: np.random.Generator) -> Case:
    return forward_by_block_pointers(rng, causal=True)


@case
def attention_forward_by_descriptors(rng: np.random.Generator) -> Case:
    heads, n, d = 2, 64, 32
    q, k, v = (normal(rng, (heads, n, d), "float16") for _ in range(3))
    o = poisoned((heads, n, d), "float16")
    expected = attention(q, k, v, 0.2, causal_mask(n))[0]
    q_desc = TensorDescriptor.from_tensor(q.reshape(heads * n, d), [32, d])
    k_desc, v_desc = (TensorDescriptor.from_tensor(x.reshape(heads * n, d), [16, d]) for x in (k, v))
    options = {"HEADS": heads, "D": d, "BM": 32, "BN": 16}
    launch = Launch(attention_by_descriptors, (2, heads), (q_desc, k_desc, v_desc, o, 0.2, n), options)
    return Case([launch], [(o, expected, 4e-3)])


@case
def attention_backward(rng: np.random.Generator) -> Case:
    heads, n, d, scale = 2, 50, 32, 0.3
    q, k, v, do = (normal(rng, (heads, n, d), "bfloat16") for _ in range(4))
    o, lse = attention(q, k, v, scale, causal_mask(n))
    p = softmax(np.where(causal_mask(n), wide(q) @ np.swapaxes(wide(k), 1, 2) * scale, -np.inf))
    ds = p * (wide(do) @ np.swapaxes(wide(v), 1, 2) - (wide(do) * o).sum(-1, keepdims=True)) * scale
    expected = ds @ wide(k), np.swapaxes(ds, 1, 2) @ wide(q), np.swapaxes(p, 1, 2) @ wide(do)
    dq, dk, dv, delta = poisoned(q.shape), poisoned(q.shape), poisoned(q.shape), poisoned((heads, n))
    narrow = o.astype(q.dtype)
    lse = lse.astype(np.float32)
    options = {"D": d, "BM": 16, "BN": 32}
    launches = [
        Launch(delta_kernel, (4, heads), (narrow, do, delta, n), {"D": d, "BM": 16}),
        Launch(attention_backward_dkdv_kernel, (2, heads), (q, k, v, do, lse, delta, dk, dv, scale, n), options),
        Launch(attention_backward_dq_kernel, (4, heads), (q, k, v, do, lse, delta, dq, scale, n), options),
    ]
    return Case(launches, [(got, want, 2e-2) for got, want in zip((dq, dk, dv), expected, strict=True)])


@case
def window_attention(rng: np.random.Generator) -> Case:
    heads, group, n, d, window = 4, 2, 60, 16, 13
    q, o = normal(rng, (heads, n, d), "float16"), poisoned((heads, n, d), "float16")
    k, v = (normal(rng, (heads // group, n, d), "float16") for _ in range(2))
    slope = np.abs(normal(rng, heads))
    distance = np.arange(n)[:, None] - np.arange(n)
    keep = (distance >= 0) & (distance < window)
    bias = -wide(slope)[:, None, None] * distance
    expected = attention(q, np.repeat(k, group, 0), np.repeat(v, group, 0), 0.25, keep, bias)[0]
    options = {"WINDOW": window, "GROUP": group, "D": d, "BM": 32, "BN": 16, "ALIBI": True, "num_warps": 2}
    launch = Launch(window_attention_kernel, (2, heads), (q, k, v, o, slope, 0.25, n), options)
    return Case([launch], [(o, expected, 4e-3)])


@case
def packed_attention(rng: np.random.Generator) -> Case:
    heads, d, lengths = 2, 32, (5, 40, 17)
    begins = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    q, k, v = (normal(rng, (begins[-1], heads, d), "float16") for _ in range(3))
    o, expected = poisoned(q.shape, "float16"), np.empty(q.shape)
    for begin, n in zip(begins[:-1], lengths, strict=True):
        part = [np.swapaxes(x[begin : begin + n], 0, 1) for x in (q, k, v)]
        expected[begin : begin + n] = np.swapaxes(attention(*part, 0.2, causal_mask(n))[0], 0, 1)
    options = {"H": heads, "D": d, "BM": 16, "BN": 32}
    launch = Launch(packed_attention_kernel, (3, 3, heads), (q, k, v, o, begins, 0.2), options)
    return Case([launch], [(o, expected, 4e-3)])


@case
def paged_decode(rng: np.random.Generator) -> Case:
    h, kv, d, page, splits, lengths = 6, 2, 32, 16, 4, np.array([37, 1, 64], np.int32)
    pages = rng.permutation(12).astype(np.int32).reshape(3, 4)
    q = normal(rng, (3, h, d), "float16")
    k, v = (normal(rng, (12, page, kv, d), "float16") for _ in range(2))
    parts, lse, o = poisoned((3, h, splits, d)), poisoned((3, h, splits)), poisoned((3, h, d), "float16")
    expected = np.empty((3, h, d))
    for i, n in enumerate(lengths):
        keys, values = (np.repeat(x[pages[i]].reshape(-1, kv, d)[:n], h // kv, 1).swapaxes(0, 1) for x in (k, v))
        expected[i] = attention(q[i][:, None], keys, values, 0.2)[0][:, 0]
    options = {"H": h, "KV_HEADS": kv, "D": d, "PAGE": page, "SPLITS": splits, "BLOCK_H": 16}
    args = q, k, v, pages, lengths, parts, lse, 0.2, 4
    launches = [
        Launch(paged_decode_kernel, (3, kv, splits), args, options),
        Launch(combine_splits_kernel, (3 * h,), (parts, lse, o), {"D": d, "SPLITS": splits, "num_warps": 1}),
    ]
    return Case(launches, [(o, expected, 4e-3)])
