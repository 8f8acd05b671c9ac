"""`triton.tools.ragged_tma`: blocks of parts of an array, whose rows begin and end anywhere."""

from importlib import import_module

import numpy as np
import pytest

import deuteron as triton
import deuteron.compat  # noqa: F401
import deuteron.language as tl

ragged = import_module("triton.tools.ragged_tma")
load_ragged, store_ragged, atomic_add_ragged = ragged.load_ragged, ragged.store_ragged, ragged.atomic_add_ragged


@triton.jit
def kernel(x, out, starts_ptr, ADDS: tl.constexpr, ROWS: tl.constexpr):
    part = tl.program_id(0)
    first = tl.load(starts_ptr + part)
    count = tl.load(starts_ptr + part + 1) - first
    for row in range(0, count, ROWS):
        y = load_ragged(x, first, count, [row, 0]) + 1
        if ADDS:
            atomic_add_ragged(out, first, count, [row, 0], y)
        else:
            store_ragged(out, first, count, [row, 0], y)


@pytest.mark.each_gpu
def test_parts(draw, check):
    x, out, added = draw("float32", (32, 16)), np.full((32, 16), -1, np.float32), np.zeros((32, 16), np.float32)
    starts = np.array([2, 7, 7, 20, 31], np.int32)
    made = [ragged.create_ragged_descriptor(each, [8, 16]) for each in (x, out, added)]
    kernel[(4,)](made[0], made[1], starts, ADDS=False, ROWS=8)
    expected = np.where((np.arange(32) >= 2) & (np.arange(32) < 31), x.T + 1, -1).T
    check(out, expected)
    kernel[(4,)](made[0], made[2], starts, ADDS=True, ROWS=8)
    check(added, np.where(expected == -1, 0, expected))
