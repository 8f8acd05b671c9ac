"""Tiles of numbers that only address what others load: every thread loads those that it needs."""

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate

import deuteron
import deuteron.language as tl


@deuteron.jit
def gather(index, x, out, CASE: tl.constexpr):
    rows, columns = tl.arange(0, 32), tl.arange(0, 64)
    row = tl.load(index + rows)
    if CASE == "stored":
        tl.store(out + rows, row)
    if CASE == "written":
        tl.store(index + rows, row + 1)
    if CASE == "summed":
        row += tl.max(row, 0) - 31
    tile = tl.load(x + row[:, None] * 64 + columns[None, :], mask=row[:, None] >= 0, other=0)
    tl.store(out + 64 + rows[:, None] * 64 + columns[None, :], tile)


@pytest.mark.parametrize(("case", "conversions"), [("plain", 0), ("stored", 0), ("written", 1), ("summed", 0)])
def test_numbers_of_rows_are_loaded_where_rows_are(rng, case, conversions):
    index, x = aligned(rng.permutation(32).astype(np.int32)), aligned(rng.integers(0, 100, (32, 64)).astype(np.int32))
    out = aligned(np.zeros((33, 64), np.int32))
    text = compile_for("cuda:90", gather, index, x, out, CASE=case).asm["ttgir"]
    assert text.count("ttg.convert_layout") == conversions
    expected = x[index]
    emulate(gather, index, x, out, CASE=case)
    np.testing.assert_array_equal(out[1:], expected)
