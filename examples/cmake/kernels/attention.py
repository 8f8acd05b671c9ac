"""Causal attention of heads in rows of `heads * D` numbers: one program for BLOCK queries of a head."""

import triton
import triton.language as tl


@triton.jit
def attention(q, k, v, out, scale, rows, heads, D: tl.constexpr, BLOCK: tl.constexpr):
    first, head = tl.program_id(0) * BLOCK, tl.program_id(1)
    queries = first + tl.arange(0, BLOCK)
    columns = head * D + tl.arange(0, D)
    stride = heads * D
    places = queries[:, None] * stride + columns[None, :]
    query = tl.load(q + places, mask=queries[:, None] < rows, other=0.0)

    largest = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    result = tl.zeros([BLOCK, D], tl.float32)
    for start in range(0, first + BLOCK, BLOCK):
        keys = start + tl.arange(0, BLOCK)
        there = keys[:, None] * stride + columns[None, :]
        key = tl.load(k + there, mask=keys[:, None] < rows, other=0.0)
        value = tl.load(v + there, mask=keys[:, None] < rows, other=0.0)
        scores = tl.dot(query, tl.trans(key)) * scale
        scores = tl.where(queries[:, None] >= keys[None, :], scores, float("-inf"))
        highest = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.exp(scores - highest[:, None])
        shrink = tl.exp(largest - highest)
        total = total * shrink + tl.sum(weights, 1)
        result = result * shrink[:, None] + tl.dot(weights.to(value.dtype), value)
        largest = highest
    tl.store(out + places, result / total[:, None], mask=queries[:, None] < rows)
