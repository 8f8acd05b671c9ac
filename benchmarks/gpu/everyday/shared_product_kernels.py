"""Matrix products whose work is shared out unusually, of many matrices, with more than a product in them."""

import triton
import triton.language as tl


@triton.jit
def split_k(
    a_ptr, b_ptr, out_ptr, M, N, K, k_per_program, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    """The third axis of the grid shares out k; each program adds its part to memory."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.program_id(2) * k_per_program + tl.arange(0, BLOCK_K)
    in_rows = (rows < M)[:, None]
    in_columns = (columns < N)[None, :]
    a_ptrs = a_ptr + rows[:, None] * K + ks[None, :]
    b_ptrs = b_ptr + ks[:, None] * N + columns[None, :]
    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for _ in range(0, k_per_program, BLOCK_K):
        a = tl.load(a_ptrs, mask=in_rows, other=0.0)
        b = tl.load(b_ptrs, mask=in_columns, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N
    tl.atomic_add(out_ptr + rows[:, None] * N + columns[None, :], acc, mask=in_rows & in_columns)


@triton.jit
def stream_k(a_ptr, b_ptr, out_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Each program has an equal share of all steps of all tiles, and adds what it has of a tile to memory."""
    num_n = tl.cdiv(N, BLOCK_N)
    num_k = tl.cdiv(K, BLOCK_K)
    num_steps = tl.cdiv(M, BLOCK_M) * num_n * num_k
    share = tl.cdiv(num_steps, tl.num_programs(0))
    step = tl.program_id(0) * share
    last = min(step + share, num_steps)
    while step < last:
        tile = step // num_k
        first_k = step - tile * num_k
        num_here = min(num_k - first_k, last - step)
        rows = tile // num_n * BLOCK_M + tl.arange(0, BLOCK_M)
        columns = tile % num_n * BLOCK_N + tl.arange(0, BLOCK_N)
        ks = first_k * BLOCK_K + tl.arange(0, BLOCK_K)
        a_ptrs = a_ptr + rows[:, None] * K + ks[None, :]
        b_ptrs = b_ptr + ks[:, None] * N + columns[None, :]
        acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
        for k in range(num_here):
            left = K - (first_k + k) * BLOCK_K
            in_k = tl.arange(0, BLOCK_K) < left
            a = tl.load(a_ptrs, mask=(rows < M)[:, None] & in_k[None, :], other=0.0)
            b = tl.load(b_ptrs, mask=in_k[:, None] & (columns < N)[None, :], other=0.0)
            acc = tl.dot(a, b, acc)
            a_ptrs += BLOCK_K
            b_ptrs += BLOCK_K * N
        mask = (rows < M)[:, None] & (columns < N)[None, :]
        tl.atomic_add(out_ptr + rows[:, None] * N + columns[None, :], acc, mask=mask)
        step += num_here


@triton.jit
def grouped(
    a_ptr,
    b_ptr,
    out_ptr,
    starts_ptr,
    num_groups,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Group g multiplies the rows of a from starts[g] to starts[g + 1] with b[g]; programs take tiles in turn."""
    num_n = tl.cdiv(N, BLOCK_N)
    tile = tl.program_id(0)
    before = 0
    for group in range(num_groups):
        first = tl.load(starts_ptr + group)
        end = tl.load(starts_ptr + group + 1)
        num_tiles = tl.cdiv(end - first, BLOCK_M) * num_n
        while tile < before + num_tiles:
            here = tile - before
            rows = first + here // num_n * BLOCK_M + tl.arange(0, BLOCK_M)
            columns = here % num_n * BLOCK_N + tl.arange(0, BLOCK_N)
            ks = tl.arange(0, BLOCK_K)
            a_ptrs = a_ptr + rows[:, None] * K + ks[None, :]
            b_ptrs = b_ptr + group.to(tl.int64) * N * K + columns[None, :] * K + ks[:, None]
            acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
            for _ in range(0, K, BLOCK_K):
                a = tl.load(a_ptrs, mask=(rows < end)[:, None], other=0.0)
                b = tl.load(b_ptrs, mask=(columns < N)[None, :], other=0.0)
                acc = tl.dot(a, b, acc)
                a_ptrs += BLOCK_K
                b_ptrs += BLOCK_K
            mask = (rows < end)[:, None] & (columns < N)[None, :]
            tl.store(out_ptr + rows[:, None] * N + columns[None, :], acc.to(out_ptr.dtype.element_ty), mask=mask)
            tile += tl.num_programs(0)
        before += num_tiles


@triton.jit
def batched(a_ptr, b_ptr, out_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """A program for each pair of small matrices."""
    batch = tl.program_id(0).to(tl.int64)
    rows = tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    in_a = (rows < M)[:, None] & (ks < K)[None, :]
    in_b = (ks < K)[:, None] & (columns < N)[None, :]
    a = tl.load(a_ptr + batch * M * K + rows[:, None] * K + ks[None, :], mask=in_a, other=0.0)
    b = tl.load(b_ptr + batch * K * N + ks[:, None] * N + columns[None, :], mask=in_b, other=0.0)
    out = tl.dot(a, b).to(out_ptr.dtype.element_ty)
    in_out = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(out_ptr + batch * M * N + rows[:, None] * N + columns[None, :], out, mask=in_out)


@triton.jit
def with_bias_and_gelu(
    a_ptr,
    b_ptr,
    bias_ptr,
    residual_ptr,
    out_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """gelu(a @ b + bias) + residual; GELU by the sigmoid."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (rows % M)[:, None] * K + ks[None, :]
    b_ptrs = b_ptr + ks[:, None] * N + (columns % N)[None, :]
    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(ks < K - k)[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=(ks < K - k)[:, None], other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N
    mask = (rows < M)[:, None] & (columns < N)[None, :]
    acc += tl.load(bias_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)[None, :]
    acc *= tl.sigmoid(1.702 * acc)
    offsets = rows[:, None] * N + columns[None, :]
    acc += tl.load(residual_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + offsets, acc.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def gated(
    a_ptr, gate_ptr, up_ptr, out_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    """silu(a @ gate) * (a @ up): two products that share their rows."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    in_rows = (rows < M)[:, None]
    in_columns = (columns < N)[None, :]
    a_ptrs = a_ptr + rows[:, None] * K + ks[None, :]
    offsets = columns[None, :] * K + ks[:, None]
    gate = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    up = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs + k, mask=in_rows, other=0.0)
        gate = tl.dot(a, tl.load(gate_ptr + offsets + k, mask=in_columns, other=0.0), gate)
        up = tl.dot(a, tl.load(up_ptr + offsets + k, mask=in_columns, other=0.0), up)
    out = gate * tl.sigmoid(gate) * up
    out_ptrs = out_ptr + rows[:, None] * N + columns[None, :]
    tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty), mask=in_rows & in_columns)


@triton.jit
def linear_cross_entropy(
    hidden_ptr,
    w_ptr,
    labels_ptr,
    max_ptr,
    sum_ptr,
    own_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Of a tile of logits, which is not stored, each row's maximum and sum of exponentials, and the label's logit.

    max and sum are [tiles of columns, M]: what follows joins them.
    """
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    in_rows = rows < M
    in_columns = (columns < N)[None, :]
    a_ptrs = hidden_ptr + rows[:, None] * K + ks[None, :]
    w_ptrs = w_ptr + columns.to(tl.int64)[None, :] * K + ks[:, None]
    logits = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for _ in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=in_rows[:, None], other=0.0)
        w = tl.load(w_ptrs, mask=in_columns, other=0.0)
        logits = tl.dot(a, w, logits)
        a_ptrs += BLOCK_K
        w_ptrs += BLOCK_K
    logits = tl.where(in_columns, logits, -float("inf"))
    labels = tl.load(labels_ptr + rows, mask=in_rows, other=-1)
    is_own = columns[None, :] == labels[:, None]
    row_max = tl.max(logits, axis=1)
    row_sum = tl.sum(tl.exp(logits - row_max[:, None]), axis=1)
    place = tl.program_id(1) * M + rows
    tl.store(max_ptr + place, row_max, mask=in_rows)
    tl.store(sum_ptr + place, row_sum, mask=in_rows)
    own = tl.broadcast_to((own_ptr + rows)[:, None], [BLOCK_M, BLOCK_N])
    tl.store(own, logits, mask=is_own & in_rows[:, None])
