"""Casts between all types: integers wrap, floats round to nearest even, floats to integers truncate; exact results."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
SIZE = 120


@triton.jit
def cast_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x.to(out_ptr.dtype.element_ty), mask=offsets < n)


def cast(x, out):
    cast_kernel[(1,)](x, out, x.size, BLOCK=max(128, 1 << (x.size - 1).bit_length()))
    return out


@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(INTEGERS, 2)))
def test_integers_wrap_and_extend(draw, poisoned, check, source, target):
    x, out = draw(source, SIZE), poisoned(target, SIZE)
    check(cast(x, out), x.astype(out.dtype))


@pytest.mark.parametrize(("source", "target"), list(itertools.product(INTEGERS, FLOATS)))
def test_integers_to_floats(draw, poisoned, source, target):
    # All of the type would overflow fp16; 2,000 fits it, and needs rounding in bf16.
    limit = min(2000, np.iinfo(source).max)
    x, out = draw(source, SIZE, 0 if source[0] == "u" else -limit, limit), poisoned(target, SIZE)
    np.testing.assert_array_equal(cast(x, out), x.astype(out.dtype))


def rounded_once(number: int, bits: int) -> int:
    """A number to so many bits, ties to even."""
    unit = 1 << max(abs(number).bit_length() - bits, 0)
    return round(Fraction(number, unit)) * unit


@pytest.mark.parametrize("source", ["int32", "uint32", "int64", "uint64"])
def test_large_integers_are_rounded_to_bf16_once(poisoned, source):
    """Halfway between two numbers, and one beside it: what a float or a double rounds away says which is nearer."""
    limits = np.iinfo(source)
    ties = (
        sign * ((odd << size) + (1 << size - 1))
        for sign in (-1, 1)
        for odd in (128, 129, 255)
        for size in (1, 17, 24, 40, 47, 54, 55)
    )
    numbers = [tie + beside for tie in ties for beside in (-1, 0, 1)]
    x = np.array(
        [number for number in (*numbers, limits.min, limits.max) if limits.min <= number <= limits.max], source
    )
    expected = [rounded_once(int(number), 8) for number in x]
    np.testing.assert_array_equal(cast(x, poisoned("bfloat16", x.size)).astype(np.float64), np.array(expected, float))


@pytest.mark.parametrize(("source", "target"), list(itertools.product(FLOATS, INTEGERS)))
def test_floats_to_integers_truncate(draw, poisoned, source, target):
    x, out = draw(source, SIZE, 0 if target[0] == "u" else -120, 120), poisoned(target, SIZE)
    np.testing.assert_array_equal(cast(x, out), np.trunc(x.astype(np.float64)).astype(target))


@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(FLOATS, 2)))
def test_floats_round_to_nearest_even(draw, poisoned, source, target):
    x, out = draw(source, SIZE, -50, 50), poisoned(target, SIZE)
    x[:4] = [0.0, np.inf, -np.inf, np.nan]
    expected = x.astype(out.dtype).astype(np.float64)
    np.testing.assert_array_equal(cast(x, out).astype(np.float64), expected)


@pytest.mark.parametrize(("target", "step"), [("float16", 2.0**-11), ("bfloat16", 2.0**-8)])
def test_ties_go_to_even(poisoned, target, step):
    """Halfway between two numbers, once above an even and once above an odd one."""
    x = np.array([1 + step, 1 + 3 * step], np.float32)
    np.testing.assert_array_equal(cast(x, poisoned(target, 2)).astype(np.float64), [1, 1 + 4 * step])


@pytest.mark.parametrize("source", ["int8", "int32", "uint64", "float16", "float32", "float64"])
def test_bool_is_whether_not_zero(draw, poisoned, source):
    x, out = draw(source, SIZE, 0, 2), poisoned("bool", SIZE)
    x[::2] = 0
    np.testing.assert_array_equal(cast(x, out), x != 0)


@pytest.mark.parametrize("target", ["int8", "int32", "uint16", "int64", "float16", "bfloat16", "float64"])
def test_true_is_one(draw, poisoned, target):
    x, out = draw("bool", SIZE), poisoned(target, SIZE)
    np.testing.assert_array_equal(cast(x, out), x.astype(out.dtype))


@triton.jit
def bitcast_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr + tl.arange(0, BLOCK), x.to(tl.int32, bitcast=True))


def test_bitcast(draw, poisoned, check):
    x, out = draw("float32", 64), poisoned("int32", 64)
    bitcast_kernel[(1,)](x, out, BLOCK=64)
    check(out, x.view(np.int32))


@triton.jit
def there_and_back(out_ptr, BITS: tl.constexpr, INT: tl.constexpr, FLOAT: tl.constexpr):
    number = tl.full((), BITS, INT).to(FLOAT, bitcast=True)
    tl.store(out_ptr, number.to(INT, bitcast=True))
    tile = tl.full((4,), BITS, INT).to(FLOAT, bitcast=True)
    tl.store(out_ptr + 1 + tl.arange(0, 4), tile.to(INT, bitcast=True))


@pytest.mark.parametrize(
    ("bits", "integer", "float_"),
    [
        (-1, tl.int16, tl.float16),
        (0x7E34, tl.int16, tl.float16),
        (0x7FD5, tl.int16, tl.bfloat16),
        (0x7F801234, tl.int32, tl.float32),
        (0x7FF8000000000123, tl.int64, tl.float64),
    ],
    ids=str,
)
def test_constants_that_are_no_numbers_keep_their_bits(poisoned, bits, integer, float_):
    out = poisoned(integer.name, 5)
    there_and_back[(1,)](out, BITS=bits, INT=integer, FLOAT=float_)
    np.testing.assert_array_equal(out, np.full(5, bits, integer.name))


@triton.jit
def widen_offsets(x_ptr, bytes_ptr, longs_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK) * n
    tl.store(bytes_ptr + tl.arange(0, BLOCK), offsets.to(tl.int8).to(tl.int64))
    tl.store(longs_ptr + tl.arange(0, BLOCK), offsets.to(tl.int64))


@pytest.mark.parametrize("n", [1, 32, 100, 2**30, 2**31 - 1, -(2**31)])
def test_what_is_computed_like_offsets_wraps_before_it_is_widened(poisoned, n):
    as_bytes, longs = poisoned("int64", 64), poisoned("int64", 64)
    widen_offsets[(1,)](as_bytes, as_bytes, longs, n, BLOCK=64)
    exact = np.arange(64, dtype=np.int64) * n
    np.testing.assert_array_equal(longs, exact.astype(np.int32))
    np.testing.assert_array_equal(as_bytes, exact.astype(np.int8))


@triton.jit
def computed_of_widened(sums_ptr, products_ptr, rests_ptr, signs_ptr, n, factor, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    wide = (i + n).to(tl.int64)
    tl.store(sums_ptr + i, 64 + wide - i)
    tl.store(products_ptr + i, wide * factor)
    tl.store(rests_ptr + i, (wide + 64) % 96)
    tl.store(signs_ptr + i, 1, mask=wide + 5 < 100)


@pytest.mark.parametrize("n", [2**31 - 32, 2**31 - 3, -96])
def test_what_is_computed_of_what_has_wrapped(poisoned, n):
    outs = [poisoned("int64", 128) for _ in range(3)]
    signs, i = np.zeros(128, np.int32), np.arange(128)
    computed_of_widened[(1,)](*outs, signs, n, 3, BLOCK=128)
    wide = (i + n + 2**31) % 2**32 - 2**31
    for out, expected in zip(outs, (64 + wide - i, wide * 3, np.fmod(wide + 64, 96)), strict=True):
        np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(signs, wide + 5 < 100)


@triton.jit
def constants_kernel(out_ptr, DTYPE: tl.constexpr, BLOCK: tl.constexpr):
    """What is known when the kernel is compiled, in a type of which there may be no constants."""
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.full((BLOCK,), 1.5, tl.float32).to(DTYPE).to(tl.float32))
    tl.store(out_ptr + BLOCK + i, tl.zeros((BLOCK,), DTYPE).to(tl.float32))


@pytest.mark.parametrize("dtype", [tl.float8e4b15, tl.float8e5, tl.float8e4b8, tl.float8e4nv, tl.bfloat16], ids=str)
def test_constants_are_converted(poisoned, check, dtype):
    out = poisoned("float32", 32)
    constants_kernel[(1,)](out, DTYPE=dtype, BLOCK=16)
    check(out, np.repeat([1.5, 0.0], 16))


@triton.jit
def rounded_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i).to(out_ptr.dtype.element_ty, fp_downcast_rounding="rtz"))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_a_rounding_mode_is_ignored_where_the_type_stays(draw, poisoned, check, dtype):
    x, out = draw(dtype, 32), poisoned(dtype, 32)
    rounded_kernel[(1,)](x, out, BLOCK=32)
    check(out, x)
