"""Loops over all kinds of bounds: near the ends of their types, with steps down, with steps known at run time."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.errors import AssertionFailure

I32, I64 = np.iinfo(np.int32), np.iinfo(np.int64)
LENGTH = 8


@triton.jit
def record(out_ptr, count, i):
    tl.store(out_ptr + 1 + count, i)


@triton.jit
def given_bounds_kernel(out_ptr, start, end, STEP: tl.constexpr):
    count = 0
    for i in range(start, end, STEP):
        record(out_ptr, count, i)
        count += 1
    tl.store(out_ptr, count)


@triton.jit
def known_start_kernel(out_ptr, end, START: tl.constexpr, STEP: tl.constexpr):
    count = 0
    for i in range(START, end, STEP):
        record(out_ptr, count, i)
        count += 1
    tl.store(out_ptr, count)


@triton.jit
def known_bounds_kernel(out_ptr, START: tl.constexpr, END: tl.constexpr, STEP: tl.constexpr):
    count = 0
    for i in range(START, END, STEP):
        record(out_ptr, count, i)
        count += 1
    tl.store(out_ptr, count)


@triton.jit
def given_step_kernel(out_ptr, start, end, step):
    count = 0
    for i in range(start, end, step):
        record(out_ptr, count, i)
        count += 1
    tl.store(out_ptr, count)


BOUNDS = [
    (0, 10, 3),
    (0, 0, 1),
    (0, -5, 2),
    (5, 3, 1),
    (-7, 8, 5),
    (-3, -9, 2),
    (I32.max - 7, I32.max, 5),
    (I32.max - 7, I32.max, 1),
    (0, I32.max, 2**30 - 1),
    (1, I32.max, I32.max),
    (I32.min, I32.max, 2**30 + 5),
    (I32.min, I32.min + 8, 5),
    (I32.min, I32.max, I32.max),
    (9, -2, -3),
    (I32.min + 7, I32.min, -5),
    (I32.max, I32.min, -(2**30)),
    (I32.max, I32.max - 3, -1),
    (3, 9, -2),
    (I64.max - 7, I64.max, 5),
    (0, I64.max, 2**62 - 1),
    (I64.min, I64.max, 2**62 + 5),
    (I64.min + 7, I64.min, -5),
    (I64.max, I64.min, -(2**62)),
]


@pytest.mark.share(3)
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("kernel", ["given bounds", "known start", "known bounds", "given step"])
def test_a_loop_has_the_iterations_of_its_range(poisoned, check, kernel, bounds):
    start, end, step = bounds
    out = poisoned("int64", LENGTH)
    if kernel == "given bounds":
        given_bounds_kernel[(1,)](out, start, end, STEP=step)
    elif kernel == "known start":
        known_start_kernel[(1,)](out, end, START=start, STEP=step)
    elif kernel == "known bounds":
        known_bounds_kernel[(1,)](out, START=start, END=end, STEP=step)
    elif step > 0:
        given_step_kernel[(1,)](out, start, end, step)
    else:
        pytest.skip("a step that is known at run time is positive")
    indices = list(range(start, end, step))
    check(out[: 1 + len(indices)], [len(indices), *indices])


@pytest.mark.parametrize("step", [0, -1, I32.min])
def test_a_step_that_turns_out_not_to_be_positive_gives_no_iterations(executor, poisoned, check, step):
    if executor == "interpreter":
        pytest.skip("an error there")
    out = poisoned("int64", LENGTH)
    given_step_kernel[(1,)](out, 5, 9, step)
    check(out[:1], [0])


@pytest.mark.parametrize("step", [0, -1, I32.min])
def test_a_step_that_turns_out_not_to_be_positive_is_an_error_in_debugging(step):
    out = np.zeros(LENGTH, np.int64)
    with pytest.raises(AssertionFailure, match="the step of a range is not positive"):
        given_step_kernel[(1,)](out, 5, 9, step, debug=True)
    given_step_kernel[(1,)](out, 5, 9, 2, debug=True)
    assert out[:3].tolist() == [2, 5, 7]


@triton.jit
def product_kernel(x_ptr, y_ptr, out_ptr, start, end, STEP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tile = i[:, None] * BLOCK + i[None, :]
    total = tl.zeros([BLOCK, BLOCK], tl.float32)
    for k in tl.range(start, end, STEP, num_stages=3):
        part = ((k - start) // STEP) * BLOCK * BLOCK
        total = tl.dot(tl.load(x_ptr + part + tile), tl.load(y_ptr + part + tile), total)
    tl.store(out_ptr + tile, total)


@pytest.mark.parametrize("step", [5, 1000])
@pytest.mark.parametrize("at", ["lowest", "highest", "zero"])
def test_pipelined_loops_at_the_ends_of_the_type(draw, poisoned, check_norm, at, step):
    trips, block = 2, 32
    start = {"lowest": I32.min, "highest": I32.max - 1 - step, "zero": -step}[at]
    x, y = draw("float16", (trips, block, block)), draw("float16", (trips, block, block))
    out = poisoned("float32", (block, block))
    product_kernel[(1,)](x, y, out, start, start + step + 1, STEP=step, BLOCK=block)
    check_norm(out, (x.astype(np.float64) @ y.astype(np.float64)).sum(axis=0), 1e-3)


@triton.jit
def long_steps_kernel(
    x_ptr, y_ptr, out_ptr, end, step, START: tl.constexpr, UNIT: tl.constexpr, STAGES: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    i = tl.arange(0, BLOCK)
    tile = i[:, None] * BLOCK + i[None, :]
    total = tl.zeros([BLOCK, BLOCK], tl.float32)
    for k in tl.range(START, end, step, num_stages=STAGES):
        part = (k // UNIT - START // UNIT) * BLOCK * BLOCK
        total = tl.dot(tl.load(x_ptr + part + tile), tl.load(y_ptr + part + tile), total)
    tl.store(out_ptr + tile, total)


@pytest.mark.parametrize(
    ("start", "end", "step", "unit", "stages"),
    [
        (0, I32.max, 2**30, 2**30, 6),
        (0, 256, 3 * 2**28, 2**28, 7),
        (I32.min, I32.max, 2**30, 2**30, 4),
        (I32.min, 5, 2**30, 2**30, 3),
        (I64.min, I64.max, 2**62, 2**62, 3),
        (-(2**62), I64.max, 2**62, 2**62, 5),
    ],
)
def test_a_step_times_stages_beyond_the_type(draw, poisoned, check_norm, start, end, step, unit, stages):
    """Whether an iteration that many later comes is computed without wrapping."""
    trips, block = len(range(start, end, step)), 16
    x, y = draw("float16", (trips, block, block)), draw("float16", (trips, block, block))
    out = poisoned("float32", (block, block))
    long_steps_kernel[(1,)](x, y, out, end, step, start, unit, stages, block)
    check_norm(out, (x.astype(np.float64) @ y.astype(np.float64)).sum(axis=0), 1e-3)


@triton.jit
def far_rows_kernel(x_ptr, y_ptr, out_ptr, n, FIRST: tl.constexpr, BLOCK: tl.constexpr):
    """Rows whose numbers are so large that those of the last program are negative; the others do nothing."""
    i = tl.arange(0, BLOCK)
    tile, pid = i[:, None] * BLOCK + i[None, :], tl.program_id(0)
    if pid >= FIRST:
        total = tl.zeros([BLOCK, BLOCK], tl.float32)
        for k in range(0, n, BLOCK):
            y = tl.load(y_ptr + k * BLOCK + tile)
            scores = tl.dot(tl.load(x_ptr + tile), y)
            scores = tl.where((pid * 4194304 + i)[:, None] >= (k + i)[None, :], scores, 1.0)
            total = tl.dot(scores.to(tl.float16), y, total)
        tl.store(out_ptr + tile, total)


@pytest.mark.each_gpu
def test_a_loop_is_not_split_at_what_overflowed(rng, poisoned, check):
    block, n = 64, 128
    x, y = rng.integers(-2, 3, (block, block)).astype(np.float16), rng.integers(-2, 3, (n, block)).astype(np.float16)
    out = poisoned("float32", (block, block))
    far_rows_kernel[(513,)](x, y, out, n, FIRST=512, BLOCK=block)
    check(out, np.repeat(y.astype(np.float64).reshape(-1, block, block).sum(axis=(0, 1))[None], block, 0))
