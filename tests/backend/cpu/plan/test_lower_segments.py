"""Divisions of indices by numbers that vectors do not fit in, or that only the running program knows: in segments."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import deuteron.language as tl

X = np.zeros(1, np.float32)


def digits(x, y, out, first, n, m, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """What is loaded at the digits of the numbers from `first` on, in a tile that two nests need."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = at + first
    i = i.to(tl.int64) if WIDE else i
    column, row = i % n, i // n % m
    a = tl.load(x + (column + tl.abs(n))) + 1000 * tl.load(y + (row + tl.abs(m)))
    tl.store(out + at, a)
    tl.store(out + 2 * BLOCK + at, a - tl.max(a, 0) + row)
    tl.store(out + 4 * BLOCK + at, tl.load(x + (tl.abs(n) - 1 - tl.abs(column)), mask=at % 3 != 1, other=5))


@pytest.mark.parametrize(
    "first, n, m, wide",
    [
        (0, 28, 5, False),
        (-133, 28, 9, True),
        (-(1 << 31), 50, -13, True),
        (61, 7, 8, False),
        ((1 << 31) - 300, -9, 100, False),
        ((1 << 31) - 200, 300, 1, True),
    ],
)
def test_digits_of_numbers_from_anywhere(compare, rng, first, n, m, wide):
    x, y = (rng.integers(0, 100, 2 * abs(size) + 2).astype(np.int64) for size in (n, m))
    compare(digits, [x, y, np.zeros(6 * 128, np.int64), first, n, m], {"BLOCK": 128, "WIDE": wide}, grid=(2,))


