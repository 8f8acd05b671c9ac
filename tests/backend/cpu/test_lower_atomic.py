"""Atomics: every kind and type, masked, and from many threads at once."""

import numpy as np
import pytest

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
