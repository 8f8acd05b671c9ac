"""What models do by a flat index that they divide: rows looked up, images, heads, padding, groups of columns."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl


def programs(count: int) -> tuple[int]:
    return (triton.cdiv(count, 256),)


@triton.jit
def look_up(table, rows, out, total, D, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(rows + i // D, mask=i < total)
    tl.store(out + i, tl.load(table + row * D + i % D, mask=i < total), mask=i < total)


@triton.jit
def look_up_constexpr(table, rows, out, total, D: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(rows + i // D, mask=i < total)
    tl.store(out + i, tl.load(table + row * D + i % D, mask=i < total), mask=i < total)


@pytest.mark.parametrize("kernel", [look_up, look_up_constexpr])
@pytest.mark.parametrize(("dtype", "d"), [("float32", 56), ("bfloat16", 33), ("int8", 120), ("float64", 9)])
def test_embedding(rng, draw, poisoned, kernel, dtype, d):
    table, rows, out = draw(dtype, (30, d)), rng.integers(0, 30, 17), poisoned(dtype, (17, d))
    kernel[programs(out.size)](table, rows, out, out.size, d, BLOCK=256)
    np.testing.assert_array_equal(out, table[rows])


@triton.jit
def shuffle_pixels(x, out, total, C, H, W, R: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    w, h = i % (W * R), i // (W * R) % (H * R)
    c, b = i // (W * R * H * R) % C, i // (W * R * H * R * C)
    plane = (b * C + c) * R * R + h % R * R + w % R
    tl.store(out + i, tl.load(x + (plane * H + h // R) * W + w // R, mask=i < total), mask=i < total)


@pytest.mark.parametrize(("dtype", "scale"), [("float32", 2), ("uint8", 3)])
def test_pixel_shuffle(draw, poisoned, dtype, scale):
    b, c, h, w = 2, 3, 5, 7
    x, out = draw(dtype, (b, c * scale**2, h, w)), poisoned(dtype, (b, c, h * scale, w * scale))
    shuffle_pixels[programs(out.size)](x, out, out.size, c, h, w, R=scale, BLOCK=256)
    parts = x.reshape(b, c, scale, scale, h, w)
    np.testing.assert_array_equal(out, parts.transpose(0, 1, 4, 2, 5, 3).reshape(out.shape))


@triton.jit
def to_planes(x, mean, deviation, out, total, C: tl.constexpr, HW, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask, place, c, b = i < total, i % HW, i // HW % C, i // (HW * C)
    colour = tl.load(x + (b * HW + place) * C + c, mask=mask).to(tl.float32) / 255
    tl.store(out + i, (colour - tl.load(mean + c, mask=mask)) / tl.load(deviation + c, mask=mask), mask=mask)


def test_normalised_images(draw, poisoned, check_norm):
    x, mean, deviation = draw("uint8", (2, 77, 3)), draw("float32", 3), draw("float32", 3, 0.2, 1)
    out = poisoned("float32", (2, 3, 77))
    to_planes[programs(out.size)](x, mean, deviation, out, out.size, C=3, HW=77, BLOCK=256)
    wide = (x.astype(np.float64) / 255 - mean) / deviation
    check_norm(out, wide.transpose(0, 2, 1), 1e-5)


@triton.jit
def rotate(x, cos, sin, out, total, T, H, D: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask, d, row = i < total, i % (D // 2), i // (D // 2)
    t, first = row // H % T, row * D + d
    c, s = tl.load(cos + t * (D // 2) + d, mask=mask), tl.load(sin + t * (D // 2) + d, mask=mask)
    a, b = tl.load(x + first, mask=mask).to(tl.float32), tl.load(x + first + D // 2, mask=mask).to(tl.float32)
    tl.store(out + first, a * c - b * s, mask=mask)
    tl.store(out + first + D // 2, b * c + a * s, mask=mask)


@pytest.mark.parametrize(("dtype", "d"), [("float32", 32), ("bfloat16", 18)])
def test_rotary_embedding(draw, poisoned, check_norm, dtype, d):
    b, t, h = 2, 5, 3
    x, out = draw(dtype, (b, t, h, d)), poisoned(dtype, (b, t, h, d))
    cos, sin = draw("float32", (t, d // 2)), draw("float32", (t, d // 2))
    rotate[programs(x.size // 2)](x, cos, sin, out, x.size // 2, t, h, D=d, BLOCK=256)
    first, second = x.astype(np.float64)[..., : d // 2], x.astype(np.float64)[..., d // 2 :]
    c, s = cos[:, None], sin[:, None]
    expected = np.concatenate([first * c - second * s, second * c + first * s], -1)
    check_norm(out, expected, 1e-5 if dtype == "float32" else 1e-2)


@triton.jit
def pad(x, out, total, H, W, TOP, LEFT, OH, OW, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    w, h, plane = i % OW - LEFT, i // OW % OH - TOP, i // (OW * OH)
    is_inside = (h >= 0) & (h < H) & (w >= 0) & (w < W)
    x = tl.load(x + (plane * H + h) * W + w, mask=(i < total) & is_inside, other=0)
    tl.store(out + i, x, mask=i < total)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_padding(draw, poisoned, dtype):
    x, out = draw(dtype, (3, 8, 11)), poisoned(dtype, (3, 11, 16))
    pad[programs(out.size)](x, out, out.size, 8, 11, 1, 2, 11, 16, BLOCK=256)
    np.testing.assert_array_equal(out, np.pad(x, ((0, 0), (1, 2), (2, 3))))


@triton.jit
def dequantise(q, scale, zero, out, rows, n, G: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    row, column = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (row < rows)[:, None] & (column < n)[None, :]
    at, group = row[:, None] * n + column[None, :], row[:, None] * (n // G) + (column // G)[None, :]
    x = tl.load(q + at, mask, other=0).to(tl.float32)
    tl.store(out + at, (x - tl.load(zero + group, mask)) * tl.load(scale + group, mask), mask)


@pytest.mark.parametrize(("dtype", "group"), [("float32", 32), ("bfloat16", 16), ("float32", 12)])
def test_dequantised_groups(draw, poisoned, check_norm, dtype, group):
    rows, n = 13, 96
    q, out = draw("int8", (rows, n)), poisoned(dtype, (rows, n))
    scale, zero = draw("float32", (rows, n // group)), draw("float32", (rows, n // group))
    dequantise[(2, 2)](q, scale, zero, out, rows, n, G=group, BM=8, BN=64)
    wide = (q.reshape(rows, -1, group).astype(np.float64) - zero[..., None]) * scale[..., None]
    check_norm(out, wide.reshape(rows, n), 1e-5 if dtype == "float32" else 1e-2)


@triton.jit
def add_rows(x, rows, out, count, n, BM: tl.constexpr, BN: tl.constexpr):
    i, column = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    mask = (i < count)[:, None] & (column < n)[None, :]
    row = tl.load(rows + i, mask=i < count, other=0)
    values = tl.load(x + i[:, None] * n + column[None, :], mask, other=0)
    tl.atomic_add(out + row[:, None] * n + column[None, :], values, mask)


@pytest.mark.parametrize(("dtype", "n"), [("float32", 50), ("int64", 7), ("float64", 33)])
def test_rows_that_are_added_at_indices(rng, draw, check_norm, dtype, n):
    x, rows, out = draw(dtype, (37, n), -100, 100), rng.integers(0, 9, 37), np.zeros((9, n), dtype)
    add_rows[(5,)](x, rows, out, 37, n, BM=8, BN=64)
    expected = np.zeros((9, n))
    np.add.at(expected, rows, x.astype(np.float64))
    check_norm(out, expected, 1e-5)