def digits_by_products(x, out, first, n, m, BLOCK: tl.constexpr, WIDE: tl.constexpr, N: tl.constexpr):
    """Of one number the quotients and remainders by a number, and by its products with one and two arguments."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = at + first
    i = i.to(tl.int64) if WIDE else i
    low, middle, high, rest = i % N, i // N % n, i // (N * n) % m, i % (N * n)
    size = N + tl.abs(n) + tl.abs(m)
    tl.store(out + at, tl.load(x + (size + low)) + 100 * tl.load(x + (size + middle)) + tl.load(x + (size + high)))
    tl.store(out + 2 * BLOCK + at, tl.load(x + (size + rest // N)) + low)
    tl.store(out + 4 * BLOCK + at, i // (N * n * m) + tl.load(x + (size + i // N % n)))


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "first, n, m, wide",
    [
        (0, 3, 5, False),
        (-300, 2, 3, False),
        (-777, -5, 2, True),
        (-129, 0, 3, False),
        (100, 1, -1, True),
        (50, -1, 0, False),
        ((1 << 31) - 300, 7, 4, False),
        ((1 << 31) - 200, 11, -9, True),
        (-(1 << 31), 9, 2, True),
    ],
)
@pytest.mark.parametrize("number", [24, 64, 100])
def test_digits_by_products(compare, rng, first, n, m, wide, number):
    x = rng.integers(0, 100, 2 * (number + abs(n) + abs(m))).astype(np.int64)
    options = {"BLOCK": 256, "WIDE": wide, "N": number}
    compare(digits_by_products, [x, np.zeros(6 * 256, np.int64), first, n, m], options, grid=(2,))


def heads_first(x, out, n, A, H, D: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d, a, h, b = i % D, i // D % A, i // (D * A) % H, i // (D * A * H)
    tl.store(out + i, tl.load(x + ((b * A + a) * H + h) * D + d, mask=i < n), mask=i < n)


@pytest.mark.parametrize(
    "dtype, sizes", [(np.float32, (2, 16, 3, 64)), (np.int8, (1, 7, 5, 32)), (np.int64, (3, 4, 2, 8))]
)
def test_heads_before_positions(compare, rng, dtype, sizes):
    b, a, h, d = sizes
    x = rng.integers(-99, 99, sizes).astype(dtype)
    arrays = [x, np.zeros(x.size, dtype), x.size, a, h]
    made = compare(heads_first, arrays, {"D": d, "BLOCK": 1024}, grid=(-(-x.size // 1024),))[1]
    np.testing.assert_array_equal(made.reshape(b, h, a, d), x.transpose(0, 2, 1, 3))


def rows_of(x, bias, out, total, W, H: tl.constexpr, BLOCK: tl.constexpr):
    """Rows that are reversed, in order and stored at digits, of a dimension that is not the last one; a kept tile."""
    i, k = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None], tl.arange(0, 4)[None, :]
    mask = i < 3 * W * H
    column, row, plane = i % W, i // W % H, i // (W * H)
    a = tl.load(x + k * 3 * W * H + (plane * H + row) * W + (W - 1 - column), mask)
    a = a + tl.load(bias + plane + k, mask, other=7)
    sums = tl.sum(a, 1)
    tl.store(out + (k * 3 + plane) * (W + 3) * H + row * (W + 3) + column, a * 2 - sums[:, None].to(a.dtype), mask)
    tl.store(total + i, sums[:, None], mask)


@pytest.mark.parametrize(
    "dtype, w, h", [(np.float32, 28, 3), (np.int8, 9, 5), (np.float16, 64, 1), (np.int64, 2, 10), (np.int64, 17, 3)]
)
def test_rows_of_images(compare, rng, dtype, w, h):
    x, bias = (rng.integers(-9, 9, size).astype(dtype) for size in (12 * w * h, 6))
    arrays = [x, bias, np.zeros(12 * (w + 3) * h, dtype), np.zeros(3 * w * h, dtype)]
    compare(rows_of, [*arrays, w], {"H": h, "BLOCK": 64}, grid=(-(-3 * w * h // 64),))


def one_of_each_row(x, out, n, BLOCK: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) + tl.load(x + i // N + n))


def reversed_rows(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + n - 1 - i, tl.load(x + BLOCK - 1 - i, mask=i < n), mask=i < n)


@pytest.mark.parametrize("dtype, n", [(np.float32, 100), (np.uint8, 5), (np.float16, 128), (np.float64, 64)])
def test_what_goes_down(compare, rng, dtype, n):
    x = rng.integers(0, 100, 128).astype(dtype)
    made = compare(reversed_rows, [x, np.zeros(n, dtype), n], {"BLOCK": 128})[1]
    np.testing.assert_array_equal(made, x[128 - n :])


def parts_of_kept_tiles(x, out, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """Elements of a tile in memory that do not follow one another, stored to columns and rows of n."""
    sums = tl.cumsum(tl.load(x + tl.arange(0, 2 * BLOCK)), 0)
    first, second = tl.split(tl.reshape(sums, (BLOCK, 2)))
    if KIND == "half":
        part = second
    elif KIND == "flipped":
        part = tl.flip(tl.cumsum(first, 0))
    elif KIND == "flipped half":
        part = tl.flip(first)
    else:
        part = tl.sort(first)
    i = tl.arange(0, BLOCK)
    tl.store(out + i % n + i // n * BLOCK, part)


@pytest.mark.parametrize("n", [5, 8, 13, 30, 64, 100])
@pytest.mark.parametrize("kind", ["half", "flipped", "flipped half", "sorted"])
def test_parts_of_kept_tiles(compare, rng, kind, n):
    x = rng.integers(-100, 100, 128).astype(np.int32)
    compare(parts_of_kept_tiles, [x, np.zeros(64 * 64, np.int32), n], {"KIND": kind, "BLOCK": 64})


def test_no_division_of_vectors_and_nothing_gathered_in_segments(lower_python, lower_module):
    """By a constant: by an argument there is code for short segments besides."""
    arguments = [X, X, 64]
    llir = lower_module(lower_python(one_of_each_row, arguments, {"BLOCK": 1024, "N": 100})).llir
    assert "segment" in llir
    assert "sdiv <" not in llir and "gather" not in llir
    llir = lower_module(lower_python(reversed_rows, arguments, {"BLOCK": 1024})).llir
    assert "gather" not in llir and "scatter" not in llir
    assert "load <16 x float>" in llir


def test_what_changes_rarely_is_divided_outside(lower_python, lower_module):
    """A constant that vectors fit in does not keep divisions by arguments in them, as before: 0.1 of torch's speed."""
    llir = lower_module(lower_python(heads_first, [X, X, 4096, 32, 2], {"D": 64, "BLOCK": 1024})).llir
    labels = [line for line in llir.splitlines() if re.fullmatch(r"(run|segment)[.0-9]*:.*", line)]
    assert len(labels) == 2, labels


