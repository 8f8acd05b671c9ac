"""Stores that bypass the caches, in launches that are taken to be larger than these."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import deuteron.language as tl
from deuteron.backend.cpu import lowering
from deuteron.backend.cpu.plan.programs import streams

STREAMED = "!nontemporal"
MOST_STORES = tl.constexpr(streams.MOST_STORES)


@pytest.fixture(autouse=True)
def small_cache(monkeypatch):
    """A last cache of 1,000 bytes."""
    target = lowering.cpu_target
    monkeypatch.setattr(lowering, "cpu_target", lambda *cpu: replace(target(*cpu), cache_bytes=1000))


def scaled(x, out, first, last, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (i >= first) & (i < last)
    tl.store(out + i, tl.load(x + i, mask=mask) * 2, mask=mask)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.int16, np.int64])
@pytest.mark.parametrize("first, last", [(0, 1024), (37, 1000)])
def test_what_is_streamed_is_written(compare, rng, dtype, first, last):
    x = (50 * rng.random(last)).astype(dtype)
    compare(scaled, [x, np.full(last, 77, dtype), first, last], {"BLOCK": 256}, grid=(4,))


def shifted(x, out, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    i = SHIFT + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) * 2)


@pytest.mark.parametrize("shift", [0, 1, 3, 4])
def test_addresses_that_are_not_aligned(compare, rng, shift):
    x = rng.random(1024 + shift, np.float32)
    compare(shifted, [x, np.full(1024 + shift, 77, np.float32)], {"SHIFT": shift, "BLOCK": 512}, grid=(2,))


def row_of_each(x, out, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    i = tl.arange(0, BLOCK)[None, :]
    tile = tl.load(x + row * BLOCK + i)
    tl.store(out + row * BLOCK + i, tile - tl.sum(tile, 1)[:, None], mask=i < n)
    tl.store(out + ROWS * 2 * BLOCK + row * BLOCK + i, tile)


def test_two_stores_to_rows(compare, rng):
    x, out = rng.random((8, 128), np.float32), np.full((16, 128), 77, np.float32)
    compare(row_of_each, [x, out, 100], {"ROWS": 4, "BLOCK": 128}, grid=(2,))


def stored_twice(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for step in range(n):
        tl.store(out + i, tl.load(x + step * BLOCK + i))
        tl.store(out + 5 + i, tl.load(x + step * BLOCK + i), mask=i < BLOCK - 5)


def test_the_last_of_several_stores_stays(compare, rng):
    compare(stored_twice, [rng.random((4, 512), np.float32), np.zeros(512, np.float32), 4], {"BLOCK": 512})


def test_a_launch_decides(lower_python, lower_module):
    x = np.zeros(256, np.float32)
    llir = lower_module(lower_python(scaled, [x, x, 0, 9], {"BLOCK": 256})).llir
    assert STREAMED in llir
    assert re.search(r"icmp uge i64 %\S+, 1000\n", llir)
    assert "call i64 @llvm.umin.i64(i64 %" in llir, "a mask limits what a program writes"
    assert "icmp ne ptr %out, %x" in llir
    assert "fence seq_cst" in llir


def rows_of_a_program(x, out, BLOCK: tl.constexpr):
    for step in range(2, 10, 2):
        i = step * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i))


def test_what_loops_write_counts(lower_python, lower_module, compare, rng):
    """Four times 512 bytes, of a cache of 1,000."""
    x = rng.random(10 * 128, np.float32)
    llir = lower_module(lower_python(rows_of_a_program, [x, x], {"BLOCK": 128})).llir
    assert STREAMED in llir
    assert re.search(r"mul i64 %\S+, 2048\n", llir)
    compare(rows_of_a_program, [x, np.full_like(x, 7)], {"BLOCK": 128})


def in_place(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) * 2)


def with_an_atomic(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i))
    tl.atomic_add(x, 1.0)


def with_a_volatile_load(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, volatile=True))


def strided(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + 2 * i, tl.load(x + i))


def short_rows(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, 16)[:, None] * 100 + tl.arange(0, BLOCK // 16)[None, :]
    tl.store(out + i, tl.load(x + i))


def stored_again(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for step in tl.range(4, loop_unroll_factor=1):
        tl.store(out + i, tl.load(x + step * BLOCK + i))


def many_stores(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for row in tl.static_range(MOST_STORES + 1):
        tl.store(out + row * row * BLOCK + i, tl.load(x + i) * row)


OTHERS = [in_place, with_an_atomic, with_a_volatile_load, strided, short_rows, stored_again, many_stores]


@pytest.mark.parametrize("kernel", OTHERS)
def test_others_are_not_streamed(lower_python, lower_module, kernel):
    x = np.zeros(256, np.float32)
    args = [x] if kernel is in_place else [x, x]
    llir = lower_module(lower_python(kernel, args, {"BLOCK": 256})).llir
    assert STREAMED not in llir
    assert "fence seq_cst\n" not in llir
