"""`if`, `for`, `while`, conditional expressions, early return, nesting; tiles and scalars carried through them."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl


@triton.jit
def for_kernel(x_ptr, out_ptr, start, end, step, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    count = 0
    for i in range(start, end, step):
        total += tl.load(x_ptr + i * n + offsets, mask=offsets < n, other=0.0)
        count += 1
    tl.store(out_ptr + offsets, total, mask=offsets < n)
    tl.store(out_ptr + n, count)


@pytest.mark.parametrize("bounds", [(0, 9, 1), (2, 9, 3), (1, 9, 4), (5, 5, 1), (7, 2, 1), (0, 1, 100)])
def test_for_carries_a_tile_and_a_number(draw, poisoned, check_norm, bounds):
    x, out = draw("float32", (9, 13)), poisoned("float32", 14)
    for_kernel[(1,)](x, out, *bounds, 13, BLOCK=16)
    rows = range(*bounds)
    expected = np.append(x.astype(np.float64)[list(rows)].sum(axis=0), len(rows))
    if len(rows):
        check_norm(out, expected, 1e-5)
    else:
        np.testing.assert_array_equal(out, 0)


@triton.jit
def countdown_kernel(out_ptr, n):
    for i in range(n - 1, -1, -1):
        tl.store(out_ptr + i, i * i)


def test_for_with_a_negative_step(poisoned, check):
    out = poisoned("int32", 7)
    countdown_kernel[(1,)](out, 7)
    check(out, np.arange(7) ** 2)


@triton.jit
def nested_kernel(x_ptr, out_ptr, m, n):
    total = 0.0
    for i in range(m):
        row = 0.0
        for j in range(i, n):
            x = tl.load(x_ptr + i * n + j)
            if x > 0:
                row += x
            else:
                if j % 2 == 0:
                    row -= 2 * x
        total = total + row if i % 2 == 0 else total - row
        tl.store(out_ptr + 1 + i, row)
    tl.store(out_ptr, total)


def test_nested_loops_and_branches(draw, poisoned, check_norm):
    m, n = 5, 11
    x, out = draw("float32", (m, n)), poisoned("float32", m + 1)
    nested_kernel[(1,)](x, out, m, n)
    i, j = np.ogrid[:m, :n]
    terms = np.where(x > 0, x, np.where(j % 2 == 0, -2.0 * x, 0)) * (j >= i)
    rows = terms.astype(np.float64).sum(axis=1)
    check_norm(out, np.append((rows * np.where(np.arange(m) % 2 == 0, 1, -1)).sum(), rows), 1e-5)


@triton.jit
def collatz_kernel(x_ptr, out_ptr, limit):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid)
    steps = 0
    while (x != 1) & (steps < limit):
        if x % 2 == 0:  # noqa: SIM108  (the branch is what is tested)
            x = x // 2
        else:
            x = 3 * x + 1
        steps += 1
    tl.store(out_ptr + pid, steps)


def collatz(x, limit):
    steps = 0
    while x != 1 and steps < limit:
        x = x // 2 if x % 2 == 0 else 3 * x + 1
        steps += 1
    return steps


@pytest.mark.parametrize("limit", [1000, 10, 0])
def test_while(poisoned, check, limit):
    x, out = np.arange(1, 40, dtype=np.int64), poisoned("int32", 39)
    collatz_kernel[(39,)](x, out, limit)
    check(out, [collatz(int(value), limit) for value in x])


@triton.jit
def while_tile_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    rounds = 0
    while tl.max(x, axis=0) > 1.0:
        x = x * 0.5
        rounds += 1
    tl.store(out_ptr + tl.arange(0, BLOCK), x)
    tl.store(out_ptr + BLOCK, rounds)


def test_while_on_a_reduction_of_a_carried_tile(draw, poisoned):
    x, out = draw("float32", 32, 1, 100), poisoned("float32", 33)
    while_tile_kernel[(1,)](x, out, BLOCK=32)
    rounds = int(np.ceil(np.log2(x.max())))
    np.testing.assert_array_equal(out, np.append(x * 0.5**rounds, rounds).astype(np.float32))


@triton.jit
def while_two_tiles_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    while tl.sum(x.to(tl.float32), axis=0) > 1.0:
        x, y = y, x * 0.5
    tl.store(out_ptr + i, x)
    tl.store(out_ptr + BLOCK + i, y)


@pytest.mark.parametrize("block", [16, 512])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_while_carries_tiles_of_16_bits_that_change_places(draw, poisoned, dtype, block):
    x, y, out = (*(draw(dtype, block, 0, 1) for _ in range(2)), poisoned(dtype, (2, block)))
    while_two_tiles_kernel[(1,)](x, y, out, BLOCK=block)
    while x.astype(np.float32).sum() > 1:
        x, y = y, (x.astype(np.float32) * 0.5).astype(x.dtype)
    np.testing.assert_array_equal(out, np.stack([x, y]))


@triton.jit
def branch_kernel(x_ptr, out_ptr, mode, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    scale = 1.0
    if mode == 0:
        x = x + 1.0
    elif mode == 1:
        x = tl.exp(x)
        scale = 3.0
    elif mode > 5 and mode < 8:
        scale = 0.25
    else:
        if not mode < 0:
            x = -x
    tl.store(out_ptr + offsets, x * scale, mask=mask)


@pytest.mark.parametrize("mode", [0, 1, 2, 6, 7, 8, -1])
def test_if_chain(draw, poisoned, check_norm, mode):
    x, out = draw("float32", 50), poisoned("float32", 50)
    branch_kernel[(1,)](x, out, mode, 50, BLOCK=64)
    x = x.astype(np.float64)
    expected = {0: x + 1, 1: 3 * np.exp(x), 2: -x, 6: x / 4, 7: x / 4, 8: -x, -1: x}[mode]
    check_norm(out, expected, 1e-6)


@triton.jit
def early_return_kernel(x_ptr, out_ptr, n, limit):
    pid = tl.program_id(0)
    if pid >= n:
        return
    x = tl.load(x_ptr + pid)
    if x > limit:
        tl.store(out_ptr + pid, -1)
        return
    tl.store(out_ptr + pid, x)


def test_early_return(draw, poisoned, check):
    x, out = draw("int32", 20, 0, 100), poisoned("int32", 25)
    expected = out.copy()
    expected[:20] = np.where(x > 50, -1, x)
    early_return_kernel[(25,)](x, out, 20, 50)
    check(out, expected)


@triton.jit
def static_range_kernel(x_ptr, out_ptr, n, FACTORS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.zeros([BLOCK], tl.float32)
    for i in tl.static_range(len(FACTORS)):
        total += FACTORS[i] * tl.load(x_ptr + i * n + offsets, mask=mask, other=0.0)
    for i in tl.static_range(2, 8, 3):
        total += i
    tl.store(out_ptr + offsets, total, mask=mask)


def test_static_range_over_a_tuple(draw, poisoned, check_norm):
    x, out, factors = draw("float32", (3, 40)), poisoned("float32", 40), (2, -1, 5)
    static_range_kernel[(1,)](x, out, 40, FACTORS=factors, BLOCK=64)
    check_norm(out, np.array(factors) @ x.astype(np.float64) + 2 + 5, 1e-6)


@triton.jit
def reused_variable_kernel(out_ptr, n, w):
    j = n
    total = 0
    for i in range(n):
        total += j
        for j in (1, w):
            total += j * i
    for _ in range(n):
        for k in tl.static_range(2):  # nobody reads k elsewhere
            total += k
    tl.store(out_ptr, total)
    tl.store(out_ptr + 1, j)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_a_loop_carries_what_an_unrolled_one_leaves_its_variable(poisoned, n):
    out = poisoned("int32", 2)
    reused_variable_kernel[(1,)](out, n, 7)
    expected = [n + 7 * (n - 1) + 8 * sum(range(n)) + n, 7] if n else [0, 0]
    np.testing.assert_array_equal(out, expected)


@triton.jit
def pointer_walk_kernel(x_ptr, out_ptr, m, n, BLOCK: tl.constexpr):
    ptrs = x_ptr + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < n
    previous = tl.zeros([BLOCK], tl.float32)
    current = tl.full([BLOCK], 1.0, tl.float32)
    for _ in range(m):
        previous, current = current, previous + tl.load(ptrs, mask=mask, other=0.0)
        ptrs += n
    tl.store(out_ptr + tl.arange(0, BLOCK), current, mask=mask)


def test_carried_pointers_and_a_swap(draw, poisoned, check_norm):
    x, out = draw("float32", (5, 21)), poisoned("float32", 21)
    pointer_walk_kernel[(1,)](x, out, 5, 21, BLOCK=32)
    previous, current = np.zeros(21), np.ones(21)
    for row in x.astype(np.float64):
        previous, current = current, previous + row
    check_norm(out, current, 1e-5)


@triton.jit
def sums_of_blocks(x, out, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in tl.range(0, n, BLOCK, loop_unroll_factor=FACTOR):
        total = total * 0.5 + tl.load(x + start + i, mask=start + i < n, other=0.0)
    tl.store(out + i, total)


@pytest.mark.share(2)
@pytest.mark.parametrize("factor", [1, 2, 4])
@pytest.mark.parametrize("n", [0, 32, 100, 256])
def test_unrolled_loops(draw, poisoned, check, factor, n):
    x, out = draw("float32", n), poisoned("float32", 32)
    sums_of_blocks[(1,)](x, out, n, FACTOR=factor, BLOCK=32)
    expected = np.zeros(32)
    for block in np.pad(x.astype(np.float64), (0, -n % 32)).reshape(-1, 32):
        expected = expected * 0.5 + block
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


@triton.jit
def choice_kernel(x_ptr, out_ptr, op, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    if op == 1:
        tl.store(out_ptr + i, x, mask=i < n)
    elif op == 2:
        tl.atomic_add(out_ptr + i, x, mask=i < n)
    elif op == 3:
        tl.atomic_min(out_ptr + i, x, mask=i < n)
    elif op == 4:
        tl.atomic_max(out_ptr + i, x, mask=i < n)
    elif op == 5:
        tl.store(out_ptr + i, x * x, mask=i < n)


@pytest.mark.parametrize("op", range(7))
def test_one_of_many_branches(draw, check, op):
    """What LLVM makes a jump by an index of."""
    x, out = draw("float32", 13), draw("float32", 13)
    results = {1: x, 2: out + x, 3: np.minimum(out, x), 4: np.maximum(out, x), 5: x * x}
    expected = results.get(op, out.copy())
    choice_kernel[(1,)](x, out, op, 13, BLOCK=16)
    check(out, expected)


@triton.jit
def assigned_in_operands_kernel(out_ptr, n):
    x = y = z = w = 5
    if n > 3 and (x := n * 2) > 9:
        tl.store(out_ptr, x)
    if n > 3 or (y := n * 2) > 3:
        tl.store(out_ptr + 1, y)
    if 1 < n < (z := n * 3):
        tl.store(out_ptr + 2, z)
    while w > 0 and w != (x := n):
        w -= 2
    squares = [(w := part * part) for part in (n, n + 1)]
    tl.store(out_ptr + 3, x * 1000 + y * 100 + z)
    tl.store(out_ptr + 4, w + squares[0])


@pytest.mark.parametrize("n", [0, 1, 2, 4, 7])
def test_what_an_operand_assigns_is_kept_where_python_comes_to_it(poisoned, n):
    out = poisoned("int32", 5)
    out[:3] = -1
    expected = out.copy()
    assigned_in_operands_kernel[(1,)](out, n)
    x, y, z = (n * 2 if n > 3 else 5), (5 if n > 3 else n * 2), (n * 3 if n > 1 else 5)
    if n > 3 and x > 9:
        expected[0] = x
    if n > 3 or y > 3:
        expected[1] = y
    if 1 < n < z:
        expected[2] = z
    expected[3:] = n * 1000 + y * 100 + z, (n + 1) ** 2 + n**2
    np.testing.assert_array_equal(out, expected)
