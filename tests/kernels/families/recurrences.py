"""State spaces and linear attention: a selective scan, attention in chunks with its backward, the delta rule."""

from __future__ import annotations

import deuteron as triton
import deuteron.language as tl
import numpy as np
from tests.kernels.case import Case, Launch, case, normal, poisoned, sigmoid, wide


@triton.jit
def selective_scan_kernel(
    x_ptr, dt_ptr, a_ptr, b_ptr, c_ptr, d_ptr, z_ptr, y_ptr, length, dim, N: tl.constexpr, BD: tl.constexpr
):
    """h = exp(dt * A) * h + dt * B * x;  y = C . h + D * x, gated; some channels for each program."""
    batch = tl.program_id(1)
    ds = tl.program_id(0) * BD + tl.arange(0, BD)
    ns = tl.arange(0, N)
    mask = ds < dim
    a = -tl.exp(tl.load(a_ptr + ds[:, None] * N + ns[None, :], mask=mask[:, None], other=0.0))
    skip = tl.load(d_ptr + ds, mask=mask, other=0.0)
    h = tl.zeros((BD, N), dtype=tl.float32)
    for t in range(length):
        at = (batch * length + t) * dim + ds
        x = tl.load(x_ptr + at, mask=mask, other=0.0)
        dt = tl.load(dt_ptr + at, mask=mask, other=0.0)
        dt = tl.where(dt <= 20.0, tl.log(1 + tl.exp(dt)), dt)
        b = tl.load(b_ptr + (batch * length + t) * N + ns)
        c = tl.load(c_ptr + (batch * length + t) * N + ns)
        h = tl.exp(dt[:, None] * a) * h + (dt * x)[:, None] * b[None, :]
        y = tl.sum(h * c[None, :], 1) + skip * x
        z = tl.load(z_ptr + at, mask=mask, other=0.0)
        tl.store(y_ptr + at, y * z * tl.sigmoid(z), mask=mask)


