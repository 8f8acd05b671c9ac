"""Gated delta rules: step by step, and in chunks with the inverses of triangles."""

import triton
import triton.language as tl


@triton.jit
def delta_rule_steps(
    q_ptr,
    k_ptr,
    v_ptr,
    g_ptr,
    beta_ptr,
    out_ptr,
    scale,
    length,
    HEADS: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    BV: tl.constexpr,
):
    """The gated delta rule step by step, a block of values a program; q, k [batch, length, heads, K]."""
    v_block = tl.program_id(0)
    batch = tl.program_id(1) // HEADS
    head = tl.program_id(1) % HEADS
    ks = tl.arange(0, K)
    vs = v_block * BV + tl.arange(0, BV)
    first = batch * length * HEADS + head
    q_ptrs = q_ptr + first * K + ks
    k_ptrs = k_ptr + first * K + ks
    v_ptrs = v_ptr + first * V + vs
    out_ptrs = out_ptr + first * V + vs
    g_ptrs = g_ptr + first
    beta_ptrs = beta_ptr + first
    h = tl.zeros([BV, K], dtype=tl.float32)
    for _ in range(length):
        q = tl.load(q_ptrs).to(tl.float32)
        k = tl.load(k_ptrs).to(tl.float32)
        v = tl.load(v_ptrs).to(tl.float32)
        g = tl.load(g_ptrs).to(tl.float32)
        beta = tl.load(beta_ptrs).to(tl.float32)
        q = q / tl.sqrt(tl.sum(q * q) + 1e-6) * scale
        k = k / tl.sqrt(tl.sum(k * k) + 1e-6)
        h *= tl.exp(g)
        v -= tl.sum(h * k[None, :], 1)
        v *= beta
        h += v[:, None] * k[None, :]
        out = tl.sum(h * q[None, :], 1)
        tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty))
        q_ptrs += HEADS * K
        k_ptrs += HEADS * K
        v_ptrs += HEADS * V
        out_ptrs += HEADS * V
        g_ptrs += HEADS
        beta_ptrs += HEADS


@triton.jit
def delta_rule_states(
    k_ptr,
    u_ptr,
    w_ptr,
    v_new_ptr,
    g_ptr,
    h_ptr,
    length,
    HEADS: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    BT: tl.constexpr,
    BV: tl.constexpr,
):
    """In chunks: the state before each, and what is new in its values; two halves of 64 keys are carried."""
    v_block = tl.program_id(0)
    batch = tl.program_id(1) // HEADS
    head = tl.program_id(1) % HEADS
    num_chunks = tl.cdiv(length, BT)
    first = batch * length * HEADS + head
    vs = v_block * BV
    k_ptr += first * K
    w_ptr += first * K
    u_ptr += first * V
    v_new_ptr += first * V
    g_ptr += first
    h_ptr += (batch * num_chunks * HEADS + head) * K * V
    h1 = tl.zeros([64, BV], dtype=tl.float32)
    h2 = tl.zeros([64, BV], dtype=tl.float32)
    for chunk in range(num_chunks):
        h_base = h_ptr + chunk * HEADS * K * V
        h1_block = tl.make_block_ptr(h_base, (K, V), (V, 1), (0, vs), (64, BV), (1, 0))
        h2_block = tl.make_block_ptr(h_base, (K, V), (V, 1), (64, vs), (64, BV), (1, 0))
        tl.store(h1_block, h1.to(h1_block.dtype.element_ty), boundary_check=(0, 1))
        tl.store(h2_block, h2.to(h2_block.dtype.element_ty), boundary_check=(0, 1))
        w1_block = tl.make_block_ptr(w_ptr, (length, K), (HEADS * K, 1), (chunk * BT, 0), (BT, 64), (1, 0))
        w2_block = tl.make_block_ptr(w_ptr, (length, K), (HEADS * K, 1), (chunk * BT, 64), (BT, 64), (1, 0))
        w = tl.load(w1_block, boundary_check=(0, 1))
        old = tl.dot(w, h1.to(w.dtype))
        w = tl.load(w2_block, boundary_check=(0, 1))
        old += tl.dot(w, h2.to(w.dtype))
        u_block = tl.make_block_ptr(u_ptr, (length, V), (HEADS * V, 1), (chunk * BT, vs), (BT, BV), (1, 0))
        v_new = tl.load(u_block, boundary_check=(0, 1)) - old
        v_block_ptr = tl.make_block_ptr(v_new_ptr, (length, V), (HEADS * V, 1), (chunk * BT, vs), (BT, BV), (1, 0))
        tl.store(v_block_ptr, v_new.to(v_block_ptr.dtype.element_ty), boundary_check=(0, 1))
        times = chunk * BT + tl.arange(0, BT)
        last = tl.load(g_ptr + (min((chunk + 1) * BT, length) - 1) * HEADS)
        g = tl.load(g_ptr + times * HEADS, mask=times < length, other=0.0)
        v_new = v_new * tl.where(times < length, tl.exp(last - g), 0.0)[:, None]
        decay = tl.exp(last)
        h1 *= decay
        h2 *= decay
        v_new = v_new.to(k_ptr.dtype.element_ty)
        k1_block = tl.make_block_ptr(k_ptr, (K, length), (1, HEADS * K), (0, chunk * BT), (64, BT), (0, 1))
        k2_block = tl.make_block_ptr(k_ptr, (K, length), (1, HEADS * K), (64, chunk * BT), (64, BT), (0, 1))
        k = tl.load(k1_block, boundary_check=(0, 1))
        h1 += tl.dot(k, v_new)
        k = tl.load(k2_block, boundary_check=(0, 1))
        h2 += tl.dot(k, v_new)


