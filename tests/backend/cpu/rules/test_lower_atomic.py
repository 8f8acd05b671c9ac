"""Atomics: every kind and type, masked, and from many threads at once."""

import numpy as np
import pytest

import deuteron
import deuteron.language as tl


def add_all(x, out, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + i % BINS, tl.load(x + i, mask=i < n, other=0), mask=i < n)


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16", "int32", "int64"])
def test_addition(compare, rng, bfloat16, name):
    dtype = np.dtype(bfloat16 if name == "bfloat16" else name)
    x = rng.integers(0, 4, 100).astype(dtype)
    out = compare(add_all, [x, np.zeros(7, dtype), 100], {"BLOCK": 64, "BINS": 7}, grid=(2,))[1]
    assert out.astype(np.float64).sum() == x.astype(np.float64).sum()


def kinds(x, out, old, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    tl.store(old + i, tl.atomic_max(out + i % 4, a))
    tl.atomic_min(out + 4 + i % 4, a)
    tl.atomic_and(out + 8 + i % 4, a)
    tl.atomic_or(out + 12 + i % 4, a)
    tl.atomic_xor(out + 16 + i % 4, a)
    tl.atomic_xchg(out + 20 + i % 4, a)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64])
def test_kinds_and_old_values(compare, rng, dtype):
    x = rng.integers(0, 1000, 32).astype(dtype)
    compare(kinds, [x, np.full(24, 77, dtype), np.zeros(32, dtype)], {"BLOCK": 32})


def compare_and_swap(x, out, expected, new):
    tl.store(out, tl.atomic_cas(x, expected, new))


@pytest.mark.parametrize("expected", [5, 6])
def test_compare_and_swap(compare, expected):
    args = [np.full(1, 5, np.int32), np.zeros(1, np.int32), expected, 9]
    x, out, *_ = compare(compare_and_swap, args)
    assert (x[0], out[0]) == ((9, 5) if expected == 5 else (5, 5))


def count(out):
    old = tl.atomic_add(out, 1)
    tl.store(out + 1 + tl.program_id(0), old)


def test_scalar_counter(compare):
    compare(count, [np.zeros(6, np.int32)], grid=(5,))


def neighbours(x, on, out, old, n, KIND: tl.constexpr, IS_READ: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """From the second element on, in rows of any pitch, which begin anywhere within 16 bytes."""
    column = tl.arange(0, BLOCK)[None, :]
    i = tl.arange(0, ROWS)[:, None] * n + column
    mask = (column < n) & (tl.load(on + i, mask=column < n, other=0) != 0)
    a = tl.load(x + i, mask=mask, other=0)
    if KIND == "add":
        before = tl.atomic_add(out + 1 + i, a, mask=mask, sem="relaxed")
    elif KIND == "max":
        before = tl.atomic_max(out + 1 + i, a, mask=mask)
    elif KIND == "xor":
        before = tl.atomic_xor(out + 1 + i, a, mask=mask)
    else:
        before = tl.atomic_xchg(out + 1 + i, a, mask=mask)
    if IS_READ:
        tl.store(old + i, before, mask=mask)


NEIGHBOURS = [
    *[("add", name) for name in ("float32", "float64", "float16", "bfloat16", "int32", "int64")],
    *[("xchg", name) for name in ("float32", "int64")],
    *[(kind, name) for kind in ("max", "xor") for name in ("int32", "uint32", "int64")],
]


@pytest.mark.share(2)
@pytest.mark.parametrize("is_read", [False, True])
@pytest.mark.parametrize("kind, name", NEIGHBOURS)
def test_neighbours(compare, rng, bfloat16, kind, name, is_read):
    """What is off is not even accessed: arrays begin or end at pages without access."""
    dtype, rows, n = np.dtype(bfloat16 if name == "bfloat16" else name), 4, 83
    x, out = (rng.integers(0, 50, count).astype(dtype) for count in (rows * n, 1 + rows * n))
    on = (rng.random(rows * n) < 0.9).astype(np.int8)
    sizes = {"KIND": kind, "IS_READ": is_read, "ROWS": rows, "BLOCK": 128}
    compare(neighbours, [x, on, out, np.full(rows * n, 77, dtype), n], sizes)


@deuteron.jit
def add_neighbours(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@pytest.mark.share(2)
@pytest.mark.parametrize("across", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("first", range(17))
def test_arrays_that_begin_anywhere(rng, first, across):
    """Also of elements that are in two cache lines. For these an Intel processor locks its bus, which a hypervisor may
    punish: twenty of them took up to 104 s.
    """
    count = 61 if across or first % 4 == 0 else (64 - first) // 4
    x, memory = rng.random(count, np.float32), np.zeros(64 + 16 + 61 * 4, np.uint8)
    begin = first + -memory.ctypes.data % 64
    out = memory[begin : begin + count * 4].view(np.float32)
    add_neighbours[(2,)](x, out, count, BLOCK=64)
    np.testing.assert_array_equal(out, x + x)


def spaced(x, out, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(out + i * stride, tl.load(x + i))


@pytest.mark.parametrize("stride", [0, 1, 3])
def test_elements_that_may_be_no_neighbours(compare, rng, stride):
    compare(spaced, [rng.integers(0, 9, 64), np.zeros(200, np.int64), stride], {"BLOCK": 64})


def old_values_anywhere(x, index, out, old, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i % 5 < n
    before = tl.atomic_add(out + tl.load(index + i), tl.load(x + i), mask=mask)
    tl.store(old + i, before, mask=mask)


@pytest.mark.parametrize("n", [0, 3, 5])
@pytest.mark.parametrize("name", ["float32", "int32", "float64", "bfloat16"])
def test_old_values_of_elements_anywhere(compare, rng, bfloat16, name, n):
    """Those of an address that is met again have what was added before."""
    dtype = bfloat16 if name == "bfloat16" else np.dtype(name)
    x, index = rng.integers(0, 3, 64).astype(dtype), rng.integers(0, 20, 64).astype(np.int32)
    compare(old_values_anywhere, [x, index, np.zeros(20, dtype), np.full(64, 77, dtype), n], {"BLOCK": 64})


def widened(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(out + (i + n).to(tl.uint32), tl.load(x + i), mask=i != 5)


def test_offsets_that_may_wrap_between_neighbours(compare, rng):
    """Integers without a sign, widened."""
    compare(widened, [rng.random(64, np.float32), np.zeros(80, np.float32), 14], {"BLOCK": 64})


def down_columns(x, out, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Neighbours are along the first dimension; what is added is strided along it."""
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    tl.atomic_add(out + column * n + row, tl.load(x + row * 5 + column))


def test_neighbours_along_the_first_dimension(compare, rng):
    x, out = rng.random(32 * 5 + 8, np.float32), np.zeros(7 * 37 + 32, np.float32)
    compare(down_columns, [x, out, 37], {"ROWS": 32, "COLUMNS": 8})


@pytest.mark.parametrize("cpu, is_wide", [("x86-64", False), ("x86-64-v3", True)])
def test_windows_are_updated_at_once(lower_module, lower_python, cpu, is_wide):
    """Where the processor compares and exchanges 16 bytes; what neither it nor a library has would not be linked."""
    arrays = [np.zeros(4, np.float32), np.zeros(4, np.int8), *[np.zeros(4, np.float32)] * 2]
    sizes = {"KIND": "add", "IS_READ": False, "ROWS": 4, "BLOCK": 128}
    text = lower_module(lower_python(neighbours, [*arrays, 83], sizes), cpu).llir
    assert (" i128 " in text) == is_wide
