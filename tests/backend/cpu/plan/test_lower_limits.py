"""Loops in parts: before the limit of their masks, around it, and beyond it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import deuteron.language as tl

HIGHEST = (1 << 31) - 1


def row_of_programs(x, out, best, sums, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """What is masked by a limit along the rows and one across them; reductions with and without an identity."""
    row, c = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None], tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (c < n)
    a = tl.load(x + row * n + c, mask=mask, other=-1000)
    least = tl.load(x + row * n + c, mask=mask, other=3)
    tl.store(best + row, tl.argmax(a, 1)[:, None], mask=row < rows)
    tl.store(sums + row, (tl.sum(tl.where(c < n, a, 1), 1) + tl.min(least, 1))[:, None], mask=row < rows)
    tl.store(out + row * n + c, a - tl.max(a, 1)[:, None], mask=mask)


@pytest.mark.share(3)
@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 127, 192, 255, 256])
@pytest.mark.parametrize("rows, block", [(1, 64), (1, 128), (1, 256), (4, 256)])
def test_rows_up_to_a_limit(compare, rng, rows, block, n):
    """The tile may be narrower than a row."""
    x = rng.integers(-99, 99, max(1, 3 * n)).astype(np.int32)
    outputs = [np.zeros(max(1, 3 * n), np.int32), np.zeros(4, np.int32), np.zeros(4, np.int32)]
    compare(row_of_programs, [x, *outputs, 3, n], {"ROWS": rows, "BLOCK": block}, grid=(-(-3 // rows),))


def numbers(x, out, total, first, a, b, CASE: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """Numbers from `first` on, which may wrap around, compared with two bounds."""
    i = tl.arange(0, BLOCK)
    k = (i.to(tl.int64) + first if WIDE == "first" else i + first.to(tl.int32)).to(tl.int64 if WIDE else tl.int32)
    if CASE == "below":
        mask = (k < a) & (b >= k)
    elif CASE == "from":
        mask = (k >= a) & (b > k)
    elif CASE == "unsigned":
        mask = (k.to(tl.uint32) <= a.to(tl.uint32)) & (k > b)
    else:
        mask = (k <= a) | (k > b)
    y = tl.load(x + i, mask=mask, other=7)
    tl.store(out + i, y * 2 + mask, mask=i != 5)
    tl.store(total + i, tl.sum(y, 0) + i, mask=mask)


@pytest.mark.share(2)
@pytest.mark.parametrize("case", ["below", "from", "unsigned", "either"])
@pytest.mark.parametrize(
    "first, a, b",
    [
        (0, 100, 200),
        (-300, -50, -100),
        (5, 0, 400),
        (HIGHEST - 100, HIGHEST - 50, HIGHEST),
        (HIGHEST - 100, -HIGHEST, HIGHEST - 7),
        (-HIGHEST - 1, -HIGHEST + 70, -HIGHEST + 90),
        (-70, HIGHEST, -3),
    ],
)
def test_bounds_of_numbers_that_may_wrap_around(compare, rng, case, first, a, b):
    wide = rng.choice(["", "first", "last"])
    block = int(rng.choice([64, 128, 256]))
    arrays = [rng.integers(0, 99, block).astype(np.int64), np.zeros(block, np.int64), np.zeros(block, np.int64)]
    compare(numbers, [*arrays, first, a, b], {"CASE": case, "WIDE": str(wide), "BLOCK": block})


def sum_of_row(x, out, n, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    tl.store(out, tl.sum(tl.load(x + c, mask=c < n, other=0.0), 0))


@pytest.mark.parametrize("block, loops", [(64, 0), (128, 3), (1024, 3)])
def test_parts_of_short_rows(lower_python, lower_module, block, loops):
    """Four vectors of 16 are computed at once."""
    module = lower_python(sum_of_row, [np.zeros(64, np.float32), np.zeros(1, np.float32), 5], {"BLOCK": block})
    llir = lower_module(module, "x86-64-v4").llir
    assert len(re.findall(r"^d0(\.\d+)?:", llir, re.MULTILINE)) == loops


def masked_row(x, out, n, COMPUTES: tl.constexpr):
    i = tl.program_id(0) * n + tl.arange(0, 128)
    value = tl.load(x + i, mask=tl.arange(0, 128) < n)
    tl.store(out + i, value / 3 if COMPUTES else value, mask=tl.arange(0, 128) < n)


@pytest.mark.parametrize("computes, loops", [(True, 2), (False, 1)])
def test_parts_of_short_rows_that_are_stored(lower_python, lower_module, compare, rng, computes, loops):
    """Up to the limit and around it, where numbers are computed and not only moved."""
    n = int(rng.integers(1, 128))
    arguments = [rng.standard_normal(3 * n).astype(np.float32), np.zeros(3 * n, np.float32), n]
    compare(masked_row, arguments, {"COMPUTES": computes}, (3,), cpus=("native",))
    text = lower_module(lower_python(masked_row, arguments, {"COMPUTES": computes}), "x86-64-v4").llir
    assert len(re.findall(r"^d0(\.\d+)?:", text, re.MULTILINE)) == loops


def in_place(x, w, out, n, steps, BLOCK: tl.constexpr, CASE: tl.constexpr):
    """Rows that are loaded by several loops, and changed in between, or by the last of them."""
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    for step in range(steps):
        k = step * BLOCK + c
        a = tl.load(x + row * n + k, mask=k < n, other=0)
        scaled = a * tl.load(w + k, mask=k < n, other=1)
        total = tl.sum(scaled, 0)
        if CASE == "between":
            tl.store(x + row * n + k, total - a, mask=k < n)
        if CASE == "moved":
            tl.store(x + row * n + n - 1 - k, total + a, mask=k < n)
        largest = tl.max(a, 0)
        tl.store((x if CASE == "last" else out) + row * n + k, scaled - total + largest, mask=k < n)


@pytest.mark.parametrize("case", ["none", "between", "moved", "last"])
@pytest.mark.parametrize("n, steps", [(200, 1), (256, 1), (300, 2)])
def test_rows_that_are_loaded_again(compare, rng, case, n, steps):
    arrays = [rng.integers(-9, 9, 2 * n).astype(np.int32) for _ in range(3)]
    compare(in_place, [*arrays, n, steps], {"BLOCK": 256, "CASE": case}, grid=(2,))


def sums_of_columns(x, out, least, rows, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """One iteration of several vectors, in which a loop goes down the rows."""
    c = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total, lowest = tl.zeros((COLUMNS,), tl.int32), tl.full((COLUMNS,), 1000, tl.int32)
    for first in range(0, rows, ROWS):
        row = first + tl.arange(0, ROWS)
        mask = (row < rows)[:, None] & (c < n)[None, :]
        a = tl.load(x + row[:, None] * n + c[None, :], mask=mask, other=3)
        total += tl.sum(tl.where((row < rows)[:, None], a, 5), 0)
        lowest = tl.minimum(lowest, tl.min(a, 0))
    tl.store(out + c, total, mask=c < n)
    tl.store(least + c, lowest, mask=c < n)


@pytest.mark.parametrize("rows", [1, 8, 19])
@pytest.mark.parametrize("n", [1, 64, 65, 127])
def test_sums_of_columns(compare, rng, rows, n):
    """Without masks where all rows and columns of a tile are there."""
    x = rng.integers(-99, 99, rows * n).astype(np.int32)
    outputs = [np.zeros(n, np.int32), np.zeros(n, np.int32)]
    compare(sums_of_columns, [x, *outputs, rows, n], {"ROWS": 8, "COLUMNS": 64}, grid=(-(-n // 64),))


def test_sums_of_columns_ask_for_no_mask_where_all_are_on(lower_python, lower_module):
    x = np.zeros(4096, np.int32)
    llir = lower_module(lower_python(sums_of_columns, [x, x, x, 64, 64], {"ROWS": 8, "COLUMNS": 64})).llir
    loops = re.split(r"\n(?=\S+:)", llir)
    unmasked = [block for block in loops if block.count("load <16 x i32>") >= 4 and "masked" not in block]
    assert unmasked
