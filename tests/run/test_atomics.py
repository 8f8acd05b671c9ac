"""`atomic_add` of programs that run at once: nothing is lost, each old value is handed out once."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl

pytestmark = pytest.mark.each_gpu


@triton.jit
def histogram_kernel(x_ptr, counts_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0)
    tl.atomic_add(counts_ptr + x, 1, mask=mask)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_histogram(draw, check, dtype):
    """Several elements of one tile add to one address; whole numbers in fp32 are exact."""
    x, counts = draw("int32", 3001, 0, 12), np.zeros(13, dtype)
    histogram_kernel[(triton.cdiv(3001, 64),)](x, counts, 3001, BLOCK=64)
    check(counts, np.bincount(x, minlength=13), ulps=0)


@triton.jit
def ticket_kernel(counter_ptr, out_ptr):
    ticket = tl.atomic_add(counter_ptr, 1)
    tl.store(out_ptr + ticket, ticket)


def test_old_values(poisoned, check):
    counter, out = np.zeros(1, np.int32), poisoned("int32", 500)
    ticket_kernel[(500,)](counter, out)
    check(counter, np.array([500]))
    check(out, np.arange(500))  # every old value once, in whatever order the programs came


@triton.jit
def old_values_kernel(x_ptr, old_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    old = tl.atomic_add(x_ptr + offsets, offsets.to(tl.float32), mask=offsets < n)
    tl.store(old_ptr + offsets, old, mask=offsets < n)


def test_old_values_of_a_tile(draw, poisoned, check):
    x, old = draw("float32", 30), poisoned("float32", 30)
    before = x.copy()
    old_values_kernel[(1,)](x, old, 25, BLOCK=32)
    check(old[:25], before[:25], ulps=0)
    assert np.isnan(old[25:]).all()
    check(x, np.where(np.arange(30) < 25, before + np.arange(30, dtype=np.float32), before), ulps=0)


@triton.jit
def row_sums_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row, block = tl.program_id(0), tl.program_id(1)
    offsets = block * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + offsets, mask=offsets < n, other=0.0)
    tl.atomic_add(out_ptr + row, tl.sum(x, axis=0))


def test_sums_of_many_programs(draw, check_norm):
    x, out = draw("float32", (5, 1000)), np.zeros(5, np.float32)
    row_sums_kernel[(5, triton.cdiv(1000, 32))](x, out, 1000, BLOCK=32)
    check_norm(out, x.astype(np.float64).sum(axis=1), 1e-5)


@triton.jit
def add_some_kernel(x_ptr, v_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.atomic_add(x_ptr + offsets, tl.load(v_ptr + offsets, mask=offsets < n, other=0.0), mask=offsets < n)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_last_of_an_odd_number(draw, check, dtype):
    """A bf16 is half a word; what the other half holds may not be the array's."""
    x, v = draw(dtype, 9, 1, 2), draw(dtype, 9, 1, 2)
    expected = x.astype(np.float64) + v.astype(np.float64)
    add_some_kernel[(1,)](x, v, 9, BLOCK=16)
    check(x, expected)


@triton.jit
def shifted_rows_kernel(rows_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """What a program adds to, others add to as well, from another element on."""
    program = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    at = tl.load(rows_ptr + program) + column
    tl.atomic_add(out_ptr + at, program + column, mask=column < n, sem="relaxed")
    tl.atomic_add(out_ptr + at % 7, 1, mask=column < n)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
def test_neighbours_of_many_programs(draw, check, dtype):
    programs, n = 200, 61
    rows, out = draw("int32", programs, 0, 30), np.zeros(128, dtype)
    expected = out.copy()
    for program, first in enumerate(rows):
        expected[first : first + n] += program + np.arange(n)
        np.add.at(expected, (first + np.arange(n)) % 7, 1)
    shifted_rows_kernel[(programs,)](rows, out, n, BLOCK=64)
    check(out, expected, ulps=0)


@triton.jit
def add_to_rows(index, gradients, table, n, ROW: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    row = tl.load(index + i // ROW, mask=inside, other=0)
    row = tl.where(row < 0, row + 50, row)
    tl.atomic_add(table + row * ROW + i % ROW, tl.load(gradients + i, mask=inside), mask=inside, sem="relaxed")


@pytest.mark.parametrize("row", [24, 7, 2])
def test_rows_that_a_table_names_are_added_to(rng, row):
    """Neighbours of a row are added by one instruction: of rows of 24 four at once, of 2 two, of 7 none."""
    num_rows = 101
    index = rng.integers(-50, 50, num_rows)
    gradients = rng.integers(-8, 8, (num_rows, row)).astype(np.float32)
    table = np.zeros((50, row), np.float32)
    expected = table.copy()
    np.add.at(expected, index, gradients)
    n = num_rows * row
    add_to_rows[(triton.cdiv(n, 512),)](index, gradients, table, n, ROW=row, BLOCK=512)
    np.testing.assert_array_equal(table, expected)
