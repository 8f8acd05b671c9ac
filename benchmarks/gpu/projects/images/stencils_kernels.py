"""Grids whose elements are computed of their neighbours."""

import triton
import triton.language as tl


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
