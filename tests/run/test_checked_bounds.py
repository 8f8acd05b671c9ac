"""Accesses that are checked: what is out of bounds is found as the interpreter finds it, what is not is no error."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deuteron as triton
import deuteron.language as tl
from deuteron.errors import MemoryAccessError
from deuteron.tools.tensor_descriptor import TensorDescriptor

ROWS, COLUMNS = 4, 16


@pytest.fixture(params=["interpreter", "cpu"], autouse=True)
def executor(request, monkeypatch):
    monkeypatch.setenv("DEUTERON_TARGET", "cpu")
    monkeypatch.setenv("DEUTERON_CHECK", "bounds")
    monkeypatch.setenv("DEUTERON_INTERPRET", "1" if request.param == "interpreter" else "0")
    return request.param


@triton.jit
def load_some(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    x = tl.load(x_ptr + row * COLUMNS + column, mask=column < 10)
    tl.store(out_ptr + row * COLUMNS + column, x)


@triton.jit
def load_all(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    x = tl.load(x_ptr + row * COLUMNS + column)
    tl.store(out_ptr + row * COLUMNS + column, x)


@triton.jit
def store_some(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    tl.store(x_ptr + row * COLUMNS + column, 1.0, mask=(column < 10) & (row != 1))


@triton.jit
def load_scalar(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    total = 0.0
    for i in range(ROWS * COLUMNS):
        total += tl.load(x_ptr + i)
    tl.store(out_ptr, total)


@triton.jit
def same_for_a_row(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    x = tl.load(x_ptr + row * COLUMNS + column * 0, mask=column > 5)
    tl.store(out_ptr + row * COLUMNS + column, x)


@triton.jit
def add_atomically(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.arange(0, ROWS * COLUMNS)
    tl.atomic_add(x_ptr + i, 1.0, mask=i % 3 != 0)


@triton.jit
def exchange_scalar(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    bits = x_ptr.to(tl.pointer_type(tl.int32))
    tl.atomic_cas(bits + 41, 0, 1)


@triton.jit
def gather_rows(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = tl.arange(0, COLUMNS)
    for row in range(ROWS):
        index = (column * 7 + row) % (ROWS * COLUMNS)
        tl.store(out_ptr + row * COLUMNS + column, tl.load(x_ptr + index, mask=index != 63))


@triton.jit
def reduce_loaded(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    tl.store(out_ptr + tl.arange(0, ROWS), tl.sum(tl.load(x_ptr + row * COLUMNS + column), 1))


@triton.jit
def block_pointer(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    block = tl.make_block_ptr(x_ptr, (ROWS, COLUMNS), (COLUMNS, 1), (0, 0), (ROWS, COLUMNS), (1, 0))
    x = tl.load(block)
    tl.store(out_ptr + tl.arange(0, ROWS), tl.max(x, 1))


@triton.jit
def tile_then_scalar(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Of one vector, without a loop."""
    i = tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + i, mask=i < 10, other=0, volatile=True)
    tl.store(out_ptr + i, x + tl.load(x_ptr + 41))


