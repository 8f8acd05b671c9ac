"""Activations, rotary embeddings, dropout, embeddings, an optimiser's step: what is computed element by element."""

import triton
import triton.language as tl


@triton.jit
def swiglu(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    gate = tl.load(gate_ptr + i, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + i, mask=mask)
    silu = (gate * tl.sigmoid(gate)).to(up.dtype)
    tl.store(out_ptr + i, silu * up, mask=mask)


@triton.jit
def swiglu_backward(dout_ptr, gate_ptr, up_ptr, dgate_ptr, dup_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    dout = tl.load(dout_ptr + i, mask=mask).to(tl.float32)
    gate = tl.load(gate_ptr + i, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + i, mask=mask).to(tl.float32)
    sigmoid = tl.sigmoid(gate)
    silu = gate * sigmoid
    dgate = dout * up * (silu * (1 - sigmoid) + sigmoid)
    tl.store(dgate_ptr + i, dgate.to(dgate_ptr.dtype.element_ty), mask=mask)
    tl.store(dup_ptr + i, (dout * silu).to(dup_ptr.dtype.element_ty), mask=mask)


@triton.jit
def tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def geglu(joined_ptr, out_ptr, num_columns, BLOCK: tl.constexpr):
    """Rows that hold the gate and then what is gated; GELU by its approximation with tanh."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < num_columns
    gate = tl.load(joined_ptr + row * 2 * num_columns + columns, mask=mask).to(tl.float32)
    up = tl.load(joined_ptr + row * 2 * num_columns + num_columns + columns, mask=mask).to(tl.float32)
    inner = 0.7978845608028654 * gate * (1 + 0.044715 * gate * gate)
    out = 0.5 * gate * (1 + tanh(inner)) * up
    tl.store(out_ptr + row * num_columns + columns, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def geglu_backward(dout_ptr, joined_ptr, djoined_ptr, num_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < num_columns
    dout = tl.load(dout_ptr + row * num_columns + columns, mask=mask).to(tl.float32)
    first = row * 2 * num_columns + columns
    gate = tl.load(joined_ptr + first, mask=mask).to(tl.float32)
    up = tl.load(joined_ptr + first + num_columns, mask=mask).to(tl.float32)
    inner = 0.7978845608028654 * gate * (1 + 0.044715 * gate * gate)
    t = tanh(inner)
    gelu = 0.5 * gate * (1 + t)
    slope = 0.5 * (1 + t) + 0.5 * gate * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * gate * gate)
    tl.store(djoined_ptr + first, (dout * up * slope).to(djoined_ptr.dtype.element_ty), mask=mask)
    tl.store(djoined_ptr + first + num_columns, (dout * gelu).to(djoined_ptr.dtype.element_ty), mask=mask)


@triton.jit
def rope(x_ptr, cos_ptr, sin_ptr, out_ptr, num_heads, HALF: tl.constexpr, HEADS: tl.constexpr):
    """Of a token, all heads: the first half of each is turned with the second."""
    token = tl.program_id(0).to(tl.int64)
    heads = tl.arange(0, HEADS)
    dims = tl.arange(0, HALF)
    mask = (heads < num_heads)[:, None] & (dims < HALF)[None, :]
    cos = tl.load(cos_ptr + token * HALF + dims)[None, :]
    sin = tl.load(sin_ptr + token * HALF + dims)[None, :]
    offsets = token * num_heads * 2 * HALF + heads[:, None] * 2 * HALF + dims[None, :]
    left = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    right = tl.load(x_ptr + offsets + HALF, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + offsets, (left * cos - right * sin).to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(out_ptr + offsets + HALF, (right * cos + left * sin).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def dropout(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask).to(tl.float32)
    kept = tl.rand(seed, i) > p
    tl.store(out_ptr + i, tl.where(kept, x / (1 - p), 0.0).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def embedding(ids_ptr, table_ptr, out_ptr, num_columns, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < num_columns
    row = tl.load(ids_ptr + token)
    tl.store(out_ptr + token * num_columns + columns, tl.load(table_ptr + row * num_columns + columns, mask=mask), mask)


@triton.jit
def embedding_backward(
    ids_ptr, dout_ptr, dtable_ptr, num_tokens, num_columns, TOKENS: tl.constexpr, BLOCK: tl.constexpr
):
    """Rows of several tokens are added to those of the table that they came from."""
    tokens = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    in_tokens = tokens < num_tokens
    mask = in_tokens[:, None] & (columns < num_columns)[None, :]
    rows = tl.load(ids_ptr + tokens, mask=in_tokens, other=0)
    dout = tl.load(dout_ptr + tokens.to(tl.int64)[:, None] * num_columns + columns[None, :], mask=mask, other=0.0)
    tl.atomic_add(dtable_ptr + rows[:, None] * num_columns + columns[None, :], dout.to(tl.float32), mask=mask)


@triton.jit
def adamw(
    param_ptr,
    gradient_ptr,
    mean_ptr,
    square_ptr,
    new_param_ptr,
    new_mean_ptr,
    new_square_ptr,
    n,
    rate,
    beta1,
    beta2,
    decay,
    correction1,
    correction2,
    eps,
    BLOCK: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    param = tl.load(param_ptr + i, mask=mask)
    gradient = tl.load(gradient_ptr + i, mask=mask).to(tl.float32)
    mean = tl.load(mean_ptr + i, mask=mask)
    square = tl.load(square_ptr + i, mask=mask)
    mean = beta1 * mean + (1 - beta1) * gradient
    square = beta2 * square + (1 - beta2) * gradient * gradient
    step = mean / correction1 / (tl.sqrt(square / correction2) + eps)
    tl.store(new_param_ptr + i, param * (1 - rate * decay) - rate * step, mask=mask)
    tl.store(new_mean_ptr + i, mean, mask=mask)
    tl.store(new_square_ptr + i, square, mask=mask)
