"""`break`, `continue`, `return` and `else` of loops; scalars, tiles and pointers that they carry on."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl


@triton.jit
def prefix_kernel(x_ptr, out_ptr, m, n, BLOCK: tl.constexpr):
    """Sums rows until one begins with a large number; rows that begin with a negative one do not count."""
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.zeros([BLOCK], tl.float32)
    pointers = x_ptr + offsets
    last = tl.full([1], -1, tl.int32)
    for i in range(m):
        x = tl.load(pointers, mask=mask, other=0.0)
        pointers += n
        first = tl.load(x_ptr + i * n)
        if first > 2:
            break
        if first < 0:
            continue
        total += x
        last = tl.full([1], i, tl.int32)
    tl.store(out_ptr + offsets, total, mask=mask)
    tl.store(out_ptr + n + tl.arange(0, 1), last.to(tl.float32))


@pytest.mark.parametrize("firsts", [(1, -1, 1, 3, 1), (3, 1, 1, 1, 1), (1, 1, -1, 1, 1), (-1, -1, -1, -1, -1)])
def test_for_with_break_and_continue(draw, poisoned, check_norm, firsts):
    m, n = len(firsts), 13
    x, out = draw("float32", (m, n)), poisoned("float32", n + 1)
    x[:, 0] = firsts
    prefix_kernel[(1,)](x, out, m, n, BLOCK=16)
    rows = [i for i in range(firsts.index(3) if 3 in firsts else m) if firsts[i] > 0]
    expected = np.append(x.astype(np.float64)[rows].sum(axis=0), rows[-1] if rows else -1)
    check_norm(out, expected, 1e-6)


@triton.jit
def find_kernel(x_ptr, out_ptr, start, end, step, wanted):
    found, value = find(x_ptr, start, end, step, wanted)
    tl.store(out_ptr, found)
    tl.store(out_ptr + 1, value)


@triton.jit
def find(x_ptr, start, end, step, wanted):
    for i in range(start, end, step):
        x = tl.load(x_ptr + (i & 15))
        if x == wanted:
            return i, x
    return -1, 0


LARGEST = 2**31 - 1


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "bounds",
    [
        (0, 16, 1),
        (3, 16, 4),
        (5, 5, 1),
        (9, 2, 1),
        (0, 16, 100),
        (LARGEST - 9, LARGEST, 4),
        (-LARGEST, LARGEST, LARGEST),
    ],
)
@pytest.mark.parametrize("wanted", [7, 99])
def test_return_in_a_for_of_any_bounds(poisoned, check, bounds, wanted):
    x, out = np.arange(16, dtype=np.int32), poisoned("int32", 2)
    find_kernel[(1,)](x, out, *bounds, wanted)
    expected = next(((i, wanted) for i in range(*bounds) if i & 15 == wanted), (-1, 0))
    check(out, expected)


@triton.jit
def countdown_kernel(x_ptr, out_ptr, n):
    for i in range(n - 1, -1, -2):
        if tl.load(x_ptr + i) == 0:
            tl.store(out_ptr, i)
            return
        tl.store(out_ptr + 1 + i, i)
    tl.store(out_ptr, n)


@pytest.mark.parametrize("zero", [0, 3, 4, 8])
def test_return_from_a_kernel_in_a_loop_that_counts_down(poisoned, check, zero):
    n, x = 9, np.ones(9, np.int32)
    x[zero] = 0
    out = poisoned("int32", n + 1)
    expected = out.copy()
    countdown_kernel[(1,)](x, out, n)
    seen = [i for i in range(n - 1, -1, -2) if i > zero or zero % 2]
    expected[0] = n if zero % 2 else zero
    expected[[i + 1 for i in seen]] = seen
    check(out, expected)


@triton.jit
def scan_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """A tile at a time, until the running sum of a tile is too large: then what it was."""
    pid = tl.program_id(0)
    if pid >= n:
        return
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    steps = 0
    while True:
        x = tl.load(x_ptr + (pid * 8 + steps) * BLOCK + offsets)
        if tl.sum(total + x) > 20:
            break
        total += x
        steps += 1
        if steps == 8:
            tl.store(out_ptr + pid * (BLOCK + 1) + offsets, -total)
            tl.store(out_ptr + pid * (BLOCK + 1) + BLOCK, -1.0)
            return
    tl.store(out_ptr + pid * (BLOCK + 1) + offsets, total)
    tl.store(out_ptr + pid * (BLOCK + 1) + BLOCK, steps)


def test_while_that_is_left_in_two_ways(draw, poisoned, check):
    block, programs = 32, 3
    x, out = draw("float32", (programs, 8, block), 0, 0.25), poisoned("float32", (programs + 1, block + 1))
    x[1] /= 64
    expected = out.astype(np.float64)
    for pid in range(programs):
        sums = x[pid].astype(np.float64).cumsum(axis=0)
        fits = [i for i in range(8) if sums[i].sum() <= 20]
        steps = len(fits)
        expected[pid, :block] = (-1 if steps == 8 else 1) * (sums[steps - 1] if steps else 0)
        expected[pid, block] = -1 if steps == 8 else steps
    scan_kernel[(programs + 1,)](x, out, programs, BLOCK=block)
    check(out, expected, ulps=8)


@triton.jit
def pairs_kernel(x_ptr, out_ptr, n):
    """The first pair of equal numbers; `else` tells the loop outside that there was none."""
    at = -1
    for i in range(n):
        for j in range(i + 1, n):
            if tl.load(x_ptr + i) == tl.load(x_ptr + j):
                at = i * n + j
                break
        else:
            continue
        break
    else:
        at -= 1
    tl.store(out_ptr, at)


@pytest.mark.parametrize(("values", "expected"), [((4, 2, 7, 2, 4), 4), ((1, 2, 3, 3), 11), ((3, 2, 1), -2), ((), -2)])
def test_else_leaves_two_loops(poisoned, check, values, expected):
    x, out = np.array([*values, 9], np.int32), poisoned("int32", 1)
    pairs_kernel[(1,)](x, out, len(values))
    check(out, expected)


@triton.jit
def unrolled_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    for i in tl.static_range(5):
        if i == 4:
            break
        if n == i:
            break
        if n == i + 10:
            continue
        x = x * 2 + i
    for scale, shift in ((2.0, 1), (0.5, 2), (4.0, 3)):
        if n == shift:
            tl.store(out_ptr + offsets, -x)
            return
        x *= scale
    tl.store(out_ptr + offsets, x)


@pytest.mark.parametrize("n", [0, 1, 3, 5, 12])
def test_unrolled_loops(draw, poisoned, check, n):
    x, out = draw("float32", 8), poisoned("float32", 8)
    unrolled_kernel[(1,)](x, out, n, BLOCK=8)
    expected = x.astype(np.float64)
    for i in range(min(n, 4)):
        expected = expected if n == i + 10 else expected * 2 + i
    factor = {1: -1, 2: -2, 3: -1}.get(n, 4)
    check(out, expected * factor, ulps=4)


@triton.jit
def first_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Pointers, a tuple and a tile of pointers that a function returns from a loop, or after it."""
    offsets = tl.arange(0, BLOCK)
    source, pair, tile = choose(a_ptr, b_ptr, n, offsets)
    tl.store(out_ptr + offsets, tl.load(tile) + tl.load(source) + pair[0])


