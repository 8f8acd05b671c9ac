"""Models with a state: Mamba 2 in chunks, delta rules, RWKV, convolutions and states of one step, an LSTM's gates."""

import triton
import triton.language as tl


@triton.jit
def ssd_chunk_cumsum(
    dt_ptr, a_ptr, bias_ptr, dt_out_ptr, sums_ptr, length, heads, CHUNK: tl.constexpr, HEADS: tl.constexpr
):
    """Steps by softplus, and within each chunk the sums of steps times A; dt [length, heads], sums [heads, length]."""
    chunk = tl.program_id(0)
    h = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    t = chunk * CHUNK + tl.arange(0, CHUNK)
    mask = (h < heads)[:, None] & (t < length)[None, :]
    dt = tl.load(dt_ptr + t[None, :] * heads + h[:, None], mask=mask, other=0.0).to(tl.float32)
    dt += tl.load(bias_ptr + h, mask=h < heads, other=0.0).to(tl.float32)[:, None]
    dt = tl.where(dt <= 20.0, tl.log(1 + tl.exp(dt)), dt)
    dt = tl.where(mask, dt, 0.0)
    a = tl.load(a_ptr + h, mask=h < heads, other=0.0).to(tl.float32)
    tl.store(dt_out_ptr + h[:, None] * length + t[None, :], dt, mask=mask)
    tl.store(sums_ptr + h[:, None] * length + t[None, :], tl.cumsum(dt * a[:, None], axis=1), mask=mask)


@triton.jit
def ssd_chunk_state(
    x_ptr,
    b_ptr,
    states_ptr,
    dt_ptr,
    sums_ptr,
    length,
    heads,
    stride_x,
    stride_b,
    P: tl.constexpr,
    N: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """x^T times B, each time step by what is left of it at the end of its chunk; states [chunks, heads, P, N]."""
    chunk = tl.program_id(1)
    head = tl.program_id(2)
    num_n = N // BLOCK_N
    m = tl.program_id(0) // num_n * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(0) % num_n * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    first = chunk * CHUNK
    x_ptrs = x_ptr + first * stride_x + head * P + m[:, None] + k[None, :] * stride_x
    b_ptrs = b_ptr + first * stride_b + n[None, :] + k[:, None] * stride_b
    dt_ptrs = dt_ptr + head * length + first + k
    sums_ptrs = sums_ptr + head * length + first + k
    last = tl.load(sums_ptr + head * length + first + CHUNK - 1).to(tl.float32)
    limit = min(CHUNK, length - first)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, limit, BLOCK_K):
        x = tl.load(x_ptrs, mask=(m[:, None] < P) & (k[None, :] < limit - start), other=0.0)
        b = tl.load(b_ptrs, mask=(k[:, None] < limit - start) & (n[None, :] < N), other=0.0).to(tl.float32)
        sums = tl.load(sums_ptrs, mask=k < limit - start, other=0.0).to(tl.float32)
        dt = tl.load(dt_ptrs, mask=k < limit - start, other=0.0).to(tl.float32)
        b *= (tl.exp(last - sums) * dt)[:, None]
        acc += tl.dot(x, b.to(x_ptr.dtype.element_ty))
        x_ptrs += BLOCK_K * stride_x
        b_ptrs += BLOCK_K * stride_b
        dt_ptrs += BLOCK_K
        sums_ptrs += BLOCK_K
    out = states_ptr + ((chunk * heads + head) * P + m[:, None]) * N + n[None, :]
    tl.store(out, acc.to(states_ptr.dtype.element_ty), mask=(m[:, None] < P) & (n[None, :] < N))


@triton.jit
def ssd_state_passing(
    states_ptr, sums_ptr, out_ptr, chunks, heads, length, size, CHUNK: tl.constexpr, BLOCK: tl.constexpr
):
    """From chunk to chunk: what each begins with."""
    head = tl.program_id(1)
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    state = tl.zeros((BLOCK,), dtype=tl.float32)
    states_ptrs = states_ptr + head * size + m
    out_ptrs = out_ptr + head * size + m
    for chunk in range(chunks):
        tl.store(out_ptrs, state.to(out_ptr.dtype.element_ty), mask=m < size)
        new = tl.load(states_ptrs, mask=m < size, other=0.0).to(tl.float32)
        decay = tl.load(sums_ptr + head * length + chunk * CHUNK + CHUNK - 1).to(tl.float32)
        state = tl.exp(decay) * state + new
        states_ptrs += heads * size
        out_ptrs += heads * size


