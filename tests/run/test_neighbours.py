"""Neighbours that are known to be the same, computed and loaded once, and others that are where they were loaded."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl

pytestmark = [pytest.mark.each_gpu, pytest.mark.share(3)]


@triton.jit
def counts_kernel(x_ptr, out_ptr, rows, n, turns, DTYPE: tl.constexpr, BLOCK: tl.constexpr):
    """How many columns each place of a tile has had, counted through loops and branches, as Welford's sums need it."""
    i = tl.arange(0, BLOCK)
    count = tl.zeros([BLOCK], DTYPE)
    total = tl.zeros([BLOCK], tl.float32)
    for row in range(rows):
        if row % 3 == 1:
            count += 1
        for start in range(0, n, BLOCK):
            mask = start + i < n
            x = tl.load(x_ptr + row * n + start + i, mask=mask, other=0.0)
            count = tl.where(mask, count + mask.to(DTYPE), count)
            total += x * count.to(tl.float32)
    turn = 0
    while turn < turns:
        count += (i >= 16 * turn).to(DTYPE)
        turn += 1
    tl.store(out_ptr + i, total)
    tl.store(out_ptr + BLOCK + i, count.to(tl.float32))


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", [tl.int32, tl.float16, tl.float32, tl.int8], ids=str)
@pytest.mark.parametrize("n", [16, 100, 304])
@pytest.mark.parametrize("block", [32, 256])
def test_counts_that_neighbours_have_in_common(draw, poisoned, check, dtype, n, block):
    x, out = draw("int32", (5, n), -9, 9).astype(np.float32), poisoned("float32", (2, block))
    counts_kernel[(1,)](x, out, 5, n, 3, DTYPE=dtype, BLOCK=block)
    count, total, i = np.zeros(block), np.zeros(block), np.arange(block)
    for row in range(5):
        count += row % 3 == 1
        for start in range(0, n, block):
            held = min(block, n - start)
            count[:held] += 1
            total[:held] += x[row, start : start + held] * count[:held]
    for turn in range(3):
        count += i >= 16 * turn
    check(out, np.stack([total, count]))


