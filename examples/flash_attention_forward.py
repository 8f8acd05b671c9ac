"""The forward pass of FlashAttention with its 32 parameters: batches, strides, uneven sizes, log-sum-exp.

The file says `import triton` and knows nothing of Deuteron:

    deuteron run examples/flash_attention_forward.py

EVEN_M, EVEN_N and EVEN_HEADDIM are booleans at run time: true where the lengths are multiples of the tiles,
so that loads and stores need no mask. Queries, keys and values have the shape (batch, seqlen, nheads,
headdim) and any strides but 1 for the last axis. Lse and TMP are (batch, nheads, seqlen_q_rounded) in fp32,
with seqlen_q_rounded a multiple of BLOCK_M. Factors for the rows go through TMP, from the layout of a
reduction to the layout of an accumulator. `examples/aot` compiles this kernel ahead of time and links it
into a C++ program.
"""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def load_tile(ptrs, rows, num_rows, dims, num_dims, EVEN_ROWS, EVEN_DIMS):
    """A tile with zeros outside of num_rows x num_dims; without a mask where that is even."""
    if EVEN_ROWS:
        if EVEN_DIMS:
            tile = tl.load(ptrs)
        else:
            tile = tl.load(ptrs, mask=dims[None, :] < num_dims, other=0.0)
    else:
        if EVEN_DIMS:
            tile = tl.load(ptrs, mask=rows[:, None] < num_rows, other=0.0)
        else:
            tile = tl.load(ptrs, mask=(rows[:, None] < num_rows) & (dims[None, :] < num_dims), other=0.0)
    return tile


@triton.jit
def through_memory(ptrs, values):
    """The values, stored and loaded again."""
    tl.store(ptrs, values)
    tl.debug_barrier()
    return tl.load(ptrs)


@triton.jit
def flash_attention_forward(
    Q,
    K,
    V,
    Out,
    Lse,
    TMP,
    softmax_scale,
    stride_qb,
    stride_qh,
    stride_qm,
    stride_kb,
    stride_kh,
    stride_kn,
    stride_vb,
    stride_vh,
    stride_vn,
    stride_ob,
    stride_oh,
    stride_om,
    nheads,
    seqlen_q,
    seqlen_k,
    seqlen_q_rounded,
    headdim,
    batch,
    EVEN_M,
    EVEN_N,
    EVEN_HEADDIM,
    IS_CAUSAL: tl.constexpr,
    BLOCK_HEADDIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    tile = tl.program_id(0)
    sequence = tl.program_id(1)
    b = sequence // nheads
    h = sequence % nheads
    rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, BLOCK_HEADDIM)
    q_ptrs = Q + b * stride_qb + h * stride_qh + (rows[:, None] * stride_qm + dims[None, :])
    k_ptrs = K + b * stride_kb + h * stride_kh + (columns[:, None] * stride_kn + dims[None, :])
    v_ptrs = V + b * stride_vb + h * stride_vh + (columns[:, None] * stride_vn + dims[None, :])
    tmp_ptrs = TMP + sequence * seqlen_q_rounded + rows

    row_max = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    row_sum = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_HEADDIM], dtype=tl.float32)
    q = load_tile(q_ptrs, rows, seqlen_q, dims, headdim, EVEN_M, EVEN_HEADDIM)

    end = seqlen_k if not IS_CAUSAL else tl.minimum((tile + 1) * BLOCK_M, seqlen_k)
    for start in range(0, end, BLOCK_N):
        start = tl.multiple_of(start, BLOCK_N)
        keys = start + columns
        k = load_tile(k_ptrs + start * stride_kn, keys, seqlen_k, dims, headdim, EVEN_N, EVEN_HEADDIM)
        scores = tl.dot(q, tl.trans(k)) * softmax_scale
        if not EVEN_N:
            scores += tl.where(keys[None, :] < seqlen_k, 0, float("-inf"))
        if IS_CAUSAL:
            scores += tl.where(rows[:, None] >= keys[None, :], 0, float("-inf"))

        new_max = tl.maximum(row_max, tl.max(scores, 1))
        p = tl.exp(scores - new_max[:, None])
        alpha = tl.exp(row_max - new_max)
        row_sum = row_sum * alpha + tl.sum(p, 1)
        acc = acc * through_memory(tmp_ptrs, alpha)[:, None]
        v = load_tile(v_ptrs + start * stride_vn, keys, seqlen_k, dims, headdim, EVEN_N, EVEN_HEADDIM)
        acc += tl.dot(p.to(v.dtype), v)
        row_max = new_max

    acc = acc * through_memory(tmp_ptrs, 1 / row_sum)[:, None]
    tl.store(Lse + sequence * seqlen_q_rounded + rows, row_max + tl.log(row_sum))

    out_ptrs = Out + b * stride_ob + h * stride_oh + (rows[:, None] * stride_om + dims[None, :])
    if EVEN_M:
        if EVEN_HEADDIM:
            tl.store(out_ptrs, acc)
        else:
            tl.store(out_ptrs, acc, mask=dims[None, :] < headdim)
    else:
        if EVEN_HEADDIM:
            tl.store(out_ptrs, acc, mask=rows[:, None] < seqlen_q)
        else:
            tl.store(out_ptrs, acc, mask=(rows[:, None] < seqlen_q) & (dims[None, :] < headdim))


