"""Convolutions, pooling and resizing."""

import triton
import triton.language as tl


@triton.jit
def max_pool(
    x_ptr,
    out_ptr,
    channels,
    H,
    W,
    OH,
    OW,
    KERNEL: tl.constexpr,
    STRIDE: tl.constexpr,
    PAD: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """NCHW, a program for a block of an image's output."""
    image = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = i < OH * OW
    row = i // OW
    column = i % OW
    best = tl.full([BLOCK], -float("inf"), tl.float32)
    for dy in tl.static_range(KERNEL):
        for dx in tl.static_range(KERNEL):
            y = row * STRIDE - PAD + dy
            x = column * STRIDE - PAD + dx
            inside = mask & (y >= 0) & (y < H) & (x >= 0) & (x < W)
            best = tl.maximum(
                best, tl.load(x_ptr + image * H * W + y * W + x, mask=inside, other=-float("inf")).to(tl.float32)
            )
    tl.store(out_ptr + image * OH * OW + i, best.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def conv2d_nhwc(
    x_ptr,
    w_ptr,
    out_ptr,
    batches,
    H,
    W,
    C,
    OUT,
    OH,
    OW,
    R: tl.constexpr,
    S: tl.constexpr,
    STRIDE: tl.constexpr,
    PAD: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Implicit product: x [N, H, W, C], w [OUT, R, S, C], all taps and channels in one loop."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    image = m // (OH * OW)
    y0 = m // OW % OH * STRIDE - PAD
    x0 = m % OW * STRIDE - PAD
    in_m = m < batches * OH * OW
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    blocks = tl.cdiv(C, BLOCK_K)
    for step in range(R * S * blocks):
        tap = step // blocks
        c = step % blocks * BLOCK_K + k
        y = y0 + tap // S
        x = x0 + tap % S
        inside = in_m & (y >= 0) & (y < H) & (x >= 0) & (x < W)
        x_ptrs = x_ptr + ((image * H + y) * W + x)[:, None] * C + c[None, :]
        a = tl.load(x_ptrs, mask=inside[:, None] & (c < C)[None, :], other=0.0)
        w_ptrs = w_ptr + n[None, :] * (R * S * C) + (tap * C + c)[:, None]
        b = tl.load(w_ptrs, mask=(c < C)[:, None] & (n < OUT)[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
    out_ptrs = out_ptr + m.to(tl.int64)[:, None] * OUT + n[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=in_m[:, None] & (n < OUT)[None, :])


@triton.jit
def conv1d(
    x_ptr,
    w_ptr,
    out_ptr,
    length,
    C,
    OUT,
    K: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """x [batch, length, C], w [K, C, OUT], centred."""
    batch = tl.program_id(2).to(tl.int64)
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros([BLOCK_T, BLOCK_N], tl.float32)
    for tap in range(K):
        at = t + tap - K // 2
        inside = (at >= 0) & (at < length)
        for start in range(0, C, BLOCK_C):
            c = start + tl.arange(0, BLOCK_C)
            x = tl.load(
                x_ptr + (batch * length + at)[:, None] * C + c[None, :],
                mask=inside[:, None] & (c < C)[None, :],
                other=0.0,
            )
            w = tl.load(
                w_ptr + (tap * C + c)[:, None] * OUT + n[None, :], mask=(c < C)[:, None] & (n < OUT)[None, :], other=0.0
            )
            acc = tl.dot(x, w, acc)
    out_ptrs = out_ptr + (batch * length + t)[:, None] * OUT + n[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=(t < length)[:, None] & (n < OUT)[None, :])


@triton.jit
def conv_transpose2d(
    x_ptr, w_ptr, bias_ptr, out_ptr, H, W, OUT, C: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """NHWC, 4x4 taps by 2: a program has one of four phases, whose 2x2 taps are written out."""
    py, px = tl.program_id(2) // 2, tl.program_id(2) % 2
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    y, x = m // W, m % W
    c = tl.arange(0, C)
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for tap in tl.static_range(4):
        dy, dx = tap // 2, tap % 2
        iy, ix = y + py - dy, x + px - dx
        inside = (m < H * W) & (iy >= 0) & (iy < H) & (ix >= 0) & (ix < W)
        a = tl.load(x_ptr + (iy * W + ix)[:, None] * C + c[None, :], mask=inside[:, None], other=0.0)
        place = (1 - py + 2 * dy) * 4 + 1 - px + 2 * dx
        w = tl.load(w_ptr + (place * C + c)[:, None] * OUT + n[None, :], mask=(n < OUT)[None, :], other=0.0)
        acc = tl.dot(a, w, acc)
    acc += tl.load(bias_ptr + n, mask=n < OUT, other=0.0)[None, :]
    out_ptrs = out_ptr + ((2 * y + py) * 2 * W + 2 * x + px)[:, None] * OUT + n[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=(m < H * W)[:, None] & (n < OUT)[None, :])


@triton.jit
def resize_bilinear(x_ptr, out_ptr, H, W, OH, OW, scale_y, scale_x, BLOCK: tl.constexpr):
    """NCHW; four pixels for each."""
    image = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = i < OH * OW
    y = tl.maximum((i // OW + 0.5) * scale_y - 0.5, 0.0)
    x = tl.maximum((i % OW + 0.5) * scale_x - 0.5, 0.0)
    y0 = tl.floor(y).to(tl.int32)
    x0 = tl.floor(x).to(tl.int32)
    y1 = tl.minimum(y0 + 1, H - 1)
    x1 = tl.minimum(x0 + 1, W - 1)
    fy = y - y0
    fx = x - x0
    base = x_ptr + image * H * W
    a = tl.load(base + y0 * W + x0, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(base + y0 * W + x1, mask=mask, other=0.0).to(tl.float32)
    c = tl.load(base + y1 * W + x0, mask=mask, other=0.0).to(tl.float32)
    d = tl.load(base + y1 * W + x1, mask=mask, other=0.0).to(tl.float32)
    out = (a * (1 - fx) + b * fx) * (1 - fy) + (c * (1 - fx) + d * fx) * fy
    tl.store(out_ptr + image * OH * OW + i, out.to(out_ptr.dtype.element_ty), mask=mask)
