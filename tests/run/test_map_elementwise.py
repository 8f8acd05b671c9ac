"""`map_elementwise`: branches, loops and loads for each element, several results, packs, layouts with replicas."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.errors import CompilationError


@triton.jit
def compare(x, y):
    if x < y:
        return -1
    if x == y:
        return 0
    return 1


@triton.jit
def compare_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    order = tl.map_elementwise(compare, tl.load(x_ptr + offsets), tl.load(y_ptr + offsets))
    tl.store(out_ptr + offsets, order)


@pytest.mark.parametrize(("dtype", "block"), [("int32", 128), ("float64", 8), ("uint8", 1024)])
def test_branches(draw, poisoned, check, dtype, block):
    x, y, out = draw(dtype, block, 0, 3), draw(dtype, block, 0, 3), poisoned("int32", block)
    x[::3] = y[::3]
    compare_kernel[(1,)](x, y, out, block)
    check(out, (x > y).astype(np.int32) - (x < y))


@triton.jit
def gcd_and_steps(a, b, offset):
    steps = 0
    while b != 0:
        a, b = b, a % b
        steps += 1
    for _ in range(steps & 3):
        a += offset
    return a, steps.to(tl.int64)


@triton.jit
def gcd_kernel(x_ptr, y_ptr, out_ptr, steps_ptr, offset, M: tl.constexpr, N: tl.constexpr):
    """Loops as long as an element needs; a row with a column, and a scalar that all share."""
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    found, steps = tl.map_elementwise(
        gcd_and_steps, tl.load(x_ptr + rows)[:, None], tl.load(y_ptr + columns)[None, :], offset
    )
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], found)
    tl.store(steps_ptr + rows[:, None] * N + columns[None, :], steps)


def test_loops(draw, poisoned, check):
    x, y = draw("int32", 16, 1, 1000), draw("int32", 8, 0, 1000)
    out, steps = poisoned("int32", (16, 8)), poisoned("int64", (16, 8))
    gcd_kernel[(1,)](x, y, out, steps, 100, 16, 8)
    expected = np.zeros((16, 8), np.int64)
    for i, j in np.ndindex(16, 8):
        a, b = int(x[i]), int(y[j])
        while b:
            a, b, expected[i, j] = b, a % b, expected[i, j] + 1
    check(out, (np.gcd(x[:, None], y[None, :]) + 100 * (expected & 3)).astype(np.int32))
    check(steps, expected)


@triton.jit
def follow(pointer, limit):
    """A chain of loads, as long as the element says."""
    value, steps = tl.load(pointer), 0
    while (value > limit) & (steps < 4):
        value, steps = tl.load(pointer + value) - value // 2, steps + 1
    return value.to(tl.float16)


@triton.jit
def follow_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.map_elementwise(follow, x_ptr + offsets, 5))


def test_loads(draw, poisoned, check):
    x, out = draw("int32", 128, 0, 60), poisoned("float16", 64)
    x[64:] = 0
    follow_kernel[(1,)](x, out, 64)
    expected = []
    for start in range(64):
        value, steps = int(x[start]), 0
        while value > 5 and steps < 4:
            value, steps = int(x[start + value]) - value // 2, steps + 1
        expected.append(value)
    check(out, np.array(expected, np.float64))


@triton.jit
def divide_pairs(a0, a1, b0, b1):
    if b0 == b1:
        return a0 // b0, a1 // b0, a0 % b0, a1 % b0
    return a0 // b0, a1 // b1, a0 % b0, a1 % b1


@triton.jit
def shift_triples(x0, x1, x2):
    return x0 + 1, x1 + 1, x2 + 1


@triton.jit
def pack_kernel(x_ptr, y_ptr, quotient_ptr, rest_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + offsets), tl.load(y_ptr + offsets)
    for _ in range(2):
        x = tl.map_elementwise(shift_triples, x, pack=3)[0]
    quotient, rest = tl.map_elementwise(divide_pairs, x, y, pack=2)
    tl.store(quotient_ptr + offsets, quotient)
    tl.store(rest_ptr + offsets, rest)


@pytest.mark.parametrize("block", [1, 2, 16, 1024])
def test_packs(draw, poisoned, check, block):
    """Also of more elements than a thread, or the tile, has."""
    x, y = draw("uint32", block), draw("uint32", block, 1, 10)
    quotient, rest = poisoned("uint32", block), poisoned("uint32", block)
    pack_kernel[(1,)](x, y, quotient, rest, block)
    x += np.uint32(2)
    check(quotient, x // y)
    check(rest, x % y)


@triton.jit
def clipped(x):
    if x > 0:
        x = tl.minimum(x, 1.0)
    return x


@triton.jit
def of_reduced_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    """Of what many threads hold; in a loop, carried, then in another layout."""
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    sums = tl.sum(x, 1)
    for _ in range(3):
        sums = tl.map_elementwise(clipped, sums * 2)
    product = sums[:, None] * tl.map_elementwise(clipped, x)
    tl.store(out_ptr + tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :], product.T)


def test_of_what_many_threads_hold(draw, poisoned, check_norm):
    x, out = draw("float32", (4, 32)), poisoned("float32", (32, 4))
    of_reduced_kernel[(1,)](x, out, 4, 32)
    sums = x.astype(np.float64).sum(1)
    for _ in range(3):
        sums = np.minimum(2 * sums, 1)
    check_norm(out, (sums[:, None] * np.minimum(x, 1)).T, 1e-5)


@triton.jit
def storing(x, pointer):
    tl.store(pointer, x)
    return x


@triton.jit
def making_tiles(x, pointer):
    return tl.sum(x + tl.arange(0, 4), 0)


@triton.jit
def refused_kernel(x_ptr, F: tl.constexpr):
    tl.map_elementwise(F, tl.arange(0, 8), x_ptr)


@pytest.mark.parametrize(
    ("function", "message"),
    [(storing, "'storing' does more than compute and load"), (making_tiles, "'making_tiles' makes a tile")],
)
def test_what_is_not_of_one_element_is_refused(poisoned, function, message):
    with pytest.raises(CompilationError, match=message):
        refused_kernel[(1,)](poisoned("int32", 8), function)
