"""More accesses through one argument than are compared with each other, and loops in loops: in order all the same."""

import numpy as np

import deuteron
import deuteron.language as tl

N = 64


@deuteron.jit
def exchange(x, STEPS: tl.constexpr):
    i = tl.arange(0, 64)
    for step in tl.static_range(STEPS):
        v = tl.load(x + (step % 5) * 64 + 63 - i)
        tl.store(x + (step % 3) * 64 + i, v + step)


def test_rows_that_are_exchanged(draw, check):
    x = draw("float32", 5 * N)
    expected = x.reshape(5, N).copy()
    for step in range(70):
        expected[step % 3] = expected[step % 5][::-1] + np.float32(step)
    exchange[(1,)](x, STEPS=70)
    check(x, expected.reshape(-1).astype(np.float64))


@deuteron.jit
def rotate(x, STEPS: tl.constexpr):
    for step in tl.static_range(STEPS):
        tl.store(x + 2 * step, tl.load(x + 2 * step + 1) * 2)
    for step in tl.static_range(STEPS):
        tl.store(x + 2 * step + 1, tl.load(x + 2 * (STEPS - 1 - step)) + 1)


def test_numbers_that_one_thread_stores(draw, check):
    x = draw("float32", 200)
    expected = x.copy()
    expected[::2] = x[1::2] * 2
    expected[1::2] = expected[::2][::-1] + 1
    rotate[(1,)](x, STEPS=100)
    check(x, expected.astype(np.float64))


@deuteron.jit
def nested(x, n):
    i = tl.arange(0, 64)
    for a in range(n):
        for b in range(n):
            for c in range(n):
                tl.store(x + i, tl.load(x + 63 - i) + a * b + c)
            tl.store(x + 64 + i, tl.load(x + 63 - i))
        tl.store(x + i, tl.load(x + 127 - i))


def test_loops_in_loops(draw, check):
    x, n = draw("float32", 2 * N), 3
    first, second = x[:N].astype(np.float32), x[N:].astype(np.float32)
    for a in range(n):
        for b in range(n):
            for c in range(n):
                first = first[::-1] + np.float32(a * b + c)
            second = first[::-1]
        first = second[::-1]
    nested[(1,)](x, np.int32(n))
    check(x, np.concatenate([first, second]).astype(np.float64))
