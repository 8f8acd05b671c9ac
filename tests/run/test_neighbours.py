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
