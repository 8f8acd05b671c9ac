"""Operands of products whose columns are looked at once, before the rows: mostly neighbours, sometimes not."""

from __future__ import annotations

import re

import numpy as np
import pytest

import deuteron.language as tl
from deuteron.backend.cpu.loops import MAX_UNROLL
from deuteron.backend.cpu.lowering import plan_function
from deuteron.backend.cpu.plan.prepare import kernel_of
from deuteron.backend.cpu.plan.tiles.private import nests_of
from deuteron.backend.cpu.plan.vectors.axes import choose_axis
from deuteron.backend.cpu.target import cpu_target

CPUS = ("native", "x86-64-v4", "x86-64-v3", "x86-64-v2")


def product(a, b, c, table, K, N, Q, FORM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """FORM: how the columns of B are found."""
    rows, ks = tl.arange(0, BM), tl.arange(0, BK)
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), c.dtype.element_ty)
    for k in range(0, K, BK):
        if FORM == "wrapped":
            places = (k + ks)[:, None] * N + (columns % N)[None, :]
        elif FORM == "others are the first":
            places = (k + ks)[:, None] * N + tl.where(columns < N, columns, 0)[None, :]
        elif FORM == "in a table":
            places = (k + ks)[:, None] * N + tl.load(table + columns)[None, :]
        elif FORM == "down":
            places = (k + ks)[:, None] * N + (N - 1 - columns % N)[None, :]
        elif FORM == "all wrapped":  # neighbours in the first row, and not in all others
            places = ((k + ks)[:, None] * (N + 1) + columns[None, :]) % Q
        else:  # "rows in columns"
            places = (k + ks)[:, None] * N + (columns[None, :] ^ (ks[:, None] & 8)) % N
        mask = ((k + ks) < K)[:, None] & (columns % 5 != 4)[None, :]
        right = tl.load(b + places, mask=mask, other=3)
        left = tl.load(a + rows[:, None] * K + (k + ks)[None, :], mask=((k + ks) < K)[None, :], other=0)
        acc = tl.dot(left, right, acc)
    tl.store(c + rows[:, None] * N + columns[None, :], acc, mask=(columns < N)[None, :])


FORMS = {
    "wrapped": True,
    "others are the first": True,
    "in a table": True,
    "down": True,
    "all wrapped": False,
    "rows in columns": False,
}


