"""Loops, branches and while loops that carry tiles and scalars; the order in which carried tiles are overwritten."""

import numpy as np
import pytest

import deuteron.language as tl


def accumulate(x, out, steps, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    count = 0
    pointers = x + i
    for step in range(steps):
        total += tl.load(pointers) * (step + 1)
        pointers += BLOCK
        count += step
    tl.store(out + i, total)
    tl.store(out + BLOCK, count)


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_accumulation(compare, rng, steps):
    compare(accumulate, [rng.random(5 * 64, np.float32), np.zeros(65, np.float32), steps], {"BLOCK": 64})


def swap(x, out, steps, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b, c = tl.load(x + i), tl.load(x + BLOCK + i), tl.load(x + 2 * BLOCK + i)
    for _ in range(steps):
        a, b, c = b, c, a + b
    tl.store(out + i, a)
    tl.store(out + BLOCK + i, b)
    tl.store(out + 2 * BLOCK + i, c)


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_tiles_change_places(compare, rng, steps):
    compare(swap, [rng.random(3 * 64, np.float32), np.zeros(192, np.float32), steps], {"BLOCK": 64})


def overlapping(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    tl.store(out + 1 + i, a)
    tl.store(out + i, a * 2)


def test_the_later_of_two_overlapping_stores_wins(compare, rng):
    compare(overlapping, [rng.random(128, np.float32), np.zeros(129, np.float32)], {"BLOCK": 128})


def unchanged(x, out, steps, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b, p = tl.load(x + i), tl.zeros((BLOCK,), tl.float32), x + i
    for step in range(steps):
        b, a, p = a * step + b, a, p
    tl.store(out + i, a + b + tl.load(p))


@pytest.mark.parametrize("steps", [0, 4])
def test_tiles_that_a_loop_passes_on(compare, rng, steps):
    compare(unchanged, [rng.random(64, np.float32), np.zeros(64, np.float32), steps], {"BLOCK": 64})


def online(x, out, steps, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    high = tl.zeros([M], tl.float32) - float("inf")
    total = tl.zeros([M], tl.float32)
    for step in range(steps):
        a = tl.load(x + step * M * N + i[:, None] * N + j[None, :])
        new = tl.maximum(high, tl.max(a, 1))
        p = tl.exp(a - new[:, None])
        alpha = tl.exp(high - new)
        total = total * alpha + tl.sum(p, 1)
        high = new
    tl.store(out + i, high + tl.log(total))


def test_old_and_new_maximum(compare, rng):
    x = rng.standard_normal((6, 16, 32)).astype(np.float32)
    out = compare(online, [x, np.zeros(16, np.float32), 6], {"M": 16, "N": 32})[1]
    expected = np.log(np.exp(x.astype(np.float64)).sum((0, 2)))
    np.testing.assert_allclose(out, expected, rtol=1e-5)


def branch(x, out, kind, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    scale = 1.0
    if kind == 0:
        a = a * 2
        scale = 3.0
    elif kind == 1:
        a = tl.exp(a)
    else:
        tl.store(out + BLOCK, 5.0)
    tl.store(out + i, a * scale)


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_branches(compare, rng, kind):
    compare(branch, [rng.random(64, np.float32), np.zeros(65, np.float32), kind], {"BLOCK": 64})


def while_loop(x, out, limit, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    b = a
    count = 0
    while tl.sum(a, 0) < limit:
        a, b = a + b, a
        count += 1
    tl.store(out + i, a - b)
    tl.store(out + BLOCK, count)


@pytest.mark.parametrize("limit", [0.0, 1000.0])
def test_while(compare, rng, limit):
    compare(while_loop, [rng.random(32, np.float32), np.zeros(33, np.float32), limit], {"BLOCK": 32})


def nested(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    pointers = x + i
    total = tl.zeros((BLOCK,), tl.float32)
    for a in range(n):
        part = tl.zeros((BLOCK,), tl.float32)
        for _ in range(a):
            part = part * 0.5 + tl.load(pointers)
            pointers += 1
        if a % 2 == 0:
            total += part
        else:
            total = total * part
    tl.store(out + i, total)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_nested_loops(compare, rng, n):
    compare(nested, [rng.random(64 + n * n, np.float32), np.zeros(64, np.float32), n], {"BLOCK": 64})


def in_place(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    low, high = tl.load(x + i), tl.load(x + BLOCK + i)
    tl.store(x + i, high)
    tl.store(x + BLOCK + i, low)
    again = tl.load(x + i)
    tl.store(x + 2 * BLOCK + i, again + low)
    tl.store(x + n - 1 - i, tl.load(x + i))


def test_loads_and_stores_of_one_array_keep_their_order(compare, rng):
    compare(in_place, [rng.random(3 * 64, np.float32), 192], {"BLOCK": 64})


def reverse_in_place(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + BLOCK - 1 - i, tl.load(x + i))


def test_reversal_in_place(compare, rng):
    compare(reverse_in_place, [rng.random(256, np.float32)], {"BLOCK": 256})


def long_chain(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    for _ in tl.static_range(400):
        a = a * 0.5 + 1.0
    tl.store(out + i, a)


def test_long_expressions_do_not_recurse(compare, rng):
    compare(long_chain, [rng.random(16, np.float32), np.zeros(16, np.float32)], {"BLOCK": 16}, cpus=("native",))
