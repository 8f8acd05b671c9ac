"""Divisions of indices that are done once for a vector: numbers of either sign, that begin anywhere, that wrap."""

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

X = np.zeros(1, np.float32)


def digits(out, first, N: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """x, x % N, x // N and of that once more, of the numbers from `first` on."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = at.to(tl.int64) + first if WIDE else at + first
    tl.store(out + at, x % N)
    tl.store(out + 2 * BLOCK + at, x // N)
    tl.store(out + 4 * BLOCK + at, (x // N) % 8 * 100 + (x // N) // 8)


@pytest.mark.share(2)
@pytest.mark.parametrize("first", [0, 32, 5, -64, -37, -(1 << 31), (1 << 31) - 64, (1 << 31) - 128])
@pytest.mark.parametrize("n", [32, 96, 8, 7])
@pytest.mark.parametrize("wide", [False, True])
def test_quotients_of_numbers_from_anywhere(compare, first, n, wide):
    out = np.zeros(6 * 64, np.int64)
    compare(digits, [out, first], {"N": n, "BLOCK": 64, "WIDE": wide}, grid=(2,), cpus=("native",))


def rows_of(x, y, out, total, N: tl.constexpr, BLOCK: tl.constexpr):
    """Elements whose addresses are made of digits; a load, a store, and a reduction along another axis."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column, row = i % N, i // N
    a = tl.load(x + column + 2 * N * row)
    tl.store(out + column + (N + 3) * row, a * 2)
    k = tl.arange(0, 4)
    b = tl.load(y + (i % N)[:, None] + (i // N)[:, None] * N + k[None, :] * 128)
    tl.store(total + i, tl.sum(b, 1) + a)


@pytest.mark.parametrize("n", [16, 32, 48])
def test_addresses_of_digits(compare, rng, n):
    x, y = (rng.standard_normal(512).astype(np.float32) for _ in range(2))
    arrays = [x, y, np.zeros(400, np.float32), np.zeros(128, np.float32)]
    compare(rows_of, arrays, {"N": n, "BLOCK": 64}, grid=(2,))


def to_bytes(x, out, N: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i % N + 64 * (i // N)))


@pytest.mark.parametrize("n, lanes", [(64, 64), (32, 64), (16, 64), (96, 32)])
def test_as_many_lanes_as_have_one_quotient_or_known_ones(compare, lower_python, rng, n, lanes):
    x = rng.integers(-100, 100, 2048).astype(np.int8)
    constexprs = {"N": n, "BLOCK": 256}
    plan = plan_function(kernel_of(lower_python(to_bytes, [x, x], constexprs), cpu_target(*resolve_cpu("native"))))
    assign_buffers(plan)
    assert choose_axis(plan, plan.body.items[0], 64, 4).lanes == lanes
    compare(to_bytes, [x, np.zeros(256, np.int8)], constexprs)


def column_of_blocks(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i % 32 + n * (i // 32)))


def test_a_regular_quotient_leaves_no_division_of_vectors(lower_python, lower_module):
    llir = lower_module(lower_python(column_of_blocks, [X, X, 64], {"BLOCK": 1024})).llir
    assert "load <16 x float>" in llir
    assert "sdiv <" not in llir
    assert "gather" not in llir


def repeated_sums(x, out, N: tl.constexpr):
    """The elements of a short dimension are taken one by one, where the sum over it is repeated."""
    i = tl.arange(0, 2)[:, None, None, None] + tl.arange(0, 2)
    total = tl.sum(tl.load(x + i // N + i % N), 0)
    tl.store(out + tl.reshape(tl.arange(0, 8), (2, 2, 2)), total)


@pytest.mark.parametrize("n", [0, 3])
def test_a_dimension_that_is_taken_one_by_one(compare, rng, n):
    compare(repeated_sums, [rng.integers(-9, 9, 8).astype(np.float32), np.zeros(8, np.float32)], {"N": n})


def of_a_view(out, BLOCK: tl.constexpr):
    pair = tl.reshape(tl.arange(0, 2 * BLOCK), (BLOCK // 8, 16))
    both = tl.cat(pair, pair, dim=1)
    tl.store(out + tl.reshape(tl.arange(0, 4 * BLOCK), (BLOCK // 8, 32)), both % 7 + both // 3)


def test_numbers_that_show_the_memory_of_others(compare):
    compare(of_a_view, [np.zeros(4 * 64, np.int32)], {"BLOCK": 64})


def scaled_by_groups(q, scale, zero, out, rows, n, G: tl.constexpr, FIRST: tl.constexpr, BN: tl.constexpr):
    """Rows of integers, from a column on, with a scale and a zero for each group of columns."""
    row, column = tl.program_id(0) * 8 + tl.arange(0, 8), FIRST + tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (row < rows)[:, None] & (column < n)[None, :] & (column >= 0)[None, :]
    at, group = row[:, None] * n + column[None, :], row[:, None] * (n // G) + (column // G)[None, :]
    x = tl.load(q + at, mask, other=0).to(tl.float32)
    x = (x - tl.load(zero + group, mask, other=0.0)) * tl.load(scale + group, mask, other=0.0)
    tl.store(out + at, x + (column % G)[None, :], mask)


@pytest.mark.parametrize("group, first", [(32, 0), (32, -32), (16, -5), (8, 0), (12, 0), (64, 64)])
def test_groups_of_columns(compare, rng, group, first):
    rows, n = 13, 192
    q = rng.integers(-99, 99, (rows, n)).astype(np.int8)
    scale, zero = rng.standard_normal((2, rows, n // group)).astype(np.float32)
    options = {"G": group, "FIRST": first, "BN": 64}
    compare(scaled_by_groups, [q, scale, zero, np.zeros((rows, n), np.float32), rows, n], options, grid=(2, 4))


def test_groups_of_columns_are_not_gathered(lower_python, lower_module):
    """Quotients of columns, which are read again in each row, were kept, and columns gathered: 0.2 of torch's speed."""
    arguments, options = [np.zeros(1, np.int8), X, X, X, 512, 1024], {"G": 128, "FIRST": 0, "BN": 256}
    llir = lower_module(lower_python(scaled_by_groups, arguments, options)).llir
    assert "gather" not in llir
