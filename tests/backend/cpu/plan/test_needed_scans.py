"""Scans of which only the first elements are stored: which are found, and that what is stored is what it was."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.backend.cpu.lowering import plan_function
from deuteron.backend.cpu.plan.needed_scans import find_needed_scans
from deuteron.backend.cpu.plan.prepare import kernel_of
from deuteron.backend.cpu.plan.roots import ScanRoot
from deuteron.backend.cpu.plan.tiles.private import nests_of
from deuteron.backend.cpu.target import cpu_target


@deuteron.jit
def affine(a, x, b, y):
    return a * b, x * b + y


def scanned(x, out, other, n, m, MODE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    here = x + tl.program_id(0) * BLOCK + i
    values, is_stored = tl.load(here), i < n
    out += tl.program_id(0) * BLOCK
    if MODE == "pairs":
        _, sums = tl.associative_scan((values, values + 1), 0, affine)
    else:
        sums = tl.cumsum(values, 0, reverse=MODE == "reverse")
    if MODE == "carried":
        total = tl.full((BLOCK,), 1, values.dtype)
        for _ in range(2):
            total = total + tl.cumsum(total * values, 0)
        sums += total
    if MODE == "two limits":
        tl.store(other + i, sums * 2, mask=i < m)
    if MODE == "divided":
        sums = values // sums
    if MODE == "summed":
        tl.store(other, tl.sum(sums))
    if MODE == "from below":
        is_stored = is_stored & (i >= 3)
    if MODE == "added":
        tl.atomic_add(out + i, sums + 1, mask=is_stored)
    else:
        tl.store(out + i, sums + 1, mask=is_stored)


NUM_LIMITS = {
    "plain": [1],
    "two limits": [2],
    "from below": [1],
    "added": [1],
    "pairs": [1],
    "carried": [0, 1],
    "reverse": [0],
    "divided": [0],
    "summed": [0],
}


def arguments(rng, n, m):
    x = rng.integers(1, 3, 128).astype(np.int32)
    return [x, np.full(128, 77, np.int32), np.full(64, 55, np.int32), n, m]


@pytest.mark.parametrize("mode", NUM_LIMITS)
@pytest.mark.parametrize(("n", "m"), [(0, 5), (1, 0), (17, 33), (33, 17), (-3, 64), (64, 70)])
def test_what_is_stored(compare, rng, mode, n, m):
    cpus = ("native", "x86-64-v3") if n == 17 else ("native",)
    compare(scanned, arguments(rng, n, m), {"MODE": mode, "BLOCK": 64}, grid=(2,), cpus=cpus, tolerance=0)


@pytest.mark.parametrize("mode", NUM_LIMITS)
def test_what_is_needed(lower_python, rng, mode):
    module = lower_python(scanned, arguments(rng, 5, 7), {"MODE": mode, "BLOCK": 64})
    plan = plan_function(kernel_of(module, cpu_target("x86-64-v3", "")))
    find_needed_scans(plan)
    scans = [root for nest in nests_of(plan.body) for root in nest.roots if isinstance(root, ScanRoot)]
    assert sorted(len(root.needed) for root in scans) == sorted(NUM_LIMITS[mode])


def scanned_rows(x, out, n, m, AXIS: tl.constexpr):
    i, j = tl.arange(0, 32), tl.arange(0, 64)
    places = i[:, None] * 64 + j[None, :]
    sums = tl.cumsum(tl.load(x + places), AXIS)
    tl.store(out + places, sums, mask=(i[:, None] < n) & (j[None, :] < m))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("n", "m"), [(5, 64), (32, 17), (17, 33)])
def test_two_dimensions(compare, rng, axis, n, m):
    x = rng.integers(-4, 5, (32, 64)).astype(np.float32)
    compare(scanned_rows, [x, np.full((32, 64), 77, np.float32), n, m], {"AXIS": axis}, cpus=("native",), tolerance=0)


def compacted(x, out, count, n, BLOCK: tl.constexpr):
    """Where elements go is a scan: all of it is needed."""
    i = tl.arange(0, BLOCK)
    keeps = (tl.load(x + i, mask=i < n, other=0) > 0).to(tl.int32)
    places = tl.cumsum(keeps, 0)
    tl.store(out + places - 1, i, mask=(keeps > 0) & (i < n))
    tl.store(count + i, places, mask=i < n)


@pytest.mark.parametrize("n", [0, 7, 50])
def test_places(compare, rng, n):
    x = rng.integers(-1, 2, 64).astype(np.int32)
    args = [x, np.full(64, 77, np.int32), np.full(64, 55, np.int32), n]
    compare(compacted, args, {"BLOCK": 64}, cpus=("native",), tolerance=0)
