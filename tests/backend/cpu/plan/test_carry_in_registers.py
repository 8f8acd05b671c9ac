"""Loops that carry independent elements: which run at each index of a nest, and that they compute what they did."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron.language as tl
from deuteron.backend.cpu.lowering import plan_function
from deuteron.backend.cpu.plan.prepare import kernel_of
from deuteron.backend.cpu.plan.roots import LoopRoot, ReduceRoot, StoreRoot
from deuteron.backend.cpu.plan.tiles.private import nests_of
from deuteron.backend.cpu.target import cpu_target


def looped(x, weights, out, n, count, MODE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = tl.load(x + i, mask=i < n, other=0)
    a, b, number = first, first * 2, 0
    if MODE == "exchanged":
        for k in range(count):
            a, b = b * 0.5, a + k
    elif MODE == "loads scalars":
        for k in range(count):
            a = a * 0.5 + first * tl.load(weights + k)
    elif MODE == "counts":
        for _ in range(count):
            a += number
            number += 3
    elif MODE == "two loops":
        for k in range(count):
            a, b = a * 0.5 + k, b + 1
        for k in range(count, 0, -1):
            a = a * 0.75 + b / k
    elif MODE == "inner":
        for k in range(count):
            for _ in range(k):
                b = b * 0.5 + k
            a = a + tl.flip(b)
    elif MODE == "flags":
        on = first > 0
        for k in range(count):
            on = on ^ (a > k)
            a = a * 0.5 + tl.where(on, 1.0, 2.0)
    elif MODE == "flipped":
        for _ in range(count):
            a = a * 0.5 + tl.flip(a)
    elif MODE == "loads tiles":
        for k in range(count):
            a += tl.load(x + (i + k) % n)
    elif MODE == "gives scalars":
        for k in range(count):
            a += k
            number += k
        a += number
    elif MODE == "sums":
        for k in range(count):
            a = a * 0.5 + tl.sum(a) / BLOCK + k
    elif MODE == "used twice":
        for k in range(count):
            a = a * 0.5 + k
        tl.store(weights + tl.program_id(0), tl.sum(a))
        b = tl.flip(a)
    tl.store(out + i, a - b, mask=i < n)


LOOPS = {
    "exchanged": 1,
    "loads scalars": 1,
    "counts": 1,
    "two loops": 2,
    "inner": 1,
    "flags": 1,
    "used twice": 1,
    "flipped": 0,
    "loads tiles": 0,
    "gives scalars": 0,
    "sums": 0,
}


def arguments(rng, n, count):
    x, weights = (rng.standard_normal(size).astype(np.float32) for size in (192, 32))
    return [x, weights, np.full(192, 77, np.float32), n, count]


@pytest.mark.parametrize("mode", LOOPS)
@pytest.mark.parametrize(("n", "count", "block"), [(100, 0, 64), (192, 1, 64), (101, 7, 64), (2, 5, 1)])
def test_what_is_computed(compare, rng, mode, n, count, block):
    compare(looped, arguments(rng, n, count), {"MODE": mode, "BLOCK": block}, grid=(3,), tolerance=1e-5)


def loops_of(plan):
    return [(nest, root) for nest in nests_of(plan.body) for root in nest.roots if isinstance(root, LoopRoot)]


@pytest.mark.parametrize("mode", LOOPS)
def test_which_loops(lower_python, rng, mode):
    module = lower_python(looped, arguments(rng, 5, 7), {"MODE": mode, "BLOCK": 64})
    loops = loops_of(plan_function(kernel_of(module, cpu_target("x86-64-v3", ""))))
    assert len(loops) == LOOPS[mode]
    assert not any(loop.loads and isinstance(root, StoreRoot) for nest, loop in loops for root in nest.roots)


def in_place(x, weights, n, count, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0)
    for k in range(count):
        a = a * 0.5 + tl.load(weights + k)
    tl.store(x + i, a, mask=i < n)


def test_scalars_are_loaded_before_the_stores(compare, rng):
    x = rng.standard_normal(256).astype(np.float32)
    compare(in_place, [x, x, 201, 70], {"BLOCK": 256})


def generated(out, n, count, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, 8), tl.arange(0, BLOCK)
    z = tl.zeros((8, BLOCK), tl.float32) + rows[:, None]
    for k in range(count):
        z = z * 0.5 + columns[None, :] * k
    tl.store(out + columns, tl.sum(z, 0), mask=columns < n)


def test_reduced_where_they_are(compare, lower_python):
    args = [np.full(64, 77, np.float32), 37, 5]
    plan = plan_function(kernel_of(lower_python(generated, args, {"BLOCK": 64}), cpu_target("x86-64-v3", "")))
    ((nest, _),) = loops_of(plan)
    assert any(isinstance(root, ReduceRoot) for root in nest.roots)
    compare(generated, args, {"BLOCK": 64})


def columns_of_vectors(table, scales, out, n, count, BLOCK: tl.constexpr):
    """What the loop carries is where the table is read."""
    i = tl.arange(0, BLOCK)
    place = i
    for _ in range(count):
        place = (place * 5 + 1) % BLOCK
    tl.store(out + i, tl.load(table + place) * tl.load(scales + i), mask=i < n)


def test_carried_offsets(compare, rng):
    table, scales = (rng.standard_normal(128).astype(np.float32) for _ in range(2))
    compare(columns_of_vectors, [table, scales, np.full(128, 77, np.float32), 99, 4], {"BLOCK": 128})


def kept_between(x, other, out, n, count, BLOCK: tl.constexpr):
    """Between the loops are a store, and a tile that the second one and others read."""
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0)
    b = tl.exp(a)
    for k in range(count):
        a = a * 0.5 + k
    tl.store(other + i, a)
    for k in range(count):
        a = a * 0.25 + b * k
    tl.store(out + i, tl.flip(a) + tl.flip(b), mask=i < n)


def branched(x, out, count, is_long, BLOCK: tl.constexpr):
    """Scalars and loops stand between loops."""
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    if is_long:
        for k in range(count):
            a = a * 0.5 + k
    for _ in range(count):
        a = tl.flip(a) + 1
    first = tl.load(x)
    for k in range(count):
        a = a * 0.5 + first * k
    tl.store(x, 3.0)
    for k in range(count):
        a = a * 0.5 + k
    tl.store(out + i, a)


def test_what_stands_between_loops(compare, rng):
    x = rng.standard_normal(64).astype(np.float32)
    compare(kept_between, [x, np.zeros_like(x), np.zeros_like(x), 61, 3], {"BLOCK": 64}, tolerance=1e-5)
    for is_long in (False, True):
        compare(branched, [x, np.zeros_like(x), 3, is_long], {"BLOCK": 64}, tolerance=1e-5)
