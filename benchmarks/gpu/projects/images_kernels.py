"""Images, grids and particles: convolutions, pooling, stencils, sampling, permutations, loops until all is done."""

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


@triton.jit
def heat_2d(x_ptr, out_ptr, H, W, alpha, BLOCK_Y: tl.constexpr, BLOCK_X: tl.constexpr):
    y = tl.program_id(0) * BLOCK_Y + tl.arange(0, BLOCK_Y)[:, None]
    x = tl.program_id(1) * BLOCK_X + tl.arange(0, BLOCK_X)[None, :]
    at = x_ptr + y * W + x
    mask = (y < H) & (x < W)
    centre = tl.load(at, mask=mask, other=0.0)
    up = tl.load(at - W, mask=mask & (y > 0), other=0.0)
    down = tl.load(at + W, mask=mask & (y < H - 1), other=0.0)
    left = tl.load(at - 1, mask=mask & (x > 0), other=0.0)
    right = tl.load(at + 1, mask=mask & (x < W - 1), other=0.0)
    tl.store(out_ptr + y * W + x, centre + alpha * (up + down + left + right - 4 * centre), mask=mask)


@triton.jit
def laplace_3d(x_ptr, out_ptr, D, H, W, BLOCK_Z: tl.constexpr, BLOCK_Y: tl.constexpr, BLOCK_X: tl.constexpr):
    """Seven points; tiles of three dimensions."""
    z = (tl.program_id(0) * BLOCK_Z + tl.arange(0, BLOCK_Z))[:, None, None]
    y = (tl.program_id(1) * BLOCK_Y + tl.arange(0, BLOCK_Y))[None, :, None]
    x = (tl.program_id(2) * BLOCK_X + tl.arange(0, BLOCK_X))[None, None, :]
    at = (z * H + y) * W + x
    inside = (z > 0) & (z < D - 1) & (y > 0) & (y < H - 1) & (x > 0) & (x < W - 1)
    total = -6.0 * tl.load(x_ptr + at, mask=inside, other=0.0)
    total += tl.load(x_ptr + at - 1, mask=inside, other=0.0) + tl.load(x_ptr + at + 1, mask=inside, other=0.0)
    total += tl.load(x_ptr + at - W, mask=inside, other=0.0) + tl.load(x_ptr + at + W, mask=inside, other=0.0)
    total += tl.load(x_ptr + at - H * W, mask=inside, other=0.0) + tl.load(x_ptr + at + H * W, mask=inside, other=0.0)
    tl.store(out_ptr + at, total, mask=(z < D) & (y < H) & (x < W))


@triton.jit
def sobel(x_ptr, out_ptr, H, W, BLOCK: tl.constexpr):
    """Of bytes; a row a program."""
    y = tl.program_id(0)
    x = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    gx = tl.zeros([BLOCK], tl.int32)
    gy = tl.zeros([BLOCK], tl.int32)
    for dy in tl.static_range(3):
        for dx in tl.static_range(3):
            inside = (y + dy >= 1) & (y + dy - 1 < H) & (x + dx >= 1) & (x + dx - 1 < W)
            pixel = tl.load(x_ptr + (y + dy - 1) * W + x + dx - 1, mask=inside, other=0).to(tl.int32)
            gx += (dx - 1) * (2 - (dy - 1) * (dy - 1)) * pixel
            gy += (dy - 1) * (2 - (dx - 1) * (dx - 1)) * pixel
    out = tl.sqrt((gx * gx + gy * gy).to(tl.float32))
    tl.store(out_ptr + y * W + x, tl.minimum(out, 255.0).to(tl.uint8), mask=x < W)


