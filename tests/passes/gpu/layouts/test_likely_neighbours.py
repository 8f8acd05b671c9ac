"""Lanes go along pixels of an image whose width is not known, where nothing is known of neighbours in memory."""

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for

import deuteron
import deuteron.language as tl
from deuteron.emulator import profile


@deuteron.jit
def images(x, out, width, height, channels, KIND: tl.constexpr):
    pixel, c = tl.arange(0, 64), tl.arange(0, 16)
    column, row = pixel % width, pixel // width % height
    if KIND == "remainders":
        place = (c[None, :] * height + row[:, None]) * width + column[:, None]
    elif KIND == "transposed":
        place = (c[:, None] * height + row[None, :]) * width + column[None, :]
    elif KIND == "clamped":
        last = width * height - 1
        place = c[None, :] * (last + 1) + tl.minimum(tl.maximum(pixel, 0), last)[:, None]
    else:
        place = c[None, :] * width * height + tl.where(pixel < width * height, pixel, 0)[:, None]
    tl.store(out + place, tl.load(x + place) + 1)


@deuteron.jit
def windows(x, out, width, height, channels):
    pixel, c = tl.arange(0, 64), tl.arange(0, 16)
    place = (c[None, :] * height + pixel[:, None] // width * 2) * width * 2 + pixel[:, None] % width * 2
    tl.store(out + c[:, None] * 64 + pixel[None, :], tl.trans(tl.load(x + place)))


@pytest.mark.parametrize("kind", ["remainders", "transposed", "clamped", "selected"])
def test_few_sectors(rng, kind):
    """16 channels of 9 x 7 pixels, the first again as a 64th: 8 sectors for 32 neighbours, up to twice as many where
    they are not aligned, read and written; along channels each element would be in one of its own: 2,048.
    """
    x = aligned(rng.standard_normal(16 * 63 + 64).astype(np.float32))
    out = aligned(np.zeros_like(x))
    arguments = (x, out, 9, 7, 16)
    kernel = compile_for("cuda:90", images, *arguments, KIND=kind, num_warps=4)
    counts = profile(kernel.asm["ptx"], kernel.metadata.symbol, 1, 128, kernel.metadata.shared, arguments).total
    np.testing.assert_array_equal(out[: 16 * 63], x[: 16 * 63] + 1)
    assert counts.sectors < 700


def test_every_second_pixel(rng):
    """16 sectors for 32 of them and 8 for what is stored, up to twice as many where an array begins within a sector."""
    x = aligned(rng.standard_normal((16, 16, 16)).astype(np.float32))
    out = aligned(np.zeros((16, 64), np.float32))
    arguments = (x, out, 8, 16, 16)
    kernel = compile_for("cuda:90", windows, *arguments, num_warps=4)
    counts = profile(kernel.asm["ptx"], kernel.metadata.symbol, 1, 128, kernel.metadata.shared, arguments).total
    np.testing.assert_array_equal(out, x[:, ::2, ::2].reshape(16, 64))
    assert counts.sectors < 700