@triton.jit
def first_order_combine(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def gated_scan_kernel(a_ptr, x_ptr, h_ptr, length, T: tl.constexpr, REVERSE: tl.constexpr):
    """h[t] = a[t] * h[t - 1] + x[t], all steps of a row at once."""
    t = tl.arange(0, T)
    at = tl.program_id(0) * length + t
    a = tl.load(a_ptr + at, mask=t < length, other=1.0)
    x = tl.load(x_ptr + at, mask=t < length, other=0.0)
    _, h = tl.associative_scan((a, x), 0, first_order_combine, reverse=REVERSE)
    tl.store(h_ptr + at, h, mask=t < length)


@triton.jit
def chunk_states_kernel(
    k_ptr, v_ptr, g_ptr, h_ptr, T, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BK: tl.constexpr,
    BV: tl.constexpr,
):  # fmt: skip
    """The state in front of each chunk, decayed by the gates (in log2, summed up within a chunk)."""
    i_k, i_v, i_h = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    b_h = tl.zeros([BK, BV], dtype=tl.float32)
    NT = tl.cdiv(T, BT)
    for i_t in range(NT):
        p_h = tl.make_block_ptr(
            h_ptr + (i_h * NT + i_t) * K * V, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV), (1, 0)
        )
        tl.store(p_h, b_h.to(p_h.dtype.element_ty), boundary_check=(0, 1))
        p_k = tl.make_block_ptr(k_ptr + i_h * T * K, (K, T), (1, K), (i_k * BK, i_t * BT), (BK, BT), (0, 1))
        p_v = tl.make_block_ptr(v_ptr + i_h * T * V, (T, V), (V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_v = tl.load(p_v, boundary_check=(0, 1))
        last = tl.minimum(i_t * BT + BT, T) - 1
        g_last = tl.load(g_ptr + i_h * T + last)
        p_g = tl.make_block_ptr(g_ptr + i_h * T, (T,), (1,), (i_t * BT,), (BT,), (0,))
        b_g = tl.load(p_g, boundary_check=(0,))
        b_v = (b_v * tl.exp2(g_last - b_g)[:, None]).to(b_k.dtype)
        b_h *= tl.exp2(g_last)
        b_h += tl.dot(b_k, b_v)


@triton.jit
def chunk_output_kernel(
    q_ptr, k_ptr, v_ptr, g_ptr, h_ptr, o_ptr, scale, T, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr,
    BK: tl.constexpr, BV: tl.constexpr,
):  # fmt: skip
    i_v, i_t, i_h = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    b_o = tl.zeros([BT, BV], dtype=tl.float32)
    b_s = tl.zeros([BT, BT], dtype=tl.float32)
    for i_k in range(tl.cdiv(K, BK)):
        p_q = tl.make_block_ptr(q_ptr + i_h * T * K, (T, K), (K, 1), (i_t * BT, i_k * BK), (BT, BK), (1, 0))
        p_k = tl.make_block_ptr(k_ptr + i_h * T * K, (K, T), (1, K), (i_k * BK, i_t * BT), (BK, BT), (0, 1))
        p_h = tl.make_block_ptr(
            h_ptr + (i_h * tl.cdiv(T, BT) + i_t) * K * V, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV), (1, 0)
        )
        b_q = tl.load(p_q, boundary_check=(0, 1))
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_h = tl.load(p_h, boundary_check=(0, 1))
        b_o += tl.dot(b_q, b_h)
        b_s += tl.dot(b_q, b_k)
    p_g = tl.make_block_ptr(g_ptr + i_h * T, (T,), (1,), (i_t * BT,), (BT,), (0,))
    b_g = tl.load(p_g, boundary_check=(0,))
    b_o = b_o * tl.exp2(b_g)[:, None]
    t = i_t * BT + tl.arange(0, BT)
    keep = (t[:, None] >= t[None, :]) & (t[:, None] < T) & (t[None, :] < T)
    b_s = tl.where(keep, b_s * tl.exp2(b_g[:, None] - b_g[None, :]), 0)
    p_v = tl.make_block_ptr(v_ptr + i_h * T * V, (T, V), (V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
    p_o = tl.make_block_ptr(o_ptr + i_h * T * V, (T, V), (V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
    b_v = tl.load(p_v, boundary_check=(0, 1))
    b_o = (b_o + tl.dot(b_s.to(b_v.dtype), b_v)) * scale
    tl.store(p_o, b_o.to(p_o.dtype.element_ty), boundary_check=(0, 1))


@triton.jit
def chunk_cumsum_kernel(g_ptr, out_ptr, T, BT: tl.constexpr, REVERSE: tl.constexpr):
    p_g = tl.make_block_ptr(g_ptr + tl.program_id(1) * T, (T,), (1,), (tl.program_id(0) * BT,), (BT,), (0,))
    p_o = tl.make_block_ptr(out_ptr + tl.program_id(1) * T, (T,), (1,), (tl.program_id(0) * BT,), (BT,), (0,))
    b_g = tl.load(p_g, boundary_check=(0,)).to(tl.float32)
    b_o = tl.cumsum(b_g, axis=0)
    if REVERSE:
        b_o = -b_o + tl.sum(b_g, axis=0) + b_g
    tl.store(p_o, b_o, boundary_check=(0,))


@triton.jit
def linear_attention_backward_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, dk_ptr, dv_ptr, dq_ptr, scale, T, D: tl.constexpr, BT: tl.constexpr
):
    """Without gates; one program for each head, the chunks forward for dq, and backward for dk and dv."""
    head = tl.program_id(0) * T * D
    t, d = tl.arange(0, BT), tl.arange(0, D)
    h = tl.zeros((D, D), dtype=tl.float32)
    for i in range(tl.cdiv(T, BT)):
        at = head + (i * BT + t)[:, None] * D + d[None, :]
        mask = (i * BT + t < T)[:, None]
        k = tl.load(k_ptr + at, mask=mask, other=0.0)
        v = tl.load(v_ptr + at, mask=mask, other=0.0)
        do = tl.load(do_ptr + at, mask=mask, other=0.0)
        ds = tl.where(t[:, None] >= t[None, :], tl.dot(do, tl.trans(v)), 0.0)
        dq = tl.dot(ds.to(k.dtype), k) + tl.dot(do, tl.trans(h.to(do.dtype)))
        h += tl.dot(tl.trans(k), v)
        tl.store(dq_ptr + at, dq * scale, mask=mask)
    dh = tl.zeros((D, D), dtype=tl.float32)
    for i in range(tl.cdiv(T, BT) - 1, -1, -1):
        at = head + (i * BT + t)[:, None] * D + d[None, :]
        mask = (i * BT + t < T)[:, None]
        q = tl.load(q_ptr + at, mask=mask, other=0.0)
        k = tl.load(k_ptr + at, mask=mask, other=0.0)
        v = tl.load(v_ptr + at, mask=mask, other=0.0)
        do = tl.load(do_ptr + at, mask=mask, other=0.0)
        upper = t[:, None] <= t[None, :]
        s = tl.where(upper, tl.dot(k, tl.trans(q)), 0.0) * scale
        ds = tl.where(upper, tl.dot(v, tl.trans(do)), 0.0) * scale
        narrow = dh.to(q.dtype)
        tl.store(dv_ptr + at, tl.dot(s.to(do.dtype), do) + tl.dot(k, narrow), mask=mask)
        tl.store(dk_ptr + at, tl.dot(ds.to(q.dtype), q) + tl.dot(v, tl.trans(narrow)), mask=mask)
        dh += tl.dot(tl.trans(q), do) * scale


@triton.jit
def delta_rule_kernel(
    q_ptr, k_ptr, v_ptr, beta_ptr, o_ptr, state_ptr, scale, T, K: tl.constexpr, V: tl.constexpr, BV: tl.constexpr,
    STORE_STATE: tl.constexpr,
):  # fmt: skip
    """S += beta * k (v - k S): a step at a time, with some columns of the state for each program."""
    i_v, i_h = tl.program_id(0), tl.program_id(1)
    p_q = q_ptr + i_h * T * K + tl.arange(0, K)
    p_k = k_ptr + i_h * T * K + tl.arange(0, K)
    p_v = v_ptr + i_h * T * V + i_v * BV + tl.arange(0, BV)
    p_o = o_ptr + i_h * T * V + i_v * BV + tl.arange(0, BV)
    p_beta = beta_ptr + i_h * T
    s = tl.zeros([BV, K], dtype=tl.float32)
    for _ in range(T):
        q = tl.load(p_q).to(tl.float32) * scale
        k = tl.load(p_k).to(tl.float32)
        v = tl.load(p_v).to(tl.float32)
        beta = tl.load(p_beta).to(tl.float32)
        v -= tl.sum(s * k[None, :], axis=1)
        s += (v * beta)[:, None] * k[None, :]
        tl.store(p_o, tl.sum(s * q[None, :], axis=1).to(p_o.dtype.element_ty))
        p_q += K
        p_k += K
        p_v += V
        p_o += V
        p_beta += 1
    if STORE_STATE:
        at = i_h * K * V + tl.arange(0, K)[None, :] * V + (i_v * BV + tl.arange(0, BV))[:, None]
        tl.store(state_ptr + at, s)


@case
def selective_scan(rng: np.random.Generator) -> Case:
    batch, length, dim, n = 2, 9, 10, 8
    x, dt, z = (normal(rng, (batch, length, dim)) for _ in range(3))
    a, d = normal(rng, (dim, n), scale=0.3), normal(rng, dim)
    b, c = (normal(rng, (batch, length, n)) for _ in range(2))
    y, expected, h = poisoned(x.shape), np.empty(x.shape), np.zeros((batch, dim, n))
    for t in range(length):
        step = np.log1p(np.exp(wide(dt)[:, t]))
        h = np.exp(step[:, :, None] * -np.exp(wide(a))) * h + (step * x[:, t])[:, :, None] * wide(b)[:, t, None]
        gate = wide(z)[:, t] * sigmoid(wide(z)[:, t])
        expected[:, t] = ((h * wide(c)[:, t, None]).sum(-1) + wide(d) * x[:, t]) * gate
    args = x, dt, a, b, c, d, z, y, length, dim
    launch = Launch(selective_scan_kernel, (2, batch), args, {"N": n, "BD": 8, "num_warps": 1})
    return Case([launch], [(y, expected, 1e-4)])


@case
def gated_scan(rng: np.random.Generator) -> Case:
    a, x = sigmoid(normal(rng, (3, 100))), normal(rng, (3, 100))
    h, back = poisoned(x.shape), poisoned(x.shape)

    def scan(steps):
        out, state = np.empty(x.shape), np.zeros(3)
        for t in steps:
            state = wide(a)[:, t] * state + wide(x)[:, t]
            out[:, t] = state
        return out

    launches = [
        Launch(gated_scan_kernel, (3,), (a, x, h, 100), {"T": 128, "REVERSE": False}),
        Launch(gated_scan_kernel, (3,), (a, x, back, 100), {"T": 128, "REVERSE": True}),
    ]
    return Case(launches, [(h, scan(range(100)), 1e-5), (back, scan(range(99, -1, -1)), 1e-5)])


@case
def gated_linear_attention(rng: np.random.Generator) -> Case:
    heads, length, dk, dv, bt = 2, 41, 32, 16, 16
    q, k, v = (normal(rng, (heads, length, d), "float16") for d in (dk, dk, dv))
    gates = -np.abs(normal(rng, (heads, length), scale=0.1))
    chunks = -(-length // bt)
    g, o = poisoned(gates.shape), poisoned(v.shape, "float16")
    h = poisoned((heads, chunks, dk, dv), "float16")
    expected, state = np.empty(v.shape), np.zeros((heads, dk, dv))
    for t in range(length):
        state = state * 2.0 ** wide(gates)[:, t, None, None] + wide(k)[:, t, :, None] * wide(v)[:, t, None]
        expected[:, t] = np.einsum("hk,hkv->hv", wide(q)[:, t], state) * 0.2
    tiles = {"K": dk, "V": dv, "BT": bt, "BK": 16, "BV": 16}
    launches = [
        Launch(chunk_cumsum_kernel, (chunks, heads), (gates, g, length), {"BT": bt, "REVERSE": False, "num_warps": 1}),
        Launch(chunk_states_kernel, (2, 1, heads), (k, v, g, h, length), tiles),
        Launch(chunk_output_kernel, (1, chunks, heads), (q, k, v, g, h, o, 0.2, length), tiles),
    ]
    return Case(launches, [(o, expected, 5e-3)])


@case
def linear_attention_backward(rng: np.random.Generator) -> Case:
    heads, n, d = 2, 37, 16
    q, k, v, do = (normal(rng, (heads, n, d), "float16") for _ in range(4))
    dq, dk, dv = (poisoned(q.shape) for _ in range(3))
    lower = np.tril(np.ones((n, n)))
    s, ds = (lower * (wide(x) @ np.swapaxes(wide(y), 1, 2)) * 0.25 for x, y in ((q, k), (do, v)))
    expected = ds @ wide(k), np.swapaxes(ds, 1, 2) @ wide(q), np.swapaxes(s, 1, 2) @ wide(do)
    args = q, k, v, do, dk, dv, dq, 0.25, n
    launch = Launch(linear_attention_backward_kernel, (heads,), args, {"D": d, "BT": 16})
    return Case([launch], [(got, want, 3e-3) for got, want in zip((dq, dk, dv), expected, strict=True)])


@case
def delta_rule(rng: np.random.Generator) -> Case:
    heads, n, dk, dv = 2, 11, 16, 16
    q, k, v = (normal(rng, (heads, n, d)) for d in (dk, dk, dv))
    k /= np.sqrt((k * k).sum(-1, keepdims=True))
    beta, o, state = sigmoid(normal(rng, (heads, n))), poisoned(v.shape), poisoned((heads, dk, dv))
    expected, s = np.empty(v.shape), np.zeros((heads, dk, dv))
    for t in range(n):
        error = wide(v)[:, t] - np.einsum("hk,hkv->hv", wide(k)[:, t], s)
        s = s + wide(k)[:, t, :, None] * (wide(beta)[:, t, None] * error)[:, None]
        expected[:, t] = np.einsum("hk,hkv->hv", wide(q)[:, t], s) * 0.5
    options = {"K": dk, "V": dv, "BV": 8, "STORE_STATE": True, "num_warps": 1}
    launch = Launch(delta_rule_kernel, (2, heads), (q, k, v, beta, o, state, 0.5, n), options)
    return Case([launch], [(o, expected, 1e-4), (state, s, 1e-4)])