@triton.jit
def ssd_chunk_scan(
    cb_ptr,
    x_ptr,
    c_ptr,
    dt_ptr,
    sums_ptr,
    states_ptr,
    d_ptr,
    out_ptr,
    length,
    heads,
    stride_x,
    stride_c,
    P: tl.constexpr,
    N: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """What the state before the chunk and the steps of the chunk up to now give; cb [chunks, CHUNK, CHUNK]."""
    chunk = tl.program_id(1)
    head = tl.program_id(2)
    num_n = P // BLOCK_N
    m = tl.program_id(0) // num_n * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(0) % num_n * BLOCK_N + tl.arange(0, BLOCK_N)
    pid_m = tl.program_id(0) // num_n
    first = chunk * CHUNK
    limit = min(CHUNK, length - first)
    sums_base = sums_ptr + head * length + first
    sums_m = tl.load(sums_base + m, mask=m < limit, other=0.0).to(tl.float32)
    states = tl.arange(0, N)
    c = tl.load(c_ptr + (first + m[:, None]) * stride_c + states[None, :], mask=m[:, None] < limit, other=0.0)
    state_ptrs = states_ptr + ((chunk * heads + head) * P + n[None, :]) * N + states[:, None]
    state = tl.load(state_ptrs, mask=n[None, :] < P, other=0.0).to(c_ptr.dtype.element_ty)
    acc = tl.dot(c, state) * tl.exp(sums_m)[:, None]
    k = tl.arange(0, BLOCK_K)
    cb_ptrs = cb_ptr + chunk * CHUNK * CHUNK + m[:, None] * CHUNK + k[None, :]
    x_ptrs = x_ptr + (first + k[:, None]) * stride_x + head * P + n[None, :]
    dt_ptrs = dt_ptr + head * length + first + k
    sums_ptrs = sums_base + k
    k_max = min((pid_m + 1) * BLOCK_M, limit)
    for start in range(0, k_max, BLOCK_K):
        cb = tl.load(cb_ptrs, mask=(m[:, None] < CHUNK) & (k[None, :] < CHUNK - start), other=0.0).to(tl.float32)
        sums_k = tl.load(sums_ptrs, mask=k < limit - start, other=0.0).to(tl.float32)
        cb *= tl.exp(sums_m[:, None] - sums_k[None, :])
        cb *= tl.load(dt_ptrs, mask=k < limit - start, other=0.0).to(tl.float32)
        cb = tl.where(m[:, None] >= start + k[None, :], cb, 0.0).to(x_ptr.dtype.element_ty)
        x = tl.load(x_ptrs, mask=(k[:, None] < limit - start) & (n[None, :] < P), other=0.0)
        acc += tl.dot(cb, x)
        cb_ptrs += BLOCK_K
        x_ptrs += BLOCK_K * stride_x
        dt_ptrs += BLOCK_K
        sums_ptrs += BLOCK_K
    own = (first + m[:, None]) * stride_x + head * P + n[None, :]
    mask = (m[:, None] < limit) & (n[None, :] < P)
    acc += tl.load(x_ptr + own, mask=mask, other=0.0).to(tl.float32) * tl.load(d_ptr + head).to(tl.float32)
    tl.store(out_ptr + own, acc.to(out_ptr.dtype.element_ty), mask=mask)


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
def convolution_step(
    x_ptr,
    state_ptr,
    weight_ptr,
    bias_ptr,
    slots_ptr,
    out_ptr,
    channels,
    stride_slot,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """A token of each sequence: the last columns of its state and it, times the weights; the state moves on by one."""
    sequence = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = c < channels
    slot = tl.load(slots_ptr + sequence).to(tl.int64)
    state_ptrs = state_ptr + slot * stride_slot + c * (WIDTH - 1)
    acc = tl.load(bias_ptr + c, mask=mask, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + sequence * channels + c, mask=mask, other=0.0)
    for j in tl.static_range(WIDTH - 1):
        column = tl.load(state_ptrs + j, mask=mask, other=0.0)
        acc += column.to(tl.float32) * tl.load(weight_ptr + c * WIDTH + j, mask=mask, other=0.0).to(tl.float32)
        if j > 0:
            tl.store(state_ptrs + j - 1, column, mask=mask)
    acc += x.to(tl.float32) * tl.load(weight_ptr + c * WIDTH + WIDTH - 1, mask=mask, other=0.0).to(tl.float32)
    tl.store(state_ptrs + WIDTH - 2, x, mask=mask)
    acc = acc / (1 + tl.exp(-acc))
    tl.store(out_ptr + sequence * channels + c, acc.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def state_update(
    state_ptr,
    x_ptr,
    dt_ptr,
    bias_ptr,
    a_ptr,
    b_ptr,
    c_ptr,
    d_ptr,
    z_ptr,
    out_ptr,
    dim,
    heads,
    groups,
    BLOCK: tl.constexpr,
    N: tl.constexpr,
):
    """A token of Mamba: state [batch, heads, dim, N] decays, gets x times B, and is read by C."""
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    batch = tl.program_id(1)
    head = tl.program_id(2)
    n = tl.arange(0, N)
    mask = m < dim
    place = (batch * heads + head) * dim + m
    state_ptrs = state_ptr + place.to(tl.int64)[:, None] * N + n[None, :]
    state = tl.load(state_ptrs, mask=mask[:, None], other=0.0)
    x = tl.load(x_ptr + place, mask=mask, other=0.0).to(tl.float32)
    dt = tl.load(dt_ptr + place, mask=mask, other=0.0).to(tl.float32)
    dt += tl.load(bias_ptr + head * dim + m, mask=mask, other=0.0).to(tl.float32)
    dt = tl.where(dt <= 20.0, tl.log(1 + tl.exp(dt)), dt)
    a = tl.load(a_ptr + (head * dim + m)[:, None] * N + n[None, :], mask=mask[:, None], other=0.0).to(tl.float32)
    group = head // (heads // groups)
    b = tl.load(b_ptr + (batch * groups + group) * N + n).to(tl.float32)
    c = tl.load(c_ptr + (batch * groups + group) * N + n).to(tl.float32)
    d = tl.load(d_ptr + head * dim + m, mask=mask, other=0.0).to(tl.float32)
    z = tl.load(z_ptr + place, mask=mask, other=0.0).to(tl.float32)
    state = state * tl.exp(a * dt[:, None]) + b[None, :] * dt[:, None] * x[:, None]
    tl.store(state_ptrs, state, mask=mask[:, None])
    out = tl.sum(state * c[None, :], axis=1) + x * d
    out *= z * tl.sigmoid(z)
    tl.store(out_ptr + place, out.to(out_ptr.dtype.element_ty), mask=mask)


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
