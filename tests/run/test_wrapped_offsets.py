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
    ],
)
def test_iterations(draw, kernel, number, places):
    x = draw("int32", SIZE, -1000, 1000)
    expected = expected_of(places, x.copy())
    kernel[(1,)](x, number, **EXTENTS)
    np.testing.assert_array_equal(x, expected)


def test_turns(draw):
    """Three times the number is 1: both tiles are one."""
    x = draw("int32", SIZE, -1000, 1000)
    expected, places = x.copy(), 3 * COLUMNS + 1
    expected[places] = (x[places] * 3 + 1) * 3 + x[places]
    in_turn[(1,)](x, -1431655765, **EXTENTS)
    np.testing.assert_array_equal(x, expected)
