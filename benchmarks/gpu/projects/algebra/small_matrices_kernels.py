"""Many small matrices: Cholesky's factors, Fourier transforms, exponentials."""

import triton
import triton.language as tl


@triton.jit
def cholesky_16(a_ptr, out_ptr, count, N: tl.constexpr):
    """Of a small matrix a program, column by column, all in registers."""
    i = tl.arange(0, N)
    offsets = tl.program_id(0) * N * N + i[:, None] * N + i[None, :]
    a = tl.load(a_ptr + offsets)
    out = tl.zeros([N, N], tl.float32)
    for j in range(N):
        column = tl.sum(tl.where(i[None, :] == j, a, 0.0), axis=1)
        pivot = tl.sqrt(tl.sum(tl.where(i == j, column, 0.0), axis=0))
        column = tl.where(i >= j, column / pivot, 0.0)
        out = tl.where(i[None, :] == j, column[:, None], out)
        a -= column[:, None] * column[None, :]
    tl.store(out_ptr + offsets, out)


@triton.jit
def dft_64(re_ptr, im_ptr, cos_ptr, sin_ptr, out_re_ptr, out_im_ptr, rows, N: tl.constexpr, BLOCK: tl.constexpr):
    """Rows of complex numbers times a matrix of roots, by four dots of tf32."""
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.arange(0, N)
    offsets = r[:, None] * N + n[None, :]
    mask = (r < rows)[:, None]
    re = tl.load(re_ptr + offsets, mask=mask, other=0.0)
    im = tl.load(im_ptr + offsets, mask=mask, other=0.0)
    cos = tl.load(cos_ptr + n[:, None] * N + n[None, :])
    sin = tl.load(sin_ptr + n[:, None] * N + n[None, :])
    out_re = tl.dot(re, cos) - tl.dot(im, sin)
    out_im = tl.dot(re, sin) + tl.dot(im, cos)
    tl.store(out_re_ptr + offsets, out_re, mask=mask)
    tl.store(out_im_ptr + offsets, out_im, mask=mask)


@triton.jit
def matrix_exponential(a_ptr, out_ptr, N: tl.constexpr, TERMS: tl.constexpr):
    """By Taylor's series of a small matrix a program: a chain of dots."""
    i = tl.arange(0, N)
    offsets = tl.program_id(0) * N * N + i[:, None] * N + i[None, :]
    a = tl.load(a_ptr + offsets)
    one = (i[:, None] == i[None, :]).to(tl.float32)
    term = one
    total = one
    for k in range(1, TERMS):
        term = tl.dot(term, a, input_precision="ieee") / k
        total += term
    tl.store(out_ptr + offsets, total)
