"""Strides with which offsets of 32 bits wrap around, so that elements which look apart are at one place: what an
iteration, or a thread, loads is there after all that was stored before. Elements at one place are stored one value.
"""

from __future__ import annotations

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl

SIZE = 2048
EXTENTS = {"ROWS": 16, "COLUMNS": 64}


@triton.jit
def rows_in_place(x, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = 4 * tl.arange(0, ROWS)[:, None] * stride + tl.arange(0, COLUMNS)[None, :]
    tl.store(x + i, tl.load(x + i) * 3 + 1)


@triton.jit
def rows_of_a_number(x, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.arange(0, ROWS)[:, None] * (1 << 30) + tl.arange(0, COLUMNS)[None, :]
    mask = (tl.arange(0, ROWS) % 4 == 0)[:, None] & (tl.arange(0, COLUMNS) >= 0)[None, :]
    tl.store(x + i, tl.load(x + i, mask=mask) * 3 + 1, mask=mask)


@triton.jit
def columns_within_rows(x, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    for k in range(0, 512, COLUMNS):
        columns = k + tl.arange(0, COLUMNS)[None, :]
        places = x + 4 * tl.arange(0, ROWS)[:, None] * n + columns
        tl.store(places, tl.load(places, mask=columns < n) * 3 + 1, mask=columns < n)


@triton.jit
def steps_of_loops(x, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    for k in range(ROWS):
        places = x + k * (n * 96) + tl.arange(0, COLUMNS)
        tl.store(places, tl.load(places) * 3 + 1)


@triton.jit
def steps_around(x, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    for k in tl.range(0, n, 4, loop_unroll_factor=1):
        places = x + k * (1 << 30) + tl.arange(0, COLUMNS)
        tl.store(places, tl.load(places) * 3 + 1)


@triton.jit
def rows_read_again(x, out, n, COLUMNS: tl.constexpr):
    i, row = tl.arange(0, COLUMNS), x + tl.program_id(0) * COLUMNS * n
    total = tl.zeros((COLUMNS,), tl.int32)
    for k in range(n):
        total += tl.load(row + k * COLUMNS + i)
    for k in range(n):
        stored = total + tl.load(row + k * COLUMNS + i)
        tl.store(out + tl.program_id(0) * COLUMNS + k * (1 << 30) + i, stored, mask=(k % 4 == 0) & (i >= 0))


@triton.jit
def in_turn(x, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = 3 * tl.arange(0, COLUMNS)
    first, second = tl.load(x + 3 * n + i), tl.load(x + i + 1)
    tl.store(x + 3 * n + i, first * 3 + 1)
    tl.store(x + i + 1, tl.load(x + i + 1) * 3 + second)


def expected_of(places: np.ndarray, x: np.ndarray) -> np.ndarray:
    for tile in places:
        x[np.unique(tile)] = x[np.unique(tile)] * 3 + 1
    return x


COLUMNS = np.arange(64)
ROWS = np.arange(16)[:, None]


@pytest.mark.parametrize(
    ("kernel", "number", "places"),
    [
        (rows_in_place, 1 << 30, [COLUMNS]),
        (rows_of_a_number, 0, [COLUMNS]),
        (columns_within_rows, (1 << 30) + 1, [k + 4 * ROWS + COLUMNS for k in range(0, 512, 64)]),
        (columns_within_rows, 0, []),
        (steps_of_loops, ((1 << 32) + 32) // 96, [32 * k + COLUMNS for k in range(16)]),
        (steps_around, 18, [COLUMNS] * 5),
    ],
)
def test_iterations(draw, kernel, number, places):
    x = draw("int32", SIZE, -1000, 1000)
    expected = expected_of(places, x.copy())
    kernel[(1,)](x, number, **EXTENTS)
    np.testing.assert_array_equal(x, expected)


def test_iterations_after_those_that_read_the_same(draw, poisoned):
    """The last iteration that stores at a place is what is there."""
    x, out = draw("int32", (2, 10, 64), -1000, 1000), poisoned("int32", (2, 64))
    rows_read_again[(2,)](x, out, 10, COLUMNS=64)
    np.testing.assert_array_equal(out, x.sum(axis=1) + x[:, 8])


def test_turns(draw):
    """Three times the number is 1: both tiles are one."""
    x = draw("int32", SIZE, -1000, 1000)
    expected, places = x.copy(), 3 * COLUMNS + 1
    expected[places] = (x[places] * 3 + 1) * 3 + x[places]
    in_turn[(1,)](x, -1431655765, **EXTENTS)
    np.testing.assert_array_equal(x, expected)


@triton.jit
def shifted_bounds(a, b, out, n, k, SHIFT: tl.constexpr):
    rows, columns = tl.program_id(0) * 64 + tl.arange(0, 64), tl.arange(0, 64)
    total = tl.zeros((64, 64), tl.float32)
    for first in range(0, k, 64):
        at = first + columns
        mask = (rows + SHIFT < n)[:, None] & (at < k)[None, :]
        x = tl.load(a + rows[:, None] * k + at[None, :], mask=mask, other=0.0)
        total = tl.dot(x, tl.load(b + at[:, None] * 64 + columns[None, :]), total)
    tl.store(out + rows[:, None] * 64 + columns[None, :], total)


@pytest.mark.parametrize(("shift", "n"), [(-64, 2**31 - 1), (64, -(2**31)), (-64, 50), (64, 100)])
def test_bounds_that_are_no_sizes(draw, poisoned, shift, n):
    """n - shift does not fit 32 bits where n says that there is no end."""
    a = draw("int32", (128, 128), -4, 4).astype(np.float16)
    b = draw("int32", (128, 64), -4, 4).astype(np.float16)
    out = poisoned("float32", (128, 64))
    shifted_bounds[(2,)](a, b, out, n, 128, SHIFT=shift)
    expected = np.where((np.arange(128) + shift < n)[:, None], a.astype(np.float64), 0) @ b.astype(np.float64)
    np.testing.assert_array_equal(out, expected)


@triton.jit
def moved_on(x, out, counts, start, BLOCK: tl.constexpr):
    """Of the offsets those which have wrapped around are in the arrays, to which the pointers are 2**31 further on."""
    i, far = tl.arange(0, BLOCK), tl.full((), 2**31, tl.int64)
    at = start + i
    tl.store(out + far + at, tl.load(x + far + at, mask=at < 0, other=-1), mask=at < 0)
    tl.atomic_add(counts + far + at, i, mask=at < 0)
    tl.store(out + BLOCK + i, (x + far + at).to(tl.int64) - x.to(tl.int64))


@pytest.mark.parametrize("before", [1, 60, 64, 100])
def test_offsets_that_wrap_into_an_array(draw, poisoned, before):
    x, out, counts = draw("int32", 128), poisoned("int32", 256), np.zeros(128, np.int32)
    expected = out.copy()
    moved_on[(1,)](x, out, counts, 2**31 - before, BLOCK=128)
    expected[: 128 - before] = x[: 128 - before]
    lanes = np.arange(128)
    at = 2**31 - before + lanes - 2**32 * (lanes >= before) + 2**31
    expected[128:] = (4 * at).astype(np.int32)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(counts, np.where(lanes < 128 - before, lanes + before, 0))