@triton.jit
def of_either(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The arrays are told apart at run time."""
    i = tl.arange(0, ROWS * COLUMNS)
    p = tl.where(i % 2 == 0, x_ptr + i, out_ptr + i)
    tl.store(p, 1.0, mask=i < 50)


@triton.jit
def by_number(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """A pointer of which nothing is known."""
    i = tl.arange(0, ROWS * COLUMNS)
    address = x_ptr.to(tl.int64) + tl.program_id(0)
    tl.store(address.to(tl.pointer_type(tl.float32)) + i, 1.0)


KERNELS = [
    *(load_some, load_all, store_some, load_scalar, same_for_a_row, add_atomically, exchange_scalar, gather_rows),
    *(reduce_loaded, block_pointer, tile_then_scalar, of_either, by_number),
]


def launch(kernel, size: int, step: int = 1, grid: int = 1) -> str:
    """What is said of a launch with an array of some elements: "" of one that is right."""
    base = np.zeros(4096, np.float32)
    x = base[1024 : 1024 + size * step : step]
    out = base[2048 : 2048 + ROWS * COLUMNS]
    try:
        kernel[(grid,)](x, out, ROWS=ROWS, COLUMNS=COLUMNS)
    except MemoryAccessError as error:
        assert error.location.file == __file__
        first = inspect.getsourcelines(kernel.fn)[1]
        assert first < error.location.line < first + 12
        return error.message
    finally:
        changed = np.flatnonzero(base)
        within = (changed >= 1024) & (changed < 1024 + max((size - 1) * step + 1, 0))
        assert (within | ((changed >= 2048) & (changed < 2048 + ROWS * COLUMNS))).all()
    return ""


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_as_the_interpreter_says(kernel, monkeypatch, executor):
    if executor == "interpreter":
        pytest.skip("what others are compared with")
    for size in (64, 63, 48, 42, 41, 17, 1, 0):
        monkeypatch.setenv("DEUTERON_INTERPRET", "1")
        expected = launch(kernel, size)
        monkeypatch.setenv("DEUTERON_INTERPRET", "0")
        assert launch(kernel, size) == expected, size
    assert expected  # none is right with an empty array
    assert f"of kernel '{kernel.__name__}' accesses 4 bytes at byte offset" in expected


@pytest.mark.parametrize("kernel", [load_all, by_number], ids=["load_all", "by_number"])
def test_what_lies_between_the_elements_of_a_view_is_its_own(kernel):
    assert launch(kernel, 16, step=5) == ""
    assert "byte offset 244 of x_ptr, which has 244 bytes" in launch(kernel, 16, step=4)


def test_an_access_that_is_not_aligned():
    assert "Misaligned store: lane (0,) of program (1, 0, 0)" in launch(by_number, 100, grid=2)


@triton.jit
def through_descriptor(desc, out_ptr, row, COLUMNS: tl.constexpr):
    i = tl.arange(0, COLUMNS)
    tl.store(out_ptr + i, tl.sum(desc.load([row, 0]), 0))


def test_descriptors_say_how_large_an_array_is_and_arrays_how_large_they_are(executor):
    x, out = np.ones((8, 16), np.float32), np.zeros(16, np.float32)
    fits = TensorDescriptor(x, [8, 16], [16, 1], [4, 16])
    for row, sum in ((4, 4), (6, 2), (100, 0)):
        through_descriptor[(1,)](fits, out, row, COLUMNS=16)
        np.testing.assert_array_equal(out, sum)
    too_large = TensorDescriptor(x, [9, 16], [16, 1], [4, 16])
    with pytest.raises(MemoryAccessError, match=r"load: lane \(2, 0\) of .* byte offset 512 of desc.*, which has 512"):
        through_descriptor[(1,)](too_large, out, 6, COLUMNS=16)


@triton.jit
def sum_pairs(pairs, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(pairs[0] + i) + tl.load(pairs[1] + i))


def test_arrays_in_tuples():
    x, out = np.ones(32, np.float32), np.zeros(32, np.float32)
    sum_pairs[(1,)]((x, x), out, BLOCK=32)
    with pytest.raises(MemoryAccessError, match=r"lane \(31,\) .* byte offset 124 of pairs.*, which has 124 bytes"):
        sum_pairs[(1,)]((x, x[:31]), out, BLOCK=32)


@triton.jit
def copy_chosen(x_ptr, index_ptr, mask_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, ORDER: tl.constexpr):
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    place = row * COLUMNS + column if ORDER else column * ROWS + row
    index, mask = tl.load(index_ptr + place), tl.load(mask_ptr + place) != 0
    tl.store(out_ptr + place, tl.load(x_ptr + index, mask=mask, other=0))


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_lanes_and_masks(data):
    """The verdict, the array and the element; of an order other than row by row an element that is out of bounds."""
    count = ROWS * COLUMNS
    size = data.draw(st.integers(0, 70))
    numbers = st.integers(0, max(size - 1, 0)) if data.draw(st.booleans()) else st.integers(-2, size + 2)
    index = np.array(data.draw(st.lists(numbers, min_size=count, max_size=count)), np.int32)
    if data.draw(st.booleans()):
        index = np.arange(count, dtype=np.int32) + data.draw(st.integers(-1, 10))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)), np.int8)
    in_rows = data.draw(st.booleans())
    x, out = np.arange(size, dtype=np.int16), np.full(count, -1, np.int16)
    bad = (mask != 0) & ((index < 0) | (index >= size))
    shape = (ROWS, COLUMNS) if in_rows else (COLUMNS, ROWS)
    places = bad.reshape(shape) if in_rows else bad.reshape(shape).T
    try:
        copy_chosen[(1,)](x, index, mask, out, ROWS=ROWS, COLUMNS=COLUMNS, ORDER=in_rows)
    except MemoryAccessError as error:
        found = [place for place in np.argwhere(places).tolist() if f"lane {tuple(place)} of" in error.message]
        assert found
        assert not in_rows or found[0] == np.argwhere(places)[0].tolist()
        number = index[found[0][0] * COLUMNS + found[0][1] if in_rows else found[0][1] * ROWS + found[0][0]]
        assert f"2 bytes at byte offset {2 * number} of x_ptr, which has {2 * size} bytes" in error.message
        return
    assert not bad.any()
    np.testing.assert_array_equal(out, np.where(mask != 0, np.append(x, 0)[np.where(mask != 0, index, size)], 0))
