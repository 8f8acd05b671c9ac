"""Loops without dots load iterations ahead: short loops, steps, what is stored where later iterations load."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl

pytestmark = pytest.mark.each_gpu


@triton.jit
def running_sums(x_ptr, out_ptr, begin, end, STEP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.int32)
    for k in range(begin, end, STEP):
        total += tl.load(x_ptr + k * BLOCK + i)
        tl.store(out_ptr + k * BLOCK + i, total)


@pytest.mark.share(2)
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


@triton.jit
def stored_before_it_is_loaded(x_ptr, out_ptr, n, LAG: tl.constexpr, BLOCK: tl.constexpr):
    """Each iteration loads what it has stored itself, or an earlier one."""
    i = tl.arange(0, BLOCK)
    for k in range(n):
        tl.store(x_ptr + (k + LAG) * BLOCK + i, i * k)
        x = tl.load(x_ptr + k * BLOCK + i)
        tl.store(out_ptr + k * BLOCK + i, x + 1)


@pytest.mark.parametrize("lag", [0, 1, 2])
def test_what_an_iteration_loads_after_it_has_stored_it(draw, poisoned, check, lag):
    x, out = draw("int32", (12, 64), -99, 99), poisoned("int32", (12, 64))
    expected, stored = out.copy(), x.copy()
    for k in range(9):
        stored[k + lag] = np.arange(64) * k
        expected[k] = stored[k] + 1
    stored_before_it_is_loaded[(1,)](x, out, 9, LAG=lag, BLOCK=64)
    check(out, expected)


@triton.jit
def around(x_ptr, n, size, BLOCK: tl.constexpr):
    """Later iterations come to the same elements again."""
    i = tl.arange(0, BLOCK)
    for k in range(n):
        p = x_ptr + (k * BLOCK + i) % size
        tl.store(p, tl.load(p) + k)


@triton.jit
def around_backwards(x_ptr, out_ptr, n, size, BLOCK: tl.constexpr):
    """The last of several loops that read the same rows."""
    i, x_ptr = tl.arange(0, BLOCK), x_ptr + tl.program_id(0) * size
    total = tl.zeros([BLOCK], tl.int32)
    for k in range(0, n, BLOCK):
        total += tl.load(x_ptr + k + i)
    for k in range(0, n, BLOCK):
        tl.store(out_ptr + (k + i) % size, tl.load(x_ptr + k + i) + total)


@pytest.mark.parametrize("size", [64, 100, 128])
def test_addresses_that_wrap_around(draw, check, size):
    x = draw("int32", 256, -99, 99)
    expected = x.copy()
    for k in range(5):
        np.add.at(expected, np.unique((k * 64 + np.arange(64)) % size), k)
    around[(1,)](x, 5, size, BLOCK=64)
    check(x, expected)


@pytest.mark.parametrize("size", [64, 128])
def test_rows_that_are_stored_to_the_same_elements_again(draw, poisoned, check, size):
    x, out = draw("int32", 320, -99, 99), poisoned("int32", size)
    expected = out.copy()
    total = x.reshape(5, 64).sum(0)
    for k in range(5):
        expected[(k * 64 + np.arange(64)) % size] = x[k * 64 : k * 64 + 64] + total
    around_backwards[(1,)](x, out, 320, size, BLOCK=64)
    check(out, expected)
