"""Signals at random times in the middle of programs that take long; `test_interrupt.py` runs this as a program.

python interrupted_programs.py SEED         prints a line for each scenario; ends with an error where one is wrong
python interrupted_programs.py SEED team    launches run in the team of an OpenMP runtime where they can
"""

from __future__ import annotations

import ctypes
import functools
import os
import random
import signal
import sys
import threading
import time

import numpy as np

import deuteron
import deuteron.language as tl
from deuteron.backend.cpu.launch.thread_pool import thread_pool

FOR_EVER = 1 << 50
SOON = 20  # seconds


class Stop(Exception):
    """What a handler raises."""


@deuteron.jit
def scalars(out, n):
    total = 0.0
    for i in range(n):
        total = total * 0.999 + i
    tl.store(out + tl.program_id(0), total)


@deuteron.jit
def spin(out, n):
    x = 2 * tl.program_id(0) + 1
    while x != n:
        x = x * 3 % 1024
    tl.store(out + tl.program_id(0), x)


@deuteron.jit
def tiles(out, n):
    """A tile that is in scratch memory; at its end each element is that of the one before, and 1."""
    i = tl.arange(0, 2048)
    value = i.to(tl.float32)
    for _ in range(n):
        value = tl.cumsum(value * 0 + 1, 0) + tl.max(value) * 0
    tl.store(out + tl.program_id(0), tl.sum(value) * (tl.program_id(0) + 1))


@deuteron.jit
def nested(out, n):
    total = 0.0
    for _ in range(n):
        for j in range(tl.program_id(0) + 3):
            total += j
            while total > 10:
                total -= 10
    tl.store(out + tl.program_id(0), total)


@deuteron.jit
def unequal(out, n):
    """The first program, which who launches runs, ends at once."""
    total = 0.0
    if tl.program_id(0) > 0:
        for i in range(n):
            total = total * 0.999 + i
    tl.store(out + tl.program_id(0), total)


@deuteron.jit
def waiting(out, flag, n):
    """Programs that may wait for others, in which another loop takes long."""
    total = 0.0
    for i in range(n):
        total = total * 0.999 + i
    while tl.load(flag, volatile=True) == 0:
        pass
    tl.store(out + tl.program_id(0), total)


@deuteron.jit
def early(out, n):
    """Programs that are short in one launch and long in the next, and have no loop."""
    i = tl.arange(0, 1 << 16)
    value = i.to(tl.float32)
    if n > 4:
        value = tl.cumsum(tl.sort(value, descending=True), 0)
    tl.store(out + i % 8, value, mask=i < 1)


KERNELS = {kernel.fn.__name__: kernel for kernel in (scalars, spin, tiles, nested, unequal)}


def ended_by(launch, delay: float, then=None) -> float:
    """How long a launch went on after a signal whose handler raises Stop."""

    def handler(*_):
        if then:
            then()
        raise Stop

    signal.signal(signal.SIGALRM, handler)
    begin = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        launch()
    except Stop as stop:
        assert stop.__context__ is None
        return time.monotonic() - begin - delay
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    raise AssertionError("nothing was raised")


def right(kernel, grid: int) -> None:
    """A launch after the interrupted one is as any other."""
    out, n = np.full(grid, -1, np.float32), 3 if kernel is not spin else 27
    expected = {
        "scalars": lambda p: 0.999 + 2,
        "spin": lambda p: 27,
        "tiles": lambda p: 2048 * 2049 / 2 * (p + 1),
        "nested": lambda p: 3.0 * (p + 3) * (p + 2) / 2 % 10 or 10.0,
        "unequal": lambda p: 2.999 if p else 0.0,
    }[kernel.fn.__name__]
    num = 1 if kernel is spin else grid
    kernel[(num,)](out, n)
    np.testing.assert_allclose(out[:num], [expected(p) for p in range(num)], rtol=1e-6)


def raises(rng: random.Random) -> None:
    for name, kernel in KERNELS.items():
        for options in ({}, {"debug": True}):
            grid = rng.choice((1, 2, 3, 7)) + (kernel is unequal)
            out, n = np.zeros(grid, np.float32), FOR_EVER if kernel is not spin else 4
            kernel.warmup(out, n, grid=(1,), **options)
            launch = functools.partial(kernel[(grid,)], out, n, **options)
            for _ in range(2):
                took = ended_by(launch, rng.uniform(0.001, 0.15))
                assert took < SOON, (name, took)
            right(kernel, grid)
            assert threading.active_count() <= 1 + int(os.environ["DEUTERON_NUM_THREADS"]), threading.enumerate()