def permuted(x, out, first, total, n, m, k, t, u, BLOCK: tl.constexpr, STEP: tl.constexpr, WIDE: tl.constexpr):
    """Digits of digits: of numbers that may be negative, by numbers that may be, too."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = STEP * at + first
    i = i.to(tl.int64) if WIDE else i
    low, rest = i % n, i // n
    middle, high = rest % m, rest // m
    place = low + middle * t + high % k * u + 7 * (high // k)
    is_there = (place >= 0) & (place < 4096)
    tl.store(
        out + at, tl.load(x + place, mask=is_there & (at < total), other=-5) * 8 + (rest & 7), mask=at < total + 40
    )


@pytest.mark.parametrize(
    "first, n, m, k, step, wide",
    [
        (0, 32, 5, 3, 1, False),
        (0, 80, 1, 7, 1, True),
        (5, 24, 2, 1, 3, False),
        (-700, 33, 4, 5, 1, False),
        (-700, 33, -4, 5, 1, True),
        (-90, -17, 3, 2, 1, False),
        (11, 1 << 30, 1 << 30, 9, 1, False),
        (40, 9, 1 << 30, 1 << 30, 1, False),
        ((1 << 31) - 500, 60, 7, 1 << 20, 1, False),
        ((1 << 31) - 1200, 100, 3, 4, 2, False),
        ((1 << 31) - 2600, 100, 3, 4, 2, True),
        (-(1 << 31), 50, 6, 9, 1, True),
        (3, 50, 0, 4, 1, False),
    ],
)
def test_digits_of_digits_count_up(compare, rng, first, n, m, k, step, wide):
    x = rng.integers(0, 1000, 4096).astype(np.int32)
    options = {"BLOCK": 512, "STEP": step, "WIDE": wide}
    for total in (1024, 777, 500, 0):
        compare(permuted, [x, np.zeros(1024, np.int32), first, total, n, m, k, 41, 300], options, grid=(2,))


def test_segments_are_counted_without_divisions(lower_python, lower_module):
    arguments = [X, X, 0, 4096, 100, 7, 3, 100, 700]
    llir = lower_module(lower_python(permuted, arguments, {"BLOCK": 1024, "STEP": 1, "WIDE": False})).llir
    run, segment = (
        re.search(rf"\n{label}[.0-9a-z]*:.*?\n *br ", llir, re.DOTALL).group() for label in ("run", "segment")
    )
    assert "sdiv" in run and "srem" in run
    assert "div" not in segment and "rem" not in segment


def divided_again(x, sizes, out, n, m, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """Divisions of what other ones give, plus something, and by what is loaded at it."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    divisor = m
    if KIND == "a remainder and more":
        number = i % n + 3
    elif KIND == "what grows by a quotient":
        number = i + i // n * 7
    elif KIND == "two remainders":
        number = i % n + i % m
    elif KIND == "by what is loaded":
        number, divisor = i, tl.load(sizes + i // n)
    else:
        number, divisor = i // n, tl.load(sizes + i // n) // 8
    here = tl.load(x + number // divisor) + tl.load(x + number % divisor)
    tl.store(out + i, here + 1000 * tl.load(x + i // n) + tl.load(x + i % n))


@pytest.mark.parametrize("n, m", [(50, 30), (30, 50), (37, 12), (12, 12), (12, 37)])
@pytest.mark.parametrize(
    "kind",
    ["a remainder and more", "what grows by a quotient", "two remainders", "by what is loaded", "a quotient, by that"],
)
def test_divisions_of_divisions(compare, rng, kind, n, m):
    """A run of segments was taken to have one divisor, and one quotient of what grew by the first one's."""
    x, sizes = rng.integers(0, 1000, 4096).astype(np.int32), rng.integers(16, 60, 100).astype(np.int32)
    compare(divided_again, [x, sizes, np.zeros(1024, np.int32), n, m], {"KIND": kind, "BLOCK": 512}, grid=(2,))


def rows_at_indices(x, rows, out, total, n, BLOCK: tl.constexpr):
    """An embedding, by a flat index."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(rows + i // n, mask=i < total, other=0)
    tl.store(out + i, tl.load(x + row * n + i % n, mask=i < total), mask=i < total)


@pytest.mark.parametrize(
    "dtype, n", [(np.float32, 100), (np.float16, 33), (np.int8, 8), (np.float64, 300), (np.int64, 5)]
)
def test_rows_at_indices(compare, rng, dtype, n):
    x, rows = rng.integers(-99, 99, (40, n)).astype(dtype), rng.integers(0, 40, 23)
    arrays = [x, rows, np.zeros((23, n), dtype), 23 * n]
    made = compare(rows_at_indices, [*arrays, n], {"BLOCK": 512}, grid=(-(-23 * n // 512),))[2]
    np.testing.assert_array_equal(made, x[rows])


def test_a_mask_with_a_limit_does_not_keep_loads_out_of_segments(lower_python, lower_module):
    """Such rows were gathered, at 0.1 of torch's speed: a comparison with a limit is the same in a segment."""
    arguments = [X, np.zeros(1, np.int64), X, 4096, 64]
    llir = lower_module(lower_python(rows_at_indices, arguments, {"BLOCK": 1024})).llir
    assert "segment" in llir and "<16 x float>" in llir  # one wide index for all lanes leaves them as many


@pytest.mark.parametrize("n, is_segmented", [(200, True), (24, False), (64, False)])
def test_long_segments_instead_of_half_vectors(lower_python, lower_module, n, is_segmented):
    """Vectors of 8 lanes fit between multiples of 200, of 16 lanes they do not."""
    llir = lower_module(lower_python(one_of_each_row, [X, X, 64], {"BLOCK": 1024, "N": n})).llir
    assert ("segment" in llir) == is_segmented


def divided(x, quotients, rests, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    number, divisor = tl.load(x + i), tl.load(n)
    tl.store(quotients + i, number // divisor)
    tl.store(rests + i, number % divisor)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int16])
def test_vectors_divided_by_one_number(compare, rng, dtype):
    """Multiples of it and their neighbours, where a quotient that is not exact shows."""
    info = np.iinfo(dtype)
    for n in (7, 641, info.max, info.max // 2, int(rng.integers(2, info.max)), info.min or 1, -1 if info.min else 3):
        around = (rng.integers(info.min, info.max, 60, dtype) // n).astype(object) * n + rng.integers(-1, 2, 60)
        x = np.array([*around.clip(info.min, info.max), info.min, info.max, 0, 1]).astype(dtype)
        arrays = [x, np.zeros_like(x), np.zeros_like(x), np.array([n], dtype)]
        compare(divided, arrays, {"BLOCK": 64}, cpus=("native",))


def concatenated(x, y, out, first, last, length, BLOCK: tl.constexpr, COMPUTES: tl.constexpr, WIDE: tl.constexpr):
    """Rows of `first` elements of x and `last` of y."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, column = i // (first + last), i % (first + last)
    row = row.to(tl.int64) if WIDE else row
    mask = i < length
    a = tl.load(x + row * first + column, mask=mask & (column < first), other=0.0)
    b = tl.load(y + row * last + column - first, mask=mask & (column >= first), other=0.0)
    both = tl.where(column < first, a, b)
    tl.store(out + i, both * 2 if COMPUTES else both, mask=mask)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("first, last", [(40, 60), (64, 64), (3, 6), (101, 1), (48, 32), (16, 80)])
def test_concatenated_rows(compare, rng, first, last, wide):
    x, y = (rng.standard_normal((7, size)).astype(ml_dtypes.bfloat16) for size in (first, last))
    out = np.zeros(7 * (first + last) + 3, ml_dtypes.bfloat16)
    constexprs = {"BLOCK": 256, "COMPUTES": False, "WIDE": wide}
    compare(concatenated, [x, y, out, first, last, 7 * (first + last)], constexprs, grid=(5,))


@pytest.mark.parametrize("computes, lanes", [(False, 32), (True, 16)])
def test_what_is_moved_is_as_wide_as_it_is_in_memory(lower_python, lower_module, computes, lanes):
    x = np.zeros(1, ml_dtypes.bfloat16)
    constexprs = {"BLOCK": 256, "COMPUTES": computes, "WIDE": False}
    module = lower_python(concatenated, [x, x, x, 40, 60, 700], constexprs)
    assert f"load <{lanes} x i16>" in lower_module(module, "x86-64-v4").llir


def test_neighbours_of_one_quotient_are_not_gathered_where_some_are_off(lower_python, lower_module):
    x, constexprs = np.zeros(1, np.float32), {"BLOCK": 256, "COMPUTES": False, "WIDE": False}
    code = lower_module(lower_python(concatenated, [x, x, x, 48, 32, 720], constexprs), "x86-64-v4").llir
    regular = code[code.index("\nregular:") : code.index("\nirregular:")]
    assert "masked.load" in regular and "gather" not in regular
