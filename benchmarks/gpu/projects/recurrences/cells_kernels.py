"""Cells that are run step by step: RWKV, an LSTM's gates, an RNN's loop."""

import triton
import triton.language as tl


@triton.jit
def rwkv6_steps(
    r_ptr, k_ptr, v_ptr, w_ptr, u_ptr, out_ptr, length, HEADS: tl.constexpr, D: tl.constexpr, BV: tl.constexpr
):
    """RWKV 6: a state of D x BV decays by a vector in each step, and the present has a bonus."""
    v_block = tl.program_id(0)
    batch = tl.program_id(1) // HEADS
    head = tl.program_id(1) % HEADS
    ks = tl.arange(0, D)
    vs = v_block * BV + tl.arange(0, BV)
    first = (batch * length * HEADS + head) * D
    u = tl.load(u_ptr + head * D + ks).to(tl.float32)
    h = tl.zeros([BV, D], dtype=tl.float32)
    for t in range(length):
        at = first + t * HEADS * D
        k = tl.load(k_ptr + at + ks).to(tl.float32)
        v = tl.load(v_ptr + at + vs).to(tl.float32)
        r = tl.load(r_ptr + at + ks).to(tl.float32)
        w = tl.load(w_ptr + at + ks).to(tl.float32)
        kv = k[None, :] * v[:, None]
        out = tl.sum((h + kv * u[None, :]) * r[None, :], 1)
        h = h * tl.exp(w)[None, :] + kv
        tl.store(out_ptr + at + vs, out.to(out_ptr.dtype.element_ty))


@triton.jit
def lstm_gates(gates_ptr, c_ptr, h_out_ptr, c_out_ptr, hidden, BLOCK: tl.constexpr):
    """Four gates of a row beside each other."""
    row = tl.program_id(0).to(tl.int64)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = j < hidden
    base = gates_ptr + row * 4 * hidden + j
    i = tl.sigmoid(tl.load(base, mask=mask).to(tl.float32))
    f = tl.sigmoid(tl.load(base + hidden, mask=mask).to(tl.float32))
    g = 2 * tl.sigmoid(2 * tl.load(base + 2 * hidden, mask=mask).to(tl.float32)) - 1
    o = tl.sigmoid(tl.load(base + 3 * hidden, mask=mask).to(tl.float32))
    c = f * tl.load(c_ptr + row * hidden + j, mask=mask) + i * g
    tl.store(c_out_ptr + row * hidden + j, c, mask=mask)
    h = o * (2 * tl.sigmoid(2 * c) - 1)
    tl.store(h_out_ptr + row * hidden + j, h.to(h_out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def rnn_steps(x_ptr, w_ptr, out_ptr, length, rows, BLOCK: tl.constexpr, D: tl.constexpr):
    """h = tanh(x + h W), W kept by the program; x [length, rows, D]."""
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, D)
    w = tl.load(w_ptr + d[:, None] * D + d[None, :])
    h = tl.zeros([BLOCK, D], dtype=tl.float32)
    for t in range(length):
        offsets = (t * rows + r)[:, None] * D + d[None, :]
        x = tl.load(x_ptr + offsets, mask=(r < rows)[:, None], other=0.0).to(tl.float32)
        h = 2 * tl.sigmoid(2 * (tl.dot(h.to(w.dtype), w) + x)) - 1
        tl.store(out_ptr + offsets, h.to(out_ptr.dtype.element_ty), mask=(r < rows)[:, None])
