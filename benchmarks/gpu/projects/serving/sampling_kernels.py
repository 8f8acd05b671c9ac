"""The next token: a threshold for top p by bisection, Gumbel's maximum."""

import triton
import triton.language as tl


@triton.jit
def top_p_threshold(logits_ptr, out_ptr, stride, V, p, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """The probability that the nucleus of a row ends with, by bisection over the whole row."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    base = logits_ptr + row * stride
    largest = tl.full([BLOCK], -float("inf"), tl.float32)
    for start in range(0, V, BLOCK):
        x = tl.load(base + start + columns, mask=start + columns < V, other=-float("inf")).to(tl.float32)
        largest = tl.maximum(largest, x)
    top = tl.max(largest, axis=0)
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, V, BLOCK):
        x = tl.load(base + start + columns, mask=start + columns < V, other=-float("inf")).to(tl.float32)
        sums += tl.exp(x - top)
    total = tl.sum(sums, axis=0)
    low = 0.0
    high = 1.0
    for _ in range(STEPS):
        mid = (low + high) * 0.5
        sums = tl.zeros([BLOCK], tl.float32)
        for start in range(0, V, BLOCK):
            x = tl.load(base + start + columns, mask=start + columns < V, other=-float("inf")).to(tl.float32)
            e = tl.exp(x - top)
            sums += tl.where(e >= mid, e, 0.0)
        if tl.sum(sums, axis=0) >= p * total:
            low = mid
        else:
            high = mid
    tl.store(out_ptr + row, low / total)


@triton.jit
def gumbel_sample(logits_ptr, out_ptr, noise_ptr, stride, V, temperature, BLOCK: tl.constexpr):
    """The token that a row samples: the largest of logits over the temperature minus the logarithm of noise."""
    row = tl.program_id(0).to(tl.int64)
    best = -float("inf")
    winner = 0
    for start in range(0, V, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        mask = columns < V
        x = tl.load(logits_ptr + row * stride + columns, mask=mask, other=-float("inf")).to(tl.float32) / temperature
        noise = tl.load(noise_ptr + row * stride + columns, mask=mask, other=1.0)
        x = x - tl.log(noise)
        value, place = tl.max(x, axis=0, return_indices=True)
        winner = tl.where(value > best, start + place, winner)
        best = tl.maximum(value, best)
    tl.store(out_ptr + row, winner)