def returns(rng: random.Random) -> None:
    """Handlers that return, after launches of their own that take other scratch memory, more and less of it."""
    seen = []

    @deuteron.jit
    def reverse(x, out, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, tl.flip(tl.cumsum(tl.load(x + i), 0)))

    def handler(*_):
        size = 1 << rng.randrange(4, 15)
        x = np.arange(size, dtype=np.float32) % 7
        out = np.empty_like(x)
        reverse[(1,)](x, out, BLOCK=size)
        np.testing.assert_array_equal(out, np.cumsum(x)[::-1])
        right(tiles, 2)
        seen.append(size)

    for size in range(4, 15):
        reverse.warmup(np.ones(1 << size, np.float32), np.ones(1 << size, np.float32), BLOCK=1 << size, grid=(1,))
    out = np.zeros(3, np.float32)
    signal.signal(signal.SIGALRM, handler)
    for _ in range(100):
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.001, 0.1), 0.02)
        tiles[(3,)](out, 60_000)
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert out.tolist() == [2048 * 2049 / 2 * (p + 1) for p in range(3)]
        if len(seen) > 5:
            return
    raise AssertionError("no signal came")


def nested_launches(rng: random.Random) -> None:
    """What a handler launches is interrupted itself; that ends both."""
    out = np.zeros(3, np.float32)

    def inner():
        signal.signal(signal.SIGALRM, raising)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        tiles[(2,)](out, FOR_EVER)

    def raising(*_):
        raise Stop

    assert ended_by(lambda: scalars[(3,)](out, FOR_EVER), rng.uniform(0.001, 0.1), inner) < SOON
    right(tiles, 3)


def forks(rng: random.Random) -> None:
    """A child that is made in the middle of a program ends as its handler says, and so does its parent."""
    children = []

    def handler(*_):
        child = os.fork()
        if child == 0:
            try:
                right(tiles, 4)
            finally:
                os._exit(17)
        children.append(child)

    signal.signal(signal.SIGALRM, handler)
    out = np.zeros(2, np.float32)
    while not children:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.001, 0.05))
        tiles[(2,)](out, 60_000)
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert out.tolist() == [2048 * 2049 / 2, 2048 * 2049]
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [17] * len(children)


def programs_that_wait(rng: random.Random) -> None:
    out, flag = np.zeros(4, np.float32), np.ones(1, np.int32)
    waiting[(4,)](out, flag, 3)
    waiting.warmup(out, flag, FOR_EVER, grid=(4,))
    assert ended_by(lambda: waiting[(4,)](out, flag, FOR_EVER), rng.uniform(0.001, 0.1)) < SOON
    assert ended_by(lambda: waiting[(4,)](out, np.zeros(1, np.int32), 3), rng.uniform(0.001, 0.1)) < SOON
    waiting[(4,)](out, flag, 3)
    np.testing.assert_allclose(out, 2.999)


def programs_without_loops(rng: random.Random) -> None:
    """That were short the last time, so that many are handed out at once."""
    out = np.zeros(8, np.float32)
    for _ in range(3):
        early[(2_000,)](out, 3)
    assert ended_by(lambda: early[(1_000_000_000,)](out, 5), rng.uniform(0.001, 0.1)) < SOON


def other_threads(rng: random.Random) -> None:
    """A launch of another thread goes on while handlers run on the main one."""
    out, seen = np.zeros(2, np.float32), []
    signal.signal(signal.SIGALRM, lambda *_: seen.append(right(tiles, 2)))
    thread = threading.Thread(target=lambda: tiles[(2,)](out, 60_000))
    signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.001, 0.05))
    thread.start()
    thread.join()
    while not seen:
        time.sleep(0.01)
    assert out.tolist() == [2048 * 2049 / 2, 2048 * 2049]


def main() -> None:
    rng = random.Random(int(sys.argv[1]))
    if sys.argv[2:] == ["team"]:
        thread_pool().join(ctypes.CDLL("libgomp.so.1"))
    for kernel in KERNELS.values():
        right(kernel, 4)
        kernel.warmup(np.zeros(1, np.float32), FOR_EVER, grid=(1,))
    scenarios = [raises, returns, nested_launches, forks, programs_that_wait, programs_without_loops, other_threads]
    for scenario in scenarios:
        scenario(rng)
        print(scenario.__name__, flush=True)


if __name__ == "__main__":
    main()
