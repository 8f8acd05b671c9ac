"""Loops without dots load iterations ahead: short loops, steps, what is stored where later iterations load."""

import pytest

import deuteron as triton
import deuteron.language as tl


@triton.jit
def running_sums(x_ptr, out_ptr, begin, end, STEP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.int32)
    for k in range(begin, end, STEP):
        total += tl.load(x_ptr + k * BLOCK + i)
        tl.store(out_ptr + k * BLOCK + i, total)


@pytest.mark.parametrize("num_stages", [1, 3, 5])
@pytest.mark.parametrize(("begin", "end", "step"), [(0, 0, 1), (0, 1, 1), (2, 5, 1), (0, 9, 4), (1, 8, 3)])
def test_short_loops(draw, poisoned, check, begin, end, step, num_stages):
    x, out = draw("int32", (9, 64), -99, 99), poisoned("int32", (9, 64))
    expected = out.copy()
    running_sums[(1,)](x, out, begin, end, STEP=step, BLOCK=64, num_stages=num_stages)
    rows = list(range(begin, end, step))
    expected[rows] = x[rows].cumsum(0)
    check(out, expected)


@triton.jit
def handed_on(x_ptr, n, DISTANCE: tl.constexpr, BLOCK: tl.constexpr):
    """Each block is added to one that a later iteration loads."""
    i = tl.arange(0, BLOCK)
    for k in range(n):
        x = tl.load(x_ptr + k * BLOCK + i)
        tl.store(x_ptr + (k + DISTANCE) * BLOCK + i, x + 1)


@pytest.mark.parametrize("distance", [0, 1, 2, 3])
def test_what_later_iterations_load_is_stored_first(draw, check, distance):
    x = draw("int32", (12, 64), -99, 99)
    expected = x.copy()
    for k in range(9):
        expected[k + distance] = expected[k] + 1
    handed_on[(1,)](x, 9, DISTANCE=distance, BLOCK=64, num_stages=4)
    check(x, expected)
