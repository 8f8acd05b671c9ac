"""Elements that change their places only: axes permuted, arrays concatenated."""

import triton
import triton.language as tl


@triton.jit
def permute_0213(x_ptr, out_ptr, B, C, BLOCK_B: tl.constexpr, BLOCK_C: tl.constexpr, D: tl.constexpr):
    """[a, B, C, D] to [a, C, B, D]."""
    a = tl.program_id(2).to(tl.int64) * B * C * D
    b = (tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B))[:, None, None]
    c = (tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C))[None, :, None]
    d = tl.arange(0, D)[None, None, :]
    mask = (b < B) & (c < C)
    x = tl.load(x_ptr + a + (b * C + c) * D + d, mask=mask)
    tl.store(out_ptr + a + (c * B + b) * D + d, x, mask=mask)


@triton.jit
def nchw_to_nhwc(x_ptr, out_ptr, C, S, BLOCK_C: tl.constexpr, BLOCK_S: tl.constexpr):
    base = tl.program_id(2).to(tl.int64) * C * S
    c = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    s = tl.program_id(1) * BLOCK_S + tl.arange(0, BLOCK_S)
    x = tl.load(x_ptr + base + c[:, None] * S + s[None, :], mask=(c < C)[:, None] & (s < S)[None, :])
    tl.store(out_ptr + base + s[None, :] * C + c[:, None], x, mask=(c < C)[:, None] & (s < S)[None, :])


@triton.jit
def concatenate(a_ptr, b_ptr, out_ptr, A, B, BLOCK: tl.constexpr):
    """Rows of A and of B elements beside each other, by a condition of each element."""
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    of_a = tl.load(a_ptr + row * A + i, mask=i < A, other=0.0)
    of_b = tl.load(b_ptr + row * B + i - A, mask=(i >= A) & (i < A + B), other=0.0)
    tl.store(out_ptr + row * (A + B) + i, tl.where(i < A, of_a, of_b), mask=i < A + B)
