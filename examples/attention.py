"""Fused attention with an online softmax: the matrix of scores is never stored.

One program computes BLOCK_M rows of the output. It walks over the keys in blocks of BLOCK_N and keeps, for
each row, the greatest score so far, the sum of the exponentials relative to it, and the weighted sum of the
values. When a greater score comes, what was summed before is scaled down by alpha.

    python examples/attention.py
"""

import numpy as np

import deuteron as triton
import deuteron.language as tl


@triton.jit
def attention_kernel(
    Q,
    K,
    V,
    Out,
    scale,
    stride_h,
    stride_n,
    seqlen,
    CAUSAL: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    tile = tl.program_id(0)
    head = tl.program_id(1)
    rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, HEAD_DIM)
    row_offsets = head * stride_h + rows[:, None] * stride_n + dims[None, :]
    column_offsets = head * stride_h + columns[:, None] * stride_n + dims[None, :]

    # exp2 is what machines have; log2(e) goes into the scale.
    scale *= 1.4426950408889634
    q = tl.load(Q + row_offsets, mask=rows[:, None] < seqlen, other=0.0)
    row_max = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    row_sum = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)

    end = tl.minimum((tile + 1) * BLOCK_M, seqlen) if CAUSAL else seqlen
    for start in range(0, end, BLOCK_N):
        inside = start + columns < seqlen
        k = tl.load(K + column_offsets + start * stride_n, mask=inside[:, None], other=0.0)
        scores = tl.dot(q, tl.trans(k)) * scale
        scores = tl.where(inside[None, :], scores, float("-inf"))
        if CAUSAL:
            scores = tl.where(rows[:, None] >= start + columns[None, :], scores, float("-inf"))
        new_max = tl.maximum(row_max, tl.max(scores, 1))
        p = tl.exp2(scores - new_max[:, None])
        alpha = tl.exp2(row_max - new_max)
        row_sum = row_sum * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(V + column_offsets + start * stride_n, mask=inside[:, None], other=0.0)
        acc += tl.dot(p.to(v.dtype), v)
        row_max = new_max

    acc = acc / row_sum[:, None]
    tl.store(Out + row_offsets, acc.to(Out.dtype.element_ty), mask=rows[:, None] < seqlen)


def attention(q, k, v, causal=False, block_m=64, block_n=64):
    """softmax(q k^T / sqrt(dim)) v for contiguous arrays (heads, seqlen, dim), dim a power of two from 16."""
    heads, seqlen, dim = q.shape
    out = np.empty_like(q)
    grid = (triton.cdiv(seqlen, block_m), heads)
    attention_kernel[grid](
        q,
        k,
        v,
        out,
        dim**-0.5,
        seqlen * dim,
        dim,
        seqlen,
        CAUSAL=causal,
        HEAD_DIM=dim,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
    )
    return out


def reference(q, k, v, causal=False):
    """The same in float64."""
    q, k, v = (array.astype(np.float64) for array in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True) @ v


def main():
    rng = np.random.default_rng(0)
    for dtype, tolerance in ((np.float32, 1e-5), (np.float16, 1e-3)):
        q, k, v = rng.standard_normal((3, 4, 201, 64)).astype(dtype)
        for causal in (False, True):
            expected = reference(q, k, v, causal)
            error = np.abs(attention(q, k, v, causal) - expected).max() / np.abs(expected).max()
            kind = "causal attention" if causal else "attention"
            print(f"{kind} of 4 heads of 201 x 64 {np.dtype(dtype)}: relative error {error:.1e}")
            assert error < tolerance


if __name__ == "__main__":
    main()
