"""The order of the programs of a grid: the next one goes on where the last one ended in memory."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.backend.cpu.lowering import plan_function
from deuteron.backend.cpu.plan.prepare import kernel_of
from deuteron.backend.cpu.plan.products.reuse import reuse_operands
from deuteron.backend.cpu.plan.programs.grid_order import grid_order
from deuteron.backend.cpu.target import cpu_target
from deuteron.backend.llvm.targets import resolve_cpu

BLOCKS = {"R": 4, "C": 32}


def rows_along_x(x, out, rows, columns, stride, R: tl.constexpr, C: tl.constexpr):
    i = tl.program_id(0) * R + tl.arange(0, R)[:, None]
    j = tl.program_id(1) * C + tl.arange(0, C)[None, :]
    mask = (i < rows) & (j < columns)
    tl.store(out + i * stride + j, tl.load(x + i * stride + j, mask=mask) + 1, mask=mask)


def columns_along_x(x, out, rows, columns, stride, R: tl.constexpr, C: tl.constexpr):
    i = tl.program_id(1) * R + tl.arange(0, R)[:, None]
    j = tl.program_id(0) * C + tl.arange(0, C)[None, :]
    mask = (i < rows) & (j < columns)
    tl.store(out + i * stride + j, tl.load(x + i * stride + j, mask=mask) + 1, mask=mask)


def columns_along_z(x, out, rows, columns, stride, R: tl.constexpr, C: tl.constexpr):
    i = (tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)) * R + tl.arange(0, R)[:, None]
    j = tl.program_id(2) * C + tl.arange(0, C)[None, :]
    mask = (i < rows) & (j < columns)
    tl.store(out + i * stride + j, tl.load(x + i * stride + j, mask=mask) + 1, mask=mask)


def exchanged(x, out, rows, columns, stride, R: tl.constexpr, C: tl.constexpr):
    """What is loaded is near along y, what is stored along x: as good in both orders."""
    i = tl.program_id(0) * R + tl.arange(0, R)[:, None]
    j = tl.program_id(1) * C + tl.arange(0, C)[None, :]
    mask = (i < rows) & (j < columns)
    tl.store(out + j * stride + i, tl.load(x + i * stride + j, mask=mask), mask=mask)


def counted(x, out, rows, columns, stride, R: tl.constexpr, C: tl.constexpr):
    """An atomic may be in order with those of other programs."""
    i = tl.program_id(0) * R + tl.arange(0, R)[:, None]
    j = tl.program_id(1) * C + tl.arange(0, C)[None, :]
    tl.atomic_add(out + i * stride + j, tl.load(x + i * stride + j))


def printed(x, out, rows, columns, stride, R: tl.constexpr, C: tl.constexpr):
    """Lines come in the order of the programs."""
    i = tl.program_id(0) * R + tl.arange(0, R)[:, None]
    j = tl.program_id(1) * C + tl.arange(0, C)[None, :]
    tl.device_print("program", tl.program_id(0))
    tl.store(out + i * stride + j, tl.load(x + i * stride + j))


def loaded_places(x, out, rows, columns, stride, R: tl.constexpr, C: tl.constexpr):
    """Nobody knows where a loaded index is."""
    i = tl.load(x + tl.program_id(0) * R + tl.arange(0, R)).to(tl.int32)[:, None]
    j = tl.program_id(1) * C + tl.arange(0, C)[None, :]
    tl.store(out + i * stride + j, 1.0)


@pytest.mark.parametrize(
    "kernel, order",
    [
        (rows_along_x, (1, 0, 2)),
        (columns_along_x, (0, 1, 2)),
        (columns_along_z, (2, 0, 1)),
        (exchanged, (0, 1, 2)),
        (counted, (0, 1, 2)),
        (printed, (0, 1, 2)),
        (loaded_places, (0, 1, 2)),
    ],
)
def test_order(lower_python, kernel, order):
    x = np.zeros(64, np.float32)
    module = lower_python(kernel, [x, x, 4, 4, 4], BLOCKS)
    assert grid_order(kernel_of(module, cpu_target(*resolve_cpu("native")))) == order


@pytest.mark.parametrize("kernel, grid", [(rows_along_x, (9, 4)), (columns_along_z, (3, 3, 4))])
def test_every_program_runs_once(rng, kernel, grid, monkeypatch):
    """In parts, on several threads; `stride` is more than a row."""
    monkeypatch.setenv("DEUTERON_NUM_THREADS", "3")
    x, out = rng.random((35, 130), np.float32), np.full((35, 130), 77, np.float32)
    triton.jit(kernel)[grid](x, out, 35, 101, 130, **BLOCKS)
    np.testing.assert_array_equal(out[:, :101], x[:, :101] + 1)
    assert (out[:, 101:] == 77).all()


@pytest.mark.parametrize("grid", [(9, 4), (1, 4), (9, 1)])
def test_programs_of_a_grid(compare, rng, grid):
    compare(
        rows_along_x, [rng.random(35 * 130, np.float32), np.zeros(35 * 130, np.float32), 35, 101, 130], BLOCKS, grid
    )


@triton.jit
def product(a, b, c, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr, BATCH: tl.constexpr, LOADED: tl.constexpr):
    """c = a @ b of n x n matrices, one of each BATCH; program ids along ROWS and COLUMNS."""
    batch = tl.program_id(BATCH) * n * n if BATCH >= 0 else 0
    place = tl.load(c).to(tl.int32) if LOADED else tl.program_id(COLUMNS)
    rows, columns, ks = tl.program_id(ROWS) * 16 + tl.arange(0, 16), place * 16 + tl.arange(0, 16), tl.arange(0, 16)
    acc = tl.zeros((16, 16), tl.float32)
    for k in range(0, n, 16):
        left = tl.load(a + batch + rows[:, None] * n + (k + ks)[None, :])
        acc = tl.dot(left, tl.load(b + batch + (k + ks)[:, None] * n + columns[None, :]), acc)
    tl.store(c + batch + rows[:, None] * n + columns[None, :], acc)


PRODUCTS = [
    ((0, 1, -1, False), (0, 1, 2)),
    ((1, 0, -1, False), (1, 0, 2)),
    ((1, 2, 0, False), (1, 0, 2)),
    ((0, 1, 2, False), (0, 1, 2)),
    ((2, 0, 1, False), (2, 0, 1)),
    ((1, 0, -1, True), (0, 1, 2)),  # nobody knows which columns; c, which is stored, is not reused anyway
]


@pytest.mark.parametrize("axes, order", PRODUCTS)
def test_programs_that_need_the_same_operand_follow_one_another(lower_python, axes, order):
    x, names = np.zeros(64, np.float32), ("ROWS", "COLUMNS", "BATCH", "LOADED")
    module = lower_python(product, [x, x, x, 64], dict(zip(names, axes, strict=True)))
    plan = plan_function(kernel_of(module, cpu_target(*resolve_cpu("x86-64-v4"))))
    assert grid_order(plan.function, reuse_operands(plan, 1 << 20)) == order


@pytest.mark.parametrize("axes", [axes for axes, _ in PRODUCTS[:5]])
def test_products_in_their_order(rng, axes, monkeypatch):
    monkeypatch.setenv("DEUTERON_NUM_THREADS", "3")
    rows, columns, batch, _ = axes
    a, b = rng.integers(-4, 5, (2, 3, 64, 64)).astype(np.float32)
    out = np.full_like(a, 77)
    sizes = {rows: 4, columns: 4, batch: 3}
    product[tuple(sizes.get(axis, 1) for axis in range(3))](a, b, out, 64, *axes)
    np.testing.assert_array_equal(out[:3] if batch >= 0 else out[0], a @ b if batch >= 0 else a[0] @ b[0])
