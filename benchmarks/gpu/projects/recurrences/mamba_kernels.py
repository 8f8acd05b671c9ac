"""Mamba 2: its state space in chunks, and one step of its convolution and of its state."""

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