@triton.jit
def looked_up_kernel(numbers_ptr, x_ptr, scales_ptr, out_ptr, counts_ptr, group, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    numbers = tl.load(numbers_ptr + i, mask=mask, other=0)
    scale = tl.load(scales_ptr + i // group, mask=mask, other=0.0)
    tl.store(out_ptr + numbers, tl.load(x_ptr + numbers) * scale, mask=mask)
    tl.atomic_add(counts_ptr + numbers % 8, 1, mask=mask)
    tl.store(out_ptr + n + i, tl.load(x_ptr + numbers, mask=mask), mask=mask)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("n", [256, 250])
@pytest.mark.parametrize("group", [0, 16, 64, 3])
def test_what_is_looked_up_and_scaled_in_groups(rng, draw, poisoned, check, dtype, n, group):
    numbers = rng.permutation(n).astype(dtype)
    x, scales = draw("float32", n), draw("float32", n)
    out, counts = poisoned("float32", (2, n)), np.zeros(8, np.int32)
    looked_up_kernel[(2,)](numbers, x, scales, out, counts, group, n, BLOCK=128, num_warps=1)
    scaled = np.empty(n, np.float32)
    places = np.arange(n) // group if group else np.zeros(n, int)
    scaled[numbers] = x[numbers] * scales[places]
    check(out, np.stack([scaled, x[numbers]]))
    check(counts, np.bincount(numbers % 8, minlength=8).astype(np.int32))


@triton.jit
def gathered_kernel(x_ptr, out_ptr, n, KIND: tl.constexpr, OTHER: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if KIND == "repeated":
        place = i // 2
    elif KIND == "swapped":
        place = i ^ 1
    elif KIND == "fours":
        place = i // 8 * 4 + i % 4
    elif KIND == "shuffled":
        place = i % 2 * (BLOCK * 2) + i // 2
    elif KIND == "reversed":
        place = i // 16 * 16 + (15 - i % 16)
    elif KIND == "next":
        place = i + 1
    else:
        place = (i // 4 * 4 + 2 * i % 4) // 2
    if OTHER == "each":
        x = tl.load(x_ptr + place, mask=i < n, other=i % 7)
    elif OTHER == "alternating":
        x = tl.load(x_ptr + place, mask=i % 2 == 0, other=5)
    else:
        x = tl.load(x_ptr + place, mask=i < n, other=3)
    tl.store(out_ptr + i, x)


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", ["int8", "float16", "int32", "int64"])
@pytest.mark.parametrize("kind", ["repeated", "swapped", "fours", "shuffled", "reversed", "next", "doubled"])
@pytest.mark.parametrize(
    ("n", "other"), [(1024, "same"), (992, "same"), (999, "same"), (992, "each"), (0, "alternating")]
)
def test_what_neighbours_load_together(draw, poisoned, check, dtype, kind, n, other):
    x, out, i = draw(dtype, 2048, -9, 9), poisoned(dtype, 1024), np.arange(1024)
    gathered_kernel[(2,)](x, out, n, KIND=kind, OTHER=other, BLOCK=512, num_warps=2)
    place = {
        "repeated": i // 2,
        "swapped": i ^ 1,
        "fours": i // 8 * 4 + i % 4,
        "shuffled": i % 2 * 1024 + i // 2,
        "reversed": i // 16 * 16 + 15 - i % 16,
        "next": i + 1,
        "doubled": (i // 4 * 4 + 2 * i % 4) // 2,
    }[kind]
    is_on = i % 2 == 0 if other == "alternating" else i < n
    instead = {"same": 3, "each": i % 7, "alternating": 5}[other]
    check(out, np.where(is_on, x[place], instead).astype(dtype))


@triton.jit
def rotated_kernel(x_ptr, angles_ptr, out_ptr, rows, DIM: tl.constexpr, ROWS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    i = tl.arange(0, DIM)[None, :]
    mask = row < rows
    x = tl.load(x_ptr + row * DIM + i, mask=mask)
    y = tl.load(x_ptr + row * DIM + (i ^ 1), mask=mask)
    turned = tl.load(angles_ptr + row // 2 * (DIM // 2) + i // 2, mask=mask)
    tl.store(out_ptr + row * DIM + i, x + tl.where(i % 2 == 0, -y, y) * turned, mask=mask)


@pytest.mark.parametrize("rows", [16, 13])
@pytest.mark.parametrize("dim", [16, 64])
def test_pairs_that_are_turned(draw, poisoned, check, rows, dim):
    x, out = draw("int32", (rows, dim), -9, 9).astype(np.float32), poisoned("float32", (rows, dim))
    angles = draw("int32", (8, dim // 2), -9, 9).astype(np.float32)
    rotated_kernel[(2,)](x, angles, out, rows, DIM=dim, ROWS=8, num_warps=1)
    y = x[:, np.arange(dim) ^ 1] * np.where(np.arange(dim) % 2, 1, -1)
    check(out, x + y * angles.repeat(2, 1).repeat(2, 0)[:rows])


@triton.jit
def overflowing_kernel(x_ptr, out_ptr, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if KIND == "cut":
        place = ((i % 4).to(tl.uint64) + 4294967297).to(tl.uint32) // 3
    elif KIND == "product":
        place = ((i % 4) * 2147483647).to(tl.uint32) % 3
    else:
        place = ((i % 4).to(tl.uint32) * 3000000000 + 5) % 7
    tl.store(out_ptr + i, tl.load(x_ptr + place))


@pytest.mark.parametrize("kind", ["cut", "product", "sum"])
def test_divided_numbers_that_overflow(draw, poisoned, check, kind):
    x, out, i = draw("float32", 8), poisoned("float32", 256), np.arange(256) % 4
    overflowing_kernel[(1,)](x, out, KIND=kind, BLOCK=256, num_warps=1)
    place = {
        "cut": (i + 1) // 3,
        "product": i * 2147483647 % 2**32 % 3,
        "sum": (i * 3000000000 + 5) % 2**32 % 7,
    }[kind]
    check(out, x[place])