@triton.jit
def choose(a_ptr, b_ptr, n, offsets):
    for i in range(n):
        if tl.load(a_ptr + i) < 0:
            return a_ptr + i, (i, None), a_ptr + offsets
        if tl.load(b_ptr + i) < 0:
            return b_ptr, (i + 100, None), b_ptr + offsets * 2
    return b_ptr + 1, (-n, None), b_ptr + offsets


@pytest.mark.parametrize("which", ["a", "b", "neither"])
def test_pointers_and_tuples_are_returned(poisoned, check, which):
    a, b, out = np.arange(1, 33, dtype=np.int32), np.arange(101, 133, dtype=np.int32), poisoned("int32", 8)
    if which != "neither":
        (a if which == "a" else b)[5] = -3
    first_kernel[(1,)](a, b, out, 8, BLOCK=8)
    i = np.arange(8)
    expected = {"a": a[i] - 3 + 5, "b": b[2 * i] + b[0] + 105, "neither": b[i] + b[1] - 8}[which]
    check(out, expected)


@triton.jit
def conditions_kernel(x_ptr, none_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Pointers, tiles of one element, floats and integers that decide."""
    result = 0
    if x_ptr:
        result += 1
    if not none_ptr.to(tl.int64).to(tl.pointer_type(tl.float32)):
        result += 2
    one = tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK)), keep_dims=True)
    if one > 0:
        result += 4
    k = tl.full([1, 1], 3, tl.int32)
    while k:
        k -= 1
        result += 8
    x = tl.load(x_ptr)
    result += 64 if x else n
    if x and not n - 5:
        result += 128
    assert one == one or n == 5
    scale = 1 if n > 3 else 0.5
    tl.store(out_ptr, result * scale)


@pytest.mark.parametrize(("first", "n"), [(1.0, 5), (0.0, 2), (float("nan"), 5), (-9.0, 4)])
def test_conditions(poisoned, check, first, n):
    x, out = np.array([first, 0.5, 0.25, 0], np.float32), poisoned("float32", 1)
    conditions_kernel[(1,)](x, 0, out, n, BLOCK=4)
    expected = 1 + 2 + 4 * (x.sum() > 0) + 24 + (64 if first != 0 else n) + 128 * (n == 5 and first != 0)
    check(out, np.array([expected * (1 if n > 3 else 0.5)]))


@triton.jit
def returned_index(start, end, step, wanted):
    for i in range(start, end, step):
        if i * i >= wanted:
            return i, i + 1
    return -1, -1


@triton.jit
def first_index(start, end, wanted):
    for i in range(start, end):
        if i >= wanted:
            break
        return i
    return -1


@triton.jit
def index_as_it_is(out_ptr, start, end, step, wanted):
    last, pair = start, (start, start)
    for i in range(start, end, step):
        last = i
        pair = (pair[1], i)
        if i >= wanted:
            break
    tl.store(out_ptr, last)
    tl.store(out_ptr + 1, pair[0])
    tl.store(out_ptr + 2, pair[1])
    found, following = returned_index(start, end, step, wanted)
    tl.store(out_ptr + 3, found)
    tl.store(out_ptr + 4, following)
    tl.store(out_ptr + 5, first_index(start, end, wanted))


@pytest.mark.parametrize("bounds", [(0, 30, 2, 7), (-9, 40, 7, 20), (5, 5, 1, 3), (3, 9, 4, 100)])
def test_variables_that_are_the_index(poisoned, bounds):
    out = poisoned("int32", 6)
    index_as_it_is[(1,)](out, *bounds)
    start, end, step, wanted = bounds
    last, pair = start, (start, start)
    for i in range(start, end, step):
        last, pair = i, (pair[1], i)
        if i >= wanted:
            break
    found = next((i for i in range(start, end, step) if i * i >= wanted), None)
    pairs = (-1, -1) if found is None else (found, found + 1)
    first = next((-1 if i >= wanted else i for i in range(start, end)), -1)
    np.testing.assert_array_equal(out, [last, *pair, *pairs, first])


@triton.jit
def kernel_that_returns_a_number(out_ptr, n, BLOCK: tl.constexpr):
    """There is nobody to return it to."""
    if n > 3:
        return 0
    tl.store(out_ptr + tl.arange(0, BLOCK), n)
    if BLOCK > 16:
        return False
    tl.store(out_ptr, 7)
    return -1


@pytest.mark.parametrize("n, block, expected", [(5, 16, [-1, -1]), (2, 16, [7, 2]), (2, 32, [2, 2])])
def test_kernel_that_returns_a_number(check, n, block, expected):
    out = np.full(block, -1, np.int32)
    kernel_that_returns_a_number[(1,)](out, n, BLOCK=block)
    check(out[:2], expected)


@triton.jit
def zero_by_sign(n):
    if n > 0:
        return 0.0
    return -0.0


@triton.jit
def zeros_kernel(out_ptr, n):
    zero = 0.0
    for _ in range(n):
        zero = -0.0
    tl.store(out_ptr, zero_by_sign(n))
    tl.store(out_ptr + 1, 0.0 if n > 0 else -0.0)
    tl.store(out_ptr + 2, zero)


@pytest.mark.parametrize("n", [0, 1])
def test_zeros_of_both_signs_are_two_numbers(poisoned, n):
    """Where sides agree on a number it is that."""
    out = poisoned("float32", 3)
    zeros_kernel[(1,)](out, n)
    assert list(np.signbit(out)) == [n == 0, n == 0, n == 1]


@triton.jit
def takes_another_kernel(x_ptr, out_ptr, m, n):
    """`first` becomes what `last` is, which the loop assigns and leaves as it is."""
    first, last = m, n
    for i in range(m):
        first = last
        last = last
        if tl.load(x_ptr + i) > 2:
            break
    tl.store(out_ptr, first)
    tl.store(out_ptr + 1, last)


@pytest.mark.parametrize("m", [0, 1, 4])
def test_a_variable_becomes_another_that_stays(check, m):
    x, out = np.array([1, 3, 1, 1], np.int32), np.full(2, -1, np.int32)
    takes_another_kernel[(1,)](x, out, m, 7)
    check(out, [7 if m else 0, 7])