@triton.jit
def delta_rule_out(
    q_ptr,
    k_ptr,
    v_ptr,
    h_ptr,
    g_ptr,
    out_ptr,
    scale,
    length,
    HEADS: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    BT: tl.constexpr,
    BK: tl.constexpr,
    BV: tl.constexpr,
):
    """In chunks: queries times the state before the chunk, and times the keys of it up to now."""
    v_block = tl.program_id(0)
    chunk = tl.program_id(1)
    batch = tl.program_id(2) // HEADS
    head = tl.program_id(2) % HEADS
    first = batch * length * HEADS + head
    q_ptr += first * K
    k_ptr += first * K
    v_ptr += first * V
    out_ptr += first * V
    h_ptr += ((batch * tl.cdiv(length, BT) + chunk) * HEADS + head) * K * V
    out = tl.zeros([BT, BV], dtype=tl.float32)
    a = tl.zeros([BT, BT], dtype=tl.float32)
    for i in range(tl.cdiv(K, BK)):
        q_block = tl.make_block_ptr(q_ptr, (length, K), (HEADS * K, 1), (chunk * BT, i * BK), (BT, BK), (1, 0))
        k_block = tl.make_block_ptr(k_ptr, (K, length), (1, HEADS * K), (i * BK, chunk * BT), (BK, BT), (0, 1))
        h_block = tl.make_block_ptr(h_ptr, (K, V), (V, 1), (i * BK, v_block * BV), (BK, BV), (1, 0))
        q = tl.load(q_block, boundary_check=(0, 1))
        k = tl.load(k_block, boundary_check=(0, 1))
        h = tl.load(h_block, boundary_check=(0, 1))
        out += tl.dot(q, h)
        a += tl.dot(q, k)
    times = chunk * BT + tl.arange(0, BT)
    g = tl.load(g_ptr + first + times * HEADS, mask=times < length, other=0.0)
    out = out * tl.exp(g)[:, None]
    a = a * tl.exp(g[:, None] - g[None, :])
    seen = (times[:, None] >= times[None, :]) & (times < length)[:, None]
    a = tl.where(seen, a, 0.0)
    v_block_ptr = tl.make_block_ptr(v_ptr, (length, V), (HEADS * V, 1), (chunk * BT, v_block * BV), (BT, BV), (1, 0))
    out_block = tl.make_block_ptr(out_ptr, (length, V), (HEADS * V, 1), (chunk * BT, v_block * BV), (BT, BV), (1, 0))
    v = tl.load(v_block_ptr, boundary_check=(0, 1))
    out = out * scale + tl.dot(a.to(v.dtype), v) * scale
    tl.store(out_block, out.to(out_block.dtype.element_ty), boundary_check=(0, 1))


@triton.jit
def inverse_of_triangles(a_ptr, out_ptr, length, HEADS: tl.constexpr, BT: tl.constexpr):
    """(1 + a)^-1 of each 16x16 block below the diagonal, row by row."""
    block = tl.program_id(0)
    batch = tl.program_id(1) // HEADS
    head = tl.program_id(1) % HEADS
    first = (batch * length * HEADS + head) * BT
    offset = block * 16 % BT
    rows = tl.arange(0, 16)
    a_block = tl.make_block_ptr(a_ptr + first, (length, BT), (HEADS * BT, 1), (block * 16, offset), (16, 16), (1, 0))
    a = tl.load(a_block, boundary_check=(0, 1)).to(tl.float32)
    a = -tl.where(rows[:, None] > rows[None, :], a, 0.0)
    for i in range(1, min(16, length - block * 16)):
        row = -tl.load(a_ptr + first + (block * 16 + i) * HEADS * BT + rows + offset)
        row = tl.where(rows < i, row, 0.0)
        row = row + tl.sum(row[:, None] * a, 0)
        a = tl.where((rows == i)[:, None], row, a)
    a += rows[:, None] == rows[None, :]
    out_base = out_ptr + (batch * length * HEADS + head) * 16
    out_block = tl.make_block_ptr(out_base, (length, 16), (HEADS * 16, 1), (block * 16, 0), (16, 16), (1, 0))
    tl.store(out_block, a.to(out_block.dtype.element_ty), boundary_check=(0, 1))
