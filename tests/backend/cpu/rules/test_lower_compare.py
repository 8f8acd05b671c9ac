"""Ranges compared with a number: of many lanes that is one comparison of bytes."""

from __future__ import annotations

import re

import numpy as np
import pytest

import deuteron.language as tl

LOWEST, HIGHEST = -(1 << 31), (1 << 31) - 1


def compared(x, out, n, first: tl.constexpr, end: tl.constexpr):
    """A bit for each relation, with the range on either side."""
    i = tl.arange(first, end)
    bits = (i < n).to(tl.int8) + 2 * (i <= n).to(tl.int8) + 4 * (i > n).to(tl.int8) + 8 * (i >= n).to(tl.int8)
    bits += 16 * (n < i).to(tl.int8) + 32 * (n <= i).to(tl.int8)
    other = tl.where(n > i, tl.load(x + i - first), 50).to(tl.int8) + 4 * (n >= i).to(tl.int8)
    tl.store(out + i - first, bits)
    tl.store(out + (end - first) + i - first, other)


@pytest.mark.parametrize("n", [LOWEST, -1, 0, 1, 63, 64, 100, 127, 128, 191, 192, HIGHEST - 1, HIGHEST])
@pytest.mark.parametrize("first, end", [(0, 64), (64, 192)])
def test_ranges_and_a_number(compare, rng, first, end, n):
    x = rng.integers(0, 3, end - first).astype(np.int8)
    compare(compared, [x, np.zeros(2 * (end - first), np.int8), n], {"first": first, "end": end})


def chosen_bytes(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.where(i < n, tl.load(x + i), tl.load(y + i)))


def test_bytes_are_chosen_by_one_comparison(lower_python, lower_module):
    x = np.zeros(64, np.int8)
    llir = lower_module(lower_python(chosen_bytes, [x, x, x, 9], {"BLOCK": 64})).llir
    assert re.search(r"icmp \w+ <64 x i8>", llir) and not re.search(r"icmp \w+ <64 x i32>", llir)