def flash_attention(q, k, v, causal=False, block_m=64, block_n=64):
    """(out, lse) for arrays (batch, seqlen, nheads, headdim); lse is (batch, nheads, seqlen_q)."""
    batch, seqlen_q, nheads, headdim = q.shape
    seqlen_k = k.shape[1]
    seqlen_q_rounded = triton.cdiv(seqlen_q, block_m) * block_m
    block_headdim = max(16, triton.next_power_of_2(headdim))
    out = np.empty_like(q)
    lse = np.empty((batch, nheads, seqlen_q_rounded), dtype=np.float32)
    tmp = np.empty_like(lse)
    flash_attention_forward[(triton.cdiv(seqlen_q, block_m), batch * nheads)](
        q,
        k,
        v,
        out,
        lse,
        tmp,
        headdim**-0.5,
        *(array.strides[axis] // array.itemsize for array in (q, k, v, out) for axis in (0, 2, 1)),
        nheads,
        seqlen_q,
        seqlen_k,
        seqlen_q_rounded,
        headdim,
        batch,
        seqlen_q % block_m == 0,
        seqlen_k % block_n == 0,
        headdim == block_headdim,
        IS_CAUSAL=causal,
        BLOCK_HEADDIM=block_headdim,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
    )
    return out, lse[:, :, :seqlen_q]


def reference(q, k, v, causal=False):
    """The same in float64."""
    q, k, v = (array.astype(np.float64).swapaxes(1, 2) for array in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    greatest = scores.max(axis=-1, keepdims=True)
    p = np.exp(scores - greatest)
    total = p.sum(axis=-1, keepdims=True)
    return (p / total @ v).swapaxes(1, 2), (greatest + np.log(total))[..., 0]


def main():
    rng = np.random.default_rng(0)
    for seqlen_q, seqlen_k, headdim in ((128, 128, 64), (113, 203, 40)):
        q = rng.standard_normal((2, seqlen_q, 3, headdim)).astype(np.float16)
        k, v = rng.standard_normal((2, 2, seqlen_k, 3, headdim)).astype(np.float16)
        for causal in (False, True):
            got, expected = flash_attention(q, k, v, causal), reference(q, k, v, causal)
            errors = [np.abs(a - b).max() / np.abs(b).max() for a, b in zip(got, expected, strict=True)]
            print(
                f"flash attention of 2 x 3 heads, {seqlen_q} queries, {seqlen_k} keys of {headdim} fp16, "
                f"causal={causal}: relative error {errors[0]:.1e}, of log-sum-exp {errors[1]:.1e}"
            )
            assert errors[0] < 1e-3 and errors[1] < 1e-5


if __name__ == "__main__":
    main()
