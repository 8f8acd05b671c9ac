"""Linear attention, state spaces, convolutions along sequences, mixtures of experts."""

import triton
import triton.language as tl


@triton.jit
def chunked_linear_attention(
    q_ptr,
    k_ptr,
    v_ptr,
    decays_ptr,
    out_ptr,
    num_heads,
    length,
    DIM: tl.constexpr,
    BLOCK_V: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """out[t] = sum over s <= t of decay^(t - s) (q[t] . k[s]) v[s], chunk by chunk; [batch, heads, length, DIM].

    What the chunks before contribute is in the state, [DIM, BLOCK_V]. `decays` are logarithms of 2, one for each head.
    """
    head = tl.program_id(0).to(tl.int64)
    decay = tl.load(decays_ptr + tl.program_id(0) % num_heads)
    places = tl.arange(0, CHUNK)
    dims = tl.arange(0, DIM)
    values = tl.program_id(1) * BLOCK_V + tl.arange(0, BLOCK_V)
    base = head * length * DIM
    distance = places[:, None] - places[None, :]
    within = tl.where(distance >= 0, tl.exp2(decay * distance), 0.0)
    from_start = tl.exp2(decay * (places + 1))
    to_end = tl.exp2(decay * (CHUNK - 1 - places))
    of_chunk = tl.exp2(decay * CHUNK)
    state = tl.zeros([DIM, BLOCK_V], dtype=tl.float32)
    for start in range(0, length, CHUNK):
        rows = base + (start + places)[:, None] * DIM
        q = tl.load(q_ptr + rows + dims[None, :])
        k = tl.load(k_ptr + rows + dims[None, :])
        v = tl.load(v_ptr + rows + values[None, :])
        scores = tl.dot(q, tl.trans(k)) * within
        out = tl.dot(q, state.to(q.dtype)) * from_start[:, None]
        out = tl.dot(scores.to(v.dtype), v, out)
        tl.store(out_ptr + rows + values[None, :], out.to(out_ptr.dtype.element_ty))
        late = (v * to_end[:, None]).to(v.dtype)
        state = tl.dot(tl.trans(k), late, state * of_chunk)


@triton.jit
def selective_scan(
    x_ptr,
    step_ptr,
    a_ptr,
    b_ptr,
    c_ptr,
    out_ptr,
    length,
    num_channels,
    STATES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """h = exp(step * a) * h + step * b * x; out = sum over states of c * h. x, step [batch, length, channels]."""
    batch = tl.program_id(0).to(tl.int64)
    channels = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    states = tl.arange(0, STATES)
    mask = channels < num_channels
    a = tl.load(a_ptr + channels[:, None] * STATES + states[None, :], mask=mask[:, None], other=0.0)
    h = tl.zeros([BLOCK, STATES], dtype=tl.float32)
    for t in range(length):
        row = batch * length + t
        x = tl.load(x_ptr + row * num_channels + channels, mask=mask, other=0.0).to(tl.float32)
        step = tl.load(step_ptr + row * num_channels + channels, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + row * STATES + states).to(tl.float32)
        c = tl.load(c_ptr + row * STATES + states).to(tl.float32)
        h = tl.exp(step[:, None] * a) * h + (step * x)[:, None] * b[None, :]
        out = tl.sum(h * c[None, :], axis=1)
        tl.store(out_ptr + row * num_channels + channels, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def combine_steps(a_left, b_left, a_right, b_right):
    return a_left * a_right, b_left * a_right + b_right


@triton.jit
def linear_recurrence(a_ptr, x_ptr, out_ptr, length, num_channels, TIME: tl.constexpr, BLOCK: tl.constexpr):
    """h[t] = a[t] * h[t - 1] + x[t] by an associative scan along time, block by block; [batch, length, channels]."""
    batch = tl.program_id(0).to(tl.int64)
    channels = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    times = tl.arange(0, TIME)
    in_channels = (channels < num_channels)[None, :]
    h = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, length, TIME):
        t = start + times
        mask = (t < length)[:, None] & in_channels
        offsets = (batch * length + t)[:, None] * num_channels + channels[None, :]
        a = tl.load(a_ptr + offsets, mask=mask, other=1.0).to(tl.float32)
        x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        factors, sums = tl.associative_scan((a, x), 0, combine_steps)
        out = factors * h[None, :] + sums
        tl.store(out_ptr + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)
        h = tl.sum(tl.where((times == TIME - 1)[:, None], out, 0.0), axis=0)


@triton.jit
def depthwise_convolution(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    length,
    num_channels,
    WIDTH: tl.constexpr,
    TIME: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Causal, along the sequence, and SiLU; x [batch, length, channels], weight [channels, WIDTH]."""
    batch = tl.program_id(2).to(tl.int64)
    times = tl.program_id(0) * TIME + tl.arange(0, TIME)
    channels = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    in_channels = channels < num_channels
    base = batch * length * num_channels
    acc = tl.zeros([TIME, BLOCK], dtype=tl.float32)
    acc += tl.load(bias_ptr + channels, mask=in_channels, other=0.0).to(tl.float32)[None, :]
    for tap in tl.static_range(WIDTH):
        t = times + (tap - WIDTH + 1)
        mask = ((t >= 0) & (t < length))[:, None] & in_channels[None, :]
        x = tl.load(x_ptr + base + t[:, None] * num_channels + channels[None, :], mask=mask, other=0.0)
        weight = tl.load(weight_ptr + channels * WIDTH + tap, mask=in_channels, other=0.0).to(tl.float32)
        acc += x.to(tl.float32) * weight[None, :]
    out = acc * tl.sigmoid(acc)
    mask = (times < length)[:, None] & in_channels[None, :]
    out_ptrs = out_ptr + base + times[:, None] * num_channels + channels[None, :]
    tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def mixture_of_experts(
    a_ptr,
    w_ptr,
    out_ptr,
    ids_ptr,
    experts_ptr,
    num_ids,
    N,
    K,
    TOP_K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """ids are pairs of token and choice (token * TOP_K + choice), sorted by expert and padded to whole tiles with
    `num_ids`; experts has the expert of each tile. Rows of a are gathered by token; w [experts, N, K].
    """
    ids = tl.load(ids_ptr + tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M))
    expert = tl.load(experts_ptr + tl.program_id(0)).to(tl.int64)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    real = (ids < num_ids)[:, None]
    in_columns = (columns < N)[None, :]
    a_ptrs = a_ptr + (ids // TOP_K)[:, None] * K + ks[None, :]
    w_ptrs = w_ptr + expert * N * K + columns[None, :] * K + ks[:, None]
    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for _ in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=real, other=0.0)
        w = tl.load(w_ptrs, mask=in_columns, other=0.0)
        acc = tl.dot(a, w, acc)
        a_ptrs += BLOCK_K
        w_ptrs += BLOCK_K
    out_ptrs = out_ptr + ids.to(tl.int64)[:, None] * N + columns[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=real & in_columns)


@triton.jit
def combine_experts(parts_ptr, weights_ptr, out_ptr, num_columns, TOP_K: tl.constexpr, BLOCK: tl.constexpr):
    """Of each token the results of its experts, times their weights."""
    token = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < num_columns
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for choice in tl.static_range(TOP_K):
        weight = tl.load(weights_ptr + token * TOP_K + choice)
        part = tl.load(parts_ptr + (token * TOP_K + choice) * num_columns + columns, mask=mask, other=0.0)
        acc += weight * part.to(tl.float32)
    tl.store(out_ptr + token * num_columns + columns, acc.to(out_ptr.dtype.element_ty), mask=mask)
