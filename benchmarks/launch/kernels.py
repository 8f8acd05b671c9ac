"""Kernels that do nothing, with 5 and with 20 arguments: what launching them takes is launching.

The store, which no launch of the benchmark reaches, keeps every argument.
"""

import triton
import triton.language as tl


@triton.jit
def few(a, b, c, n, scale):
    if n < 0:
        tl.store(a, tl.load(b) + tl.load(c) * scale)


@triton.jit
def many(a, b, c, d, e, f, n, i, j, k, l, m, o, p, q, r, s, t, u, scale):  # noqa: E741
    if n < 0:
        total = tl.load(b) + tl.load(c) + tl.load(d) + tl.load(e) + tl.load(f)
        tl.store(a, total * scale + (i + j + k + l + m + o + p + q + r + s + t + u))
