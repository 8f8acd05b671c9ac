"""Sums that the first product of a loop begins, where they are not cleared before the loop."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron.language as tl
from deuteron.backend.cpu.lowering import plan_function
from deuteron.backend.cpu.plan.items import dots_of
from deuteron.backend.cpu.plan.prepare import kernel_of
from deuteron.backend.cpu.plan.products.begin_sums import begin_sums
from deuteron.backend.cpu.plan.products.needed_sums import find_needed_sums
from deuteron.backend.cpu.target import cpu_target
from tests.backend.cpu.products.amx_machine import amx_machine


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    with amx_machine(monkeypatch):
        yield


def groups(a, b, lengths, c, d, M, count, FORM: tl.constexpr, ACC: tl.constexpr, BK: tl.constexpr):
    """For each group a loop of another length, which may be 0 or below; FORM: how the sums begin, and who sees them."""
    i, ks, first = tl.arange(0, 16), tl.arange(0, BK), 0
    none = tl.zeros((16, 16), ACC)
    for group in range(count):
        length = tl.load(lengths + group)
        acc = none if FORM != "from one" else none + 1
        if FORM == "from minus zero":
            acc = none * -1
        other = none
        for k in range(first, first + length, BK):
            inside = k + ks < first + length
            x = tl.load(a + i[:, None] * 256 + (k + ks)[None, :], mask=inside[None, :], other=0)
            y = tl.load(b + (k + ks)[:, None] * 16 + i[None, :], mask=inside[:, None], other=0)
            acc = tl.dot(x, y, acc, out_dtype=ACC)
            if FORM == "two sums":
                other = tl.dot(x, y, other, out_dtype=ACC)
            elif FORM == "seen":
                other += acc
        if FORM == "divided":
            acc = 1000 // acc
        tile = group * 256 + i[:, None] * 16 + i[None, :]
        tl.store(c + tile, acc, mask=(i < M)[:, None])
        tl.store(d + tile, none if FORM == "used" else other)
        first += length if length > 0 else 0


FORMS = {"plain": 1, "used": 1, "two sums": 2, "from one": 0, "seen": 0}


def _arguments(rng, type, is_int: bool, lengths) -> list:
    a, b = rng.integers(-9, 9, (16, 256)).astype(type), rng.integers(-9, 9, (256, 16)).astype(type)
    outputs = [np.full((len(lengths), 16, 16), 77, np.int32 if is_int else np.float32) for _ in range(2)]
    return [a, b, np.array(lengths, np.int32), *outputs]


@pytest.mark.share(4)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.int8, "bfloat16", np.float32])
@pytest.mark.parametrize("lengths", [(0, 70, 0, 5, 130), (64, -3, 32), (0,), (256,)])
@pytest.mark.parametrize("rows", [16, 5])
def test_loops_that_may_not_run(compare, rng, bfloat16, form, dtype, lengths, rows):
    type, is_int = bfloat16 if dtype == "bfloat16" else dtype, dtype == np.int8
    args = [*_arguments(rng, type, is_int, lengths), rows, len(lengths)]
    constexprs = {"FORM": form, "ACC": tl.int32 if is_int else tl.float32, "BK": 64 if is_int else 32}
    compare(groups, args, constexprs, cpus=("emeraldrapids", "x86-64-v3", "x86-64-v2"), tolerance=0)


@pytest.mark.parametrize(("form", "count"), [*FORMS.items(), ("divided", 0)])
@pytest.mark.parametrize("is_int", [False, True])
def test_which_sums_are_begun(lower_python, rng, bfloat16, form, count, is_int):
    """Not those of integers of which some rows are not needed, and which something is divided by: these are cleared."""
    if form == "divided" and not is_int:
        pytest.skip("floats are divided by 0 as by any other number")
    args = [*_arguments(rng, np.int8 if is_int else bfloat16, is_int, (3,)), 5, 1]
    constexprs = {"FORM": form, "ACC": tl.int32 if is_int else tl.float32, "BK": 64 if is_int else 32}
    plan = plan_function(kernel_of(lower_python(groups, args, constexprs), cpu_target("emeraldrapids", "")))
    find_needed_sums(plan)
    begin_sums(plan)
    assert sum(dot.begins_sums for dot in dots_of(plan.body)) == count
