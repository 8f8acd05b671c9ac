"""tl.device_assert with the option `debug`: an AssertionFailure on every executor, with its line; none without."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.errors import AssertionFailure


@triton.jit
def checked_copy(x_ptr, out_ptr, limit, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.device_assert(x < limit, "x is below the limit")
    tl.store(out_ptr + i, x)


_LINE = inspect.getsourcelines(checked_copy.fn)[1] + 4


def test_what_holds_and_what_is_not_compiled(draw, poisoned, executor):
    """The interpreter always asserts."""
    x = draw("int32", 64, -8, 8)
    for limit, debug in ((9, True), (9 if executor == "interpreter" else -8, False)):
        out = poisoned("int32", 64)
        checked_copy[(4,)](x, out, limit, BLOCK=16, debug=debug)
        np.testing.assert_array_equal(out, x)


def test_a_failure_names_its_line_and_stores_nothing(draw, poisoned, executor):
    x, out = draw("int32", 16, -8, 8), poisoned("int32", 16)
    before = out.copy()
    x[11] = 9
    with pytest.raises(AssertionFailure, match="x is below the limit") as caught:
        checked_copy[(1,)](x, out, 9, BLOCK=16, debug=True)
    assert caught.value.location.line == _LINE
    assert isinstance(caught.value, AssertionError)
    np.testing.assert_array_equal(out, before)
    if executor in ("interpreter", "cpu"):
        assert "lane (11,) of program (0, 0, 0)" in caught.value.message


@triton.jit
def add_checked(a, b):
    tl.device_assert((a < 100) & (b < 100), "partial sums are small")
    return a + b


@triton.jit
def scan_rows(x_ptr, out_ptr, count, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + row[:, None] * COLUMNS + column[None, :])
    for number in range(count):
        assert number < 3, "there are three rounds"
        if number == 1:
            tl.device_assert(x != 77, "no element is 77", mask=column[None, :] > 0)
    tl.store(out_ptr + row, tl.reduce(x, 1, add_checked))


@pytest.mark.parametrize(
    "place, value, count, message, where",
    [
        ((1, 5), 77, 3, "no element is 77", "lane (1, 5) of program"),
        ((1, 0), 77, 4, "there are three rounds", "Assertion failed in program"),
        ((1, 7), 200, 3, "partial sums are small", ""),
        ((1, 0), 77, 3, "", ""),
    ],
)
def test_in_loops_branches_and_combine_functions(poisoned, executor, place, value, count, message, where):
    x, out = np.ones((2, 8), np.int32), poisoned("int32", 2)
    x[place] = value
    x[0, 0] = 77 if place[1] else 1  # masked
    x[0, 0] = 1 if value == 200 else x[0, 0]
    if not message:
        scan_rows[(1,)](x, out, count, ROWS=2, COLUMNS=8, debug=True)
        np.testing.assert_array_equal(out, x.sum(1))
        return
    with pytest.raises(AssertionFailure, match=message) as caught:
        scan_rows[(1,)](x, out, count, ROWS=2, COLUMNS=8, debug=True)
    if executor in ("interpreter", "cpu"):
        assert where in caught.value.message
