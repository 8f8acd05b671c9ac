"""Kernels that do nothing, of 5, 20, 32 arguments, and of two descriptors: what launching them takes is launching.

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


@triton.jit
def most(
    a, b, c, d, e, f, n, p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17, p18, p19, p20,
    p21, p22, p23, scale,
):  # fmt: skip
    if n < 0:
        total = tl.load(b) + tl.load(c) + tl.load(d) + tl.load(e) + tl.load(f)
        first = p0 + p1 + p2 + p3 + p4 + p5 + p6 + p7 + p8 + p9 + p10 + p11
        tl.store(a, total * scale + first + p12 + p13 + p14 + p15 + p16 + p17 + p18 + p19 + p20 + p21 + p22 + p23)


@triton.jit
def tiles(a, b, n):
    if n < 0:
        b.store([0, 0], a.load([0, 0]))
