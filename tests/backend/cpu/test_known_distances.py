"""Loads whose lanes are known distances apart: repeated, in turns, exchanged; beginning anywhere, masked anyhow."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron.language as tl
from deuteron.backend.cpu.lowering import plan_function
from deuteron.backend.cpu.plan.prepare import kernel_of
from deuteron.backend.cpu.plan.tiles.buffers import assign_buffers
from deuteron.backend.cpu.plan.vectors.axes import choose_axis
from deuteron.backend.cpu.target import cpu_target
from deuteron.backend.llvm.targets import resolve_cpu

CPUS = ("native", "x86-64-v3")


def repeated(x, out, first, n, R: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = at + first
    tl.store(out + at, tl.load(x + 64 + i // R, mask=at < n, other=7), mask=at < n + 3)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
@pytest.mark.parametrize("repeats", [2, 4, 16])
def test_repeated_elements(compare, rng, dtype, repeats):
    x = rng.integers(0, 99, 160).astype(dtype)
    for first, n in ((0, 128), (-128, 101), (3, 64)):
        compare(repeated, [x, np.full(128, 9, dtype), first, n], {"R": repeats, "BLOCK": 64}, grid=(2,), cpus=CPUS)


def packed(w, out, n, K: tl.constexpr, BLOCK: tl.constexpr):
    """Halves of bytes, along rows."""
    k, rows = tl.arange(0, BLOCK), tl.arange(0, 4)
    q = tl.load(w + rows[:, None] * (K // 2) + (k // 2)[None, :], mask=(k < n)[None, :], other=0)
    tl.store(out + rows[:, None] * BLOCK + k[None, :], (q >> ((k % 2) * 4)[None, :]) & 15)


@pytest.mark.parametrize("n", [64, 37])
def test_packed_halves(compare, rng, n):
    w = rng.integers(0, 256, (4, 32)).astype(np.uint8)
    compare(packed, [w, np.full((4, 64), 9, np.int32), n], {"K": 64, "BLOCK": 64}, cpus=CPUS)


def in_turns(x, out, BLOCK: tl.constexpr):
    """Neighbours exchanged, a few elements over and over, two runs, backwards in groups."""
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + (i ^ 1)) + tl.load(x + i % 4))
    tl.store(out + BLOCK + i, tl.load(x + i // 2 + i % 2 * 40) + tl.load(x + i // 8 * 8 + 7 - i % 8))


def test_elements_in_turns(compare, rng):
    compare(in_turns, [rng.integers(0, 99, 128).astype(np.int32), np.zeros(128, np.int32)], {"BLOCK": 64}, cpus=CPUS)


def signs(x, out, BLOCK: tl.constexpr):
    """Neighbours in memory, of which every other one counts."""
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) * (1 - i % 2 * 2) + i // 4 % 2)


def test_elements_of_alternating_signs(compare, rng):
    compare(signs, [rng.integers(0, 99, 256).astype(np.int32), np.zeros(256, np.int32)], {"BLOCK": 256}, cpus=CPUS)


def advanced(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    pointers, total = x + i // 4, tl.zeros((BLOCK,), tl.int32)
    for _ in range(n):
        total += tl.load(pointers)
        pointers += 3
    tl.store(out + i, total)


def test_pointers_that_a_loop_advances(compare, rng):
    compare(advanced, [rng.integers(0, 99, 64).astype(np.int32), np.zeros(64, np.int32), 5], {"BLOCK": 64}, cpus=CPUS)


def twice(x, out, BLOCK: tl.constexpr):
    """One tile along both dimensions of another."""
    found = tl.load(x + tl.arange(0, BLOCK) // 2)
    i = tl.arange(0, BLOCK)
    tl.store(out + i[:, None] * BLOCK + i[None, :], found[:, None] * 100 + found[None, :])


def test_a_tile_that_is_read_along_two_dimensions(compare, rng):
    compare(twice, [rng.integers(0, 99, 16).astype(np.int32), np.zeros((32, 32), np.int32)], {"BLOCK": 32}, cpus=CPUS)


@pytest.mark.parametrize("first", ["i // 2", "i // 4 * 2 + i % 2", "i ^ 3"])
def test_nothing_is_gathered(lower_python, lower_module, first):
    kernels = {"i // 2": halves, "i // 4 * 2 + i % 2": pairs, "i ^ 3": exchanged}
    x = np.zeros(1, np.float32)
    llir = lower_module(lower_python(kernels[first], [x, x], {"BLOCK": 256})).llir
    assert "shufflevector" in llir
    assert not any(word in llir for word in ("gather", "sdiv <", "srem <", "vpermi2"))


def halves(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i // 2))


def pairs(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i // 4 * 2 + i % 2))


def exchanged(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + (i ^ 3)))


def pages_apart(x, out, BLOCK: tl.constexpr, APART: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i % 8 + i // 8 * APART))


@pytest.mark.parametrize("apart, num_loads", [(100, 1), (8192, 0)])
def test_what_may_not_be_memory_is_not_read(lower_python, apart, num_loads):
    """Between elements that are pages apart."""
    arguments = [np.zeros(1, np.int8)] * 2
    target = cpu_target(*resolve_cpu("native"))
    plan = plan_function(kernel_of(lower_python(pages_apart, arguments, {"BLOCK": 64, "APART": apart}), target))
    assign_buffers(plan)
    distances = choose_axis(plan, plan.body.items[0], 64, 4).quotients.distances
    assert [op.name for op in distances].count("tt.load") == num_loads