@pytest.mark.share(4)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("type", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize(("k", "n", "bn"), [(70, 64, 32), (40, 41, 32), (64, 7, 16), (0, 32, 32)])
def test_columns(compare, rng, bfloat16, form, type, k, n, bn):
    dtype, num_programs = bfloat16 if type == "bfloat16" else type, -(-n // bn)
    a, b = rng.integers(-4, 5, (16, k)).astype(dtype), rng.integers(-4, 5, (k + 1, n)).astype(dtype)
    table = np.arange(num_programs * bn, dtype=np.int32) % n
    table[n // 2 :] = rng.integers(0, n, len(table) - n // 2)
    args = [a, b, np.full((16, n), 77, np.float32), table, k, n, max(k * n - 3, 1)]
    compare(product, args, {"FORM": form, "BM": 16, "BN": bn, "BK": 32}, (num_programs,), cpus=CPUS, tolerance=0)


RUNS = {
    "one": [(20, 64)],
    "two": [(20, 41), (3, 23)],
    "two, the second of one lane": [(36, 63), (0, 1)],
    "two, the first of one lane": [(99, 1), (0, 63)],
    "two, the first of one vector": [(60, 32), (2, 32)],
    "two that overlap": [(20, 40), (30, 24)],
    "three": [(0, 20), (70, 20), (0, 24)],
    "two that take turns": [(lane % 2 * 10 + lane, 1) for lane in range(64)],
}


@pytest.mark.share(2)
@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize("type", ["bfloat16", "int8", "float32"])
@pytest.mark.parametrize("are_off_elsewhere", [False, True])
def test_columns_in_runs(compare, rng, bfloat16, type, runs, are_off_elsewhere):
    """Lanes that are off may lie anywhere."""
    dtype, total = {"bfloat16": (bfloat16, np.float32)}.get(type, (type, np.int32 if type == "int8" else np.float32))
    k, n = 70, 100
    a, b = (rng.integers(-4, 5, shape).astype(dtype) for shape in ((16, k), (k, n)))
    table = np.concatenate([np.arange(first, first + count) for first, count in RUNS[runs]]).astype(np.int32)
    if are_off_elsewhere:
        table[4::5] = 10**8
    args = [a, b, np.full((16, n), 77, total), table, k, n, 1]
    compare(product, args, {"FORM": "in a table", "BM": 16, "BN": 64, "BK": 32}, cpus=CPUS[:3], tolerance=0)


def test_more_lanes_than_a_word_has_bits(compare, rng, monkeypatch):
    monkeypatch.setattr("deuteron.backend.cpu.plan.vectors.axes.MAX_LANES", 128)
    a, b = (rng.integers(-4, 5, shape).astype(np.int8) for shape in ((16, 70), (70, 150)))
    table = rng.integers(0, 150, 128).astype(np.int32)
    args = [a, b, np.full((16, 150), 77, np.int32), table, 70, 150, 1]
    constexprs = {"FORM": "in a table", "BM": 16, "BN": 128, "BK": 32}
    compare(product, args, constexprs, cpus=CPUS[:3], tolerance=0)


def test_two_runs_are_loaded_under_masks(lower_python, lower_module):
    x, c, table = np.zeros(1, np.int8), np.zeros(1, np.int32), np.zeros(1, np.int32)
    constexprs = {"FORM": "wrapped", "BM": 16, "BN": 64, "BK": 32}
    llir = lower_module(lower_python(product, [x, x, c, table, 1, 1, 1], constexprs), cpu="znver4").llir
    function = llir[llir.index("define internal <64 x i8> @gather_words.") :]
    assert function[: function.index("\n}")].count("call <64 x i8> @llvm.masked.load") == 2


@pytest.mark.parametrize("type", ["int8", "float32"])
def test_runs_are_found_before_the_rows(lower_python, lower_module, type):
    x, c, table = np.zeros(1, type), np.zeros(1, np.int32 if type == "int8" else type), np.zeros(1, np.int32)
    constexprs = {"FORM": "wrapped", "BM": 16, "BN": 64, "BK": 32}
    llir = lower_module(lower_python(product, [x, x, c, table, 1, 1, 1], constexprs), cpu="znver4").llir
    kernel = next(text for text in llir.split("\ndefine ") if "@kernel.program(" in text.split("\n")[0])
    branches = [part[: part.index("\n  br ")] for part in re.split(r"\nruns_then[.\d]*:", kernel)[1:]]
    assert branches and all(branch.count("@llvm.masked.load") == 2 for branch in branches)


@pytest.mark.parametrize(("form", "is_looked_at"), FORMS.items())
def test_what_is_looked_at(lower_python, form, is_looked_at):
    x, table = np.zeros(1, np.float32), np.zeros(1, np.int32)
    constexprs = {"FORM": form, "BM": 16, "BN": 32, "BK": 32}
    function = kernel_of(lower_python(product, [x, x, x, table, 1, 1, 1], constexprs), cpu_target("x86-64-v4", ""))
    plan = plan_function(function)
    chosen = [choose_axis(plan, nest, 64, MAX_UNROLL) for nest in nests_of(plan.body)]
    assert sum(len(one.neighbours) for one in chosen) == is_looked_at


def weight_gradient(a, b, c, table, M, N, K, sam, FORM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """A is loaded down its columns, K apart or as far as is said; FORM: how these are found."""
    rows, columns, ks = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, 32)
    if FORM == "wrapped":
        places = rows % M
    elif FORM == "in a table":
        places = tl.load(table + rows)
    else:  # "some elements apart"
        places = rows % M * sam
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, 32):
        a_ptrs = a + places[:, None] + (k + ks)[None, :] * (M * sam)
        left = tl.load(a_ptrs, mask=((k + ks) < K)[None, :] & (rows % 5 != 4)[:, None], other=3)
        right = tl.load(b + (k + ks)[:, None] * N + columns[None, :], mask=((k + ks) < K)[:, None], other=0)
        acc = tl.dot(left, right, acc)
    tl.store(c + rows[:, None] * N + columns[None, :], acc, mask=(rows < M)[:, None])


ROWS = {"wrapped": 1, "in a table": 1, "some elements apart": 3}


@pytest.mark.share(4)
@pytest.mark.parametrize("form", ROWS)
@pytest.mark.parametrize("type", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize(("k", "m", "bm"), [(70, 64, 32), (40, 41, 32), (64, 7, 16), (0, 32, 32)])
def test_columns_of_a(compare, rng, bfloat16, form, type, k, m, bm):
    dtype, num_programs, apart = bfloat16 if type == "bfloat16" else type, -(-m // bm), ROWS[form]
    a, b = rng.integers(-4, 5, (k + 1, m * apart)).astype(dtype), rng.integers(-4, 5, (k, 16)).astype(dtype)
    table = np.arange(num_programs * bm, dtype=np.int32) % m
    table[m // 2 :] = rng.integers(0, m, len(table) - m // 2)
    args = [a, b, np.full((m, 16), 77, np.float32), table, m, 16, k, apart]
    compare(weight_gradient, args, {"FORM": form, "BM": bm, "BN": 16}, (num_programs,), cpus=CPUS, tolerance=0)


@pytest.mark.parametrize("form", ROWS)
def test_columns_are_turned(lower_python, form):
    x, table = np.zeros(1, np.float32), np.zeros(1, np.int32)
    arguments = [x, x, x, table, 64, 64, 64, 3]
    module = lower_python(weight_gradient, arguments, {"FORM": form, "BM": 32, "BN": 16})
    plan = plan_function(kernel_of(module, cpu_target("x86-64-v4", "")))
    chosen = [choose_axis(plan, nest, 64, MAX_UNROLL) for nest in nests_of(plan.body)]
    (turned,) = [one for one in chosen if one.turned and one.neighbours]
    assert turned.otherwise.axis == turned.axis and not turned.otherwise.neighbours
