"""Loops until all is done, n bodies, random numbers."""

import triton
import triton.language as tl


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
