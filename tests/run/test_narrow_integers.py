"""Integers of a few bits become floats exactly: all values of 8 bits, fields of words, with and without signs."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl

FLOATS = ["float16", "bfloat16", "float32"]


@triton.jit
def convert(x_ptr, out_ptr, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + places, tl.load(x_ptr + places).to(out_ptr.dtype.element_ty))


@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("source", ["int8", "uint8"])
def test_all_of_8_bits(poisoned, source, target):
    x, out = np.arange(256).astype(source), poisoned(target, 256)
    convert[(1,)](x, out, BLOCK=256, num_warps=1)
    np.testing.assert_array_equal(out, x.astype(target if target != "bfloat16" else "float32").astype(out.dtype))


@pytest.mark.parametrize("source", ["int16", "uint16"])
def test_16_bits_as_float32(draw, poisoned, source):
    limits = np.iinfo(source)
    x, out = draw(source, 2048, limits.min, limits.max), poisoned("float32", 2048)
    x[:3] = [limits.min, limits.max, 0]
    convert[(2,)](x, out, BLOCK=1024)
    np.testing.assert_array_equal(out, x.astype(np.float32))


@triton.jit
def unpack(
    words_ptr,
    out_ptr,
    ARITHMETIC: tl.constexpr,
    WIDTH: tl.constexpr,
    PER_WORD: tl.constexpr,
    UP: tl.constexpr,
    OFFSET: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Neighbouring fields of words: masked, or with the sign of their highest bit."""
    places = tl.arange(0, BLOCK)
    words = tl.load(words_ptr + places // PER_WORD)
    shifts = places % PER_WORD * WIDTH
    if ARITHMETIC:
        numbers = words << (tl.full((), 32 - WIDTH, tl.int32) - shifts) >> 32 - WIDTH
    else:
        numbers = (words >> shifts) & ((1 << WIDTH) - 1)
    tl.store(out_ptr + places, ((numbers << UP) - OFFSET).to(out_ptr.dtype.element_ty))


@pytest.mark.share(2)
@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize(
    ("width", "up", "offset"),
    [(4, 0, 0), (4, 0, 8), (2, 0, 0), (3, 0, 3), (8, 0, 0), (5, 2, 0), (8, 0, 100), (1, 0, 0)],
)
@pytest.mark.parametrize("is_signed", [False, True])
def test_fields_of_words(rng, poisoned, target, width, up, offset, is_signed):
    per_word = 8 if width <= 4 else 4
    words = rng.integers(-(2**31), 2**31, 512 // per_word).astype(np.int32)
    out = poisoned(target, 512)
    constants = {"WIDTH": width, "PER_WORD": per_word, "UP": up, "OFFSET": offset, "BLOCK": 512}
    unpack[(1,)](words, out, ARITHMETIC=is_signed, **constants, num_warps=1)
    numbers = (words[:, None].astype(np.int64) >> np.arange(per_word) * width & (1 << width) - 1).ravel()
    if is_signed:
        numbers -= (numbers >> width - 1) << width
    np.testing.assert_array_equal(out, ((numbers << up) - offset).astype(np.float32).astype(out.dtype))


@triton.jit
def subtract(
    x_ptr, y_ptr, out_ptr, WIDTH: tl.constexpr, IS_SIGNED: tl.constexpr, PER_WORD: tl.constexpr, N: tl.constexpr
):
    """Fields of words less those of others, one of which several share."""
    places = tl.arange(0, N)
    x, y = tl.load(x_ptr + places // PER_WORD), tl.load(y_ptr + places // (2 * PER_WORD))
    shifts = places % PER_WORD * WIDTH
    x, y = (x >> shifts) & ((1 << WIDTH) - 1), (y >> shifts) & ((1 << WIDTH) - 1)
    if IS_SIGNED:
        x = x << 32 - WIDTH >> 32 - WIDTH
    tl.store(out_ptr + places, (x - y).to(out_ptr.dtype.element_ty))


@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize(
    ("width", "is_signed"), [(4, False), (4, True), (6, False), (7, False), (9, False), (10, True)]
)
def test_differences_of_fields(rng, poisoned, target, width, is_signed):
    """Of 9 bits and more some have no room below the exponent of f16, of 6 and more of bf16: on both sides of it."""
    per_word, count = 32 // width, 256 * (32 // width)
    places = 1 << (count - 1).bit_length() - 1
    x, y = (rng.integers(-(2**31), 2**31, size).astype(np.int32) for size in (256, 128))
    x[:4], y[:2] = [0, -1, 0, -1], [0, -1]
    out = poisoned(target, places)
    constants = {"WIDTH": width, "IS_SIGNED": is_signed, "PER_WORD": per_word, "N": places}
    subtract[(1,)](x, y, out, **constants, num_warps=1)
    fields = np.arange(places) % per_word * width
    first, second = (
        words[np.arange(places) // per].astype(np.int64) >> fields & (1 << width) - 1
        for words, per in ((x, per_word), (y, 2 * per_word))
    )
    if is_signed:
        first -= (first >> width - 1) << width
    np.testing.assert_array_equal(out, (first - second).astype(np.float32).astype(out.dtype))


@triton.jit
def split_pairs(pairs_ptr, low_ptr, high_ptr, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    pairs = tl.load(pairs_ptr + places)
    tl.store(low_ptr + places, ((pairs << 4).to(tl.int8) >> 4).to(low_ptr.dtype.element_ty))
    tl.store(high_ptr + places, (pairs >> 4).to(high_ptr.dtype.element_ty))


@pytest.mark.parametrize("target", FLOATS)
def test_pairs_of_4_bits(poisoned, target):
    pairs, low, high = np.arange(256).astype(np.int8), poisoned(target, 256), poisoned(target, 256)
    split_pairs[(1,)](pairs, low, high, BLOCK=256, num_warps=2)
    np.testing.assert_array_equal(low, ((pairs << 4).astype(np.int8) >> 4).astype(np.float32).astype(low.dtype))
    np.testing.assert_array_equal(high, (pairs >> 4).astype(np.float32).astype(high.dtype))


@triton.jit
def compare_bytes(out_ptr, BOUND: tl.constexpr, SHIFT: tl.constexpr, N: tl.constexpr):
    """Numbers that count up as far as a byte goes, and begin anew."""
    i = tl.arange(0, N)
    x = (i + SHIFT).to(tl.int8)
    tl.store(out_ptr + i, tl.where(x < BOUND, 1, 2))


@pytest.mark.parametrize(("bound", "shift"), [(0, 0), (64, 0), (-64, 16), (0, 64)])
def test_bytes_that_wrap_around(poisoned, bound, shift):
    out, x = poisoned("int32", 512), (np.arange(512) + shift).astype(np.int8)
    compare_bytes[(1,)](out, BOUND=bound, SHIFT=shift, N=512, num_warps=1)
    np.testing.assert_array_equal(out, np.where(x < bound, 1, 2))