@triton.jit
def mandelbrot(out_ptr, W, H, x0, y0, dx, dy, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """Until all of a block are out, or so many steps."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cx = x0 + (i % W) * dx
    cy = y0 + (i // W) * dy
    x = tl.zeros([BLOCK], tl.float32)
    y = tl.zeros([BLOCK], tl.float32)
    count = tl.zeros([BLOCK], tl.int32)
    step = 0
    going = 1
    while (step < STEPS) & (going > 0):
        inside = x * x + y * y <= 4.0
        new = x * x - y * y + cx
        y = tl.where(inside, 2 * x * y + cy, y)
        x = tl.where(inside, new, x)
        count += inside.to(tl.int32)
        going = tl.max(inside.to(tl.int32), axis=0)
        step += 1
    tl.store(out_ptr + i, count, mask=i < W * H)


@triton.jit
def n_body(x_ptr, y_ptr, z_ptr, m_ptr, ax_ptr, ay_ptr, az_ptr, n, soft, BLOCK_I: tl.constexpr, BLOCK_J: tl.constexpr):
    i = tl.program_id(0) * BLOCK_I + tl.arange(0, BLOCK_I)
    xi = tl.load(x_ptr + i, mask=i < n, other=0.0)[:, None]
    yi = tl.load(y_ptr + i, mask=i < n, other=0.0)[:, None]
    zi = tl.load(z_ptr + i, mask=i < n, other=0.0)[:, None]
    ax = tl.zeros([BLOCK_I], tl.float32)
    ay = tl.zeros([BLOCK_I], tl.float32)
    az = tl.zeros([BLOCK_I], tl.float32)
    for start in range(0, n, BLOCK_J):
        j = start + tl.arange(0, BLOCK_J)
        dx = tl.load(x_ptr + j, mask=j < n, other=0.0)[None, :] - xi
        dy = tl.load(y_ptr + j, mask=j < n, other=0.0)[None, :] - yi
        dz = tl.load(z_ptr + j, mask=j < n, other=0.0)[None, :] - zi
        m = tl.load(m_ptr + j, mask=j < n, other=0.0)[None, :]
        r2 = dx * dx + dy * dy + dz * dz + soft
        inv = tl.rsqrt(r2)
        w = m * inv * inv * inv
        ax += tl.sum(w * dx, axis=1)
        ay += tl.sum(w * dy, axis=1)
        az += tl.sum(w * dz, axis=1)
    tl.store(ax_ptr + i, ax, mask=i < n)
    tl.store(ay_ptr + i, ay, mask=i < n)
    tl.store(az_ptr + i, az, mask=i < n)


@triton.jit
def monte_carlo(out_ptr, seed, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """How many of random points are in the quarter of a circle, a program a count."""
    pid = tl.program_id(0)
    inside = tl.zeros([BLOCK], tl.int32)
    for step in range(STEPS):
        at = (pid * STEPS + step) * BLOCK + tl.arange(0, BLOCK)
        a, b, c, d = tl.rand4x(seed, at)
        inside += (a * a + b * b < 1.0).to(tl.int32) + (c * c + d * d < 1.0).to(tl.int32)
    tl.store(out_ptr + pid, tl.sum(inside, axis=0))


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


@triton.jit
def life(x_ptr, out_ptr, H, W, BLOCK_Y: tl.constexpr, BLOCK_X: tl.constexpr):
    """Conway's, on a torus of bytes."""
    y = tl.program_id(0) * BLOCK_Y + tl.arange(0, BLOCK_Y)[:, None]
    x = tl.program_id(1) * BLOCK_X + tl.arange(0, BLOCK_X)[None, :]
    mask = (y < H) & (x < W)
    up = (y + H - 1) % H * W
    down = (y + 1) % H * W
    left = (x + W - 1) % W
    right = (x + 1) % W
    here = y % H * W
    count = tl.load(x_ptr + up + left) + tl.load(x_ptr + up + x, mask=mask, other=0) + tl.load(x_ptr + up + right)
    count += tl.load(x_ptr + here + left) + tl.load(x_ptr + here + right)
    count += (
        tl.load(x_ptr + down + left) + tl.load(x_ptr + down + x, mask=mask, other=0) + tl.load(x_ptr + down + right)
    )
    alive = tl.load(x_ptr + here + x, mask=mask, other=0)
    new = (count == 3) | ((count == 2) & (alive == 1))
    tl.store(out_ptr + y * W + x, new.to(tl.int8), mask=mask)
