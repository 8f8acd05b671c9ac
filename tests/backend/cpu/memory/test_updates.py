"""Atomics without locks, where one thread updates: every kind, beside others that come and go, handlers and forks."""

from __future__ import annotations

import mmap
import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.backend.cpu.launch.pool_layout import POOL
from deuteron.backend.cpu.launch.thread_pool import thread_pool


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    monkeypatch.setenv("DEUTERON_NUM_THREADS", "1")
    monkeypatch.setattr(thread_pool(), "_has_forked", False)
    thread_pool()._set(updating=0)  # this process may have forked before


def pool_word(name: str) -> int:
    return thread_pool()._words[POOL.index(name)]


@deuteron.jit
def update(x, places, out, old, n, KIND: tl.constexpr, IS_READ: tl.constexpr, SCOPE: tl.constexpr, BLOCK: tl.constexpr):
    """Neighbours, elements anywhere, and one."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (i < n) & (i % 7 != 3)
    a = tl.load(x + i, mask=mask, other=0)
    place = out + n + tl.load(places + i, mask=mask, other=0)
    if KIND == "add":
        first = tl.atomic_add(out + i, a, mask=mask, scope=SCOPE)
        second = tl.atomic_add(place, a, mask=mask, sem="relaxed", scope=SCOPE)
        tl.atomic_add(out + 2 * n, 1, scope=SCOPE)
    elif KIND == "max":
        first = tl.atomic_max(out + i, a, mask=mask, scope=SCOPE)
        second = tl.atomic_max(place, a, mask=mask, scope=SCOPE)
        tl.atomic_max(out + 2 * n, 5, scope=SCOPE)
    elif KIND == "xor":
        first = tl.atomic_xor(out + i, a, mask=mask, scope=SCOPE)
        second = tl.atomic_xor(place, a, mask=mask, scope=SCOPE)
        tl.atomic_xor(out + 2 * n, 3, scope=SCOPE)
    else:
        first = tl.atomic_xchg(out + i, a, mask=mask, scope=SCOPE)
        second = tl.atomic_xchg(place, a, mask=mask, scope=SCOPE)
        tl.atomic_xchg(out + 2 * n, 3, scope=SCOPE)
    if IS_READ:
        tl.store(old + i, first, mask=mask)
        tl.store(old + n + i, second, mask=mask)


KINDS = [
    *[("add", name) for name in ("float32", "float64", "float16", "bfloat16", "int32", "int64")],
    *[("xchg", name) for name in ("float32", "int64")],
    *[(kind, name) for kind in ("max", "xor") for name in ("int32", "uint32", "int64")],
]


@pytest.mark.share(2)
@pytest.mark.parametrize("scope", ["gpu", "sys"])
@pytest.mark.parametrize("is_read", [False, True])
@pytest.mark.parametrize("kind, name", KINDS)
def test_every_kind_is_as_in_the_interpreter(monkeypatch, rng, bfloat16, kind, name, is_read, scope):
    dtype, n = np.dtype(bfloat16 if name == "bfloat16" else name), 201
    x, places = rng.integers(0, 50, n).astype(dtype), rng.integers(0, 40, n).astype(np.int32)
    first = rng.integers(0, 50, 2 * n + 1).astype(dtype)
    found = []
    for interprets in ("0", "1"):
        monkeypatch.setenv("DEUTERON_INTERPRET", interprets)
        out, old = first.copy(), np.full(2 * n, 77, dtype)
        update[(4,)](x, places, out, old, n, KIND=kind, IS_READ=is_read, SCOPE=scope, BLOCK=64)
        found.append((out, old))
    for compiled, interpreted in zip(*found, strict=True):
        np.testing.assert_array_equal(compiled, interpreted)


@deuteron.jit
def count(out, places, rounds, BLOCK: tl.constexpr):
    """Each program adds so many times to neighbours, to elements anywhere, and to one."""
    i = tl.arange(0, BLOCK)
    place = tl.load(places + i)
    for _ in range(rounds):
        tl.atomic_add(out + i, 1.0)
        tl.atomic_add(out + BLOCK + place, 1.0)
        tl.atomic_add(out + 2 * BLOCK, 1.0)


@deuteron.jit
def take_turns(out, turn):
    """A program adds once those before it have."""
    program = tl.program_id(0)
    while tl.atomic_add(turn, 0) != program:
        pass
    tl.atomic_add(out, 1.0)
    tl.atomic_add(turn, 1)


def test_launches_that_meet_lose_nothing(seed, monkeypatch):
    """Threads launch at random, some of them programs that wait, with one thread for a launch and with several."""
    places, out = np.random.default_rng(seed).integers(0, 8, 64).astype(np.int32), np.zeros(129, np.float64)
    done, failures, end = [0, 0], [], time.monotonic() + 3

    def launch_at_random(number: int) -> None:
        rng = random.Random(seed + number)
        try:
            while time.monotonic() < end:
                grid, rounds = rng.choice((1, 2, 3, 9, 40)), rng.choice((1, 1, 10, 300))
                if rng.random() < 0.05:
                    take_turns[(3,)](out[128:], np.zeros(1, np.int32))
                    results[number][1] += 3
                count[(grid,)](out, places, rounds, BLOCK=64)
                results[number][0] += grid * rounds
                if rng.random() < 0.3:
                    time.sleep(rng.choice((0, 1e-5, 1e-4)))
        except BaseException as error:
            failures.append(error)

    for num_threads in ("1", "3"):
        monkeypatch.setenv("DEUTERON_NUM_THREADS", num_threads)
        end = time.monotonic() + 2
        results = [[0, 0] for _ in range(4)]
        threads = [threading.Thread(target=launch_at_random, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        done = [done[part] + sum(result[part] for result in results) for part in range(2)]
        assert out[:64].tolist() == [done[0]] * 64
        assert out[64:72].tolist() == (np.bincount(places, minlength=8) * done[0]).tolist()
        assert out[128] == sum(done)
    assert (pool_word("updating"), pool_word("alone")) == (0, 0)


def test_a_handler_in_the_middle_of_a_launch_does_not_wait_for_it():
    """It launches itself, and waits for a thread that does."""
    places, out, launches = np.zeros(64, np.int32), np.zeros(129, np.float64), [0]

    def launch() -> None:
        count[(1,)](out, places, 10, BLOCK=64)

    def handler(*_) -> None:
        launch()
        thread = threading.Thread(target=launch)
        thread.start()
        thread.join()
        launches[0] += 2

    launch()
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    rounds, end = 10, time.monotonic() + 60
    try:
        while launches[0] < 6 and time.monotonic() < end:
            count[(1,)](out, places, 300_000, BLOCK=64)
            rounds += 300_000
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert launches[0] >= 6
    assert out[:64].tolist() == [rounds + 10 * launches[0]] * 64
    assert (pool_word("updating"), pool_word("alone")) == (0, 0)


def test_nobody_stays_counted_where_handlers_raise():
    """Beside a thread that launches, too."""

    class Stopped(Exception):
        pass

    def handler(*_) -> None:
        count[(1,)](np.zeros(129), places, 16, BLOCK=64)
        raise Stopped

    def launch_often() -> None:
        while stopped < 10:
            count[(1,)](out, places, 16, BLOCK=64)
            launches.append(16)

    places, out, launches, stopped = np.zeros(64, np.int32), np.zeros(129), [], 0
    count[(1,)](np.zeros(129), places, 16, BLOCK=64)
    before, thread = signal.signal(signal.SIGALRM, handler), threading.Thread(target=launch_often)
    thread.start()
    while stopped < 10:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            count[(1,)](np.zeros(129), places, 1 << 30, BLOCK=64)
        except Stopped:
            stopped += 1
    signal.signal(signal.SIGALRM, before)
    thread.join()
    assert out[:64].tolist() == [sum(launches)] * 64
    assert (pool_word("updating"), pool_word("alone")) == (0, 0)


def test_a_child_forked_while_a_thread_is_alone_launches():
    places, out, rounds = np.zeros(64, np.int32), np.zeros(129, np.float64), 200_000
    count[(1,)](out, places, 1, BLOCK=64)
    thread = threading.Thread(target=lambda: count[(1,)](out, places, rounds, BLOCK=64))
    thread.start()
    while not pool_word("alone") and thread.is_alive():
        time.sleep(1e-4)
    child = os.fork()
    if not child:
        own = np.zeros(129, np.float64)
        count[(5,)](own, places, 3, BLOCK=64)
        os._exit(0 if own[:64].tolist() == [15.0] * 64 else 1)
    assert os.waitpid(child, 0)[1] == 0
    thread.join()
    assert out[:64].tolist() == [rounds + 1.0] * 64


def test_processes_that_share_memory_lose_nothing():
    """A process that has forked updates with locks from then on, as the child does."""
    out, places, rounds = np.frombuffer(mmap.mmap(-1, 4096), np.float64)[:129], np.zeros(64, np.int32), 8_000

    def launch_often() -> None:
        for _ in range(40):
            count[(1,)](out, places, rounds, BLOCK=64)

    count[(1,)](np.zeros(129), places, rounds, BLOCK=64)
    child = os.fork()
    launch_often()
    if not child:
        os._exit(0)
    assert pool_word("updating") == 1
    assert os.waitpid(child, 0)[1] == 0
    assert out[:64].tolist() == [2.0 * 40 * rounds] * 64


def test_a_process_of_multiprocessing_is_never_alone(tmp_path):
    script = tmp_path / "several.py"
    script.write_text(
        "import multiprocessing\n"
        "def begin():\n"
        "    from deuteron.backend.cpu.launch.pool_layout import POOL\n"
        "    from deuteron.backend.cpu.launch.thread_pool import thread_pool\n"
        "    assert thread_pool()._words[POOL.index('updating')] > 1\n"
        "if __name__ == '__main__':\n"
        "    process = multiprocessing.get_context('spawn').Process(target=begin)\n"
        "    process.start()\n"
        "    process.join()\n"
        "    raise SystemExit(process.exitcode)\n"
    )
    subprocess.run([sys.executable, script], check=True, timeout=120)


def test_nobody_waits_for_a_kernel_that_does_not_look():
    """It takes seconds beside one that could give way, and has locks then."""
    places, out, own = np.zeros(64, np.int32), np.zeros(129, np.float64), np.zeros(129, np.float64)
    for number, is_interruptible in ((16, False), (16, None)):
        count[(1,)](own, places, number, BLOCK=64, interruptible=is_interruptible)
    thread = threading.Thread(target=lambda: count[(1,)](out, places, 160_000, BLOCK=64, interruptible=False))
    thread.start()
    while not pool_word("updating") and thread.is_alive():
        time.sleep(1e-4)
    assert not pool_word("alone")
    count[(1,)](own, places, 16, BLOCK=64)
    assert thread.is_alive()
    thread.join()
    assert out[:64].tolist() == [160_000.0] * 64


@pytest.mark.parametrize("sem", ["relaxed", "acquire", "release", "acq_rel"])
def test_plain_updates_keep_their_order(sem):
    @deuteron.jit
    def tell(data, flag, SEM: tl.constexpr):
        tl.store(data, 1)
        tl.atomic_xchg(flag, 1, sem=SEM)

    compiled = tell[(1,)](np.zeros(1, np.int32), np.zeros(1, np.int32), SEM=sem)
    fences = {fence for fence in ("release", "acquire") if f"fence {fence}" in compiled.asm["llir"]}
    assert fences == {"relaxed": set(), "acq_rel": {"acquire", "release"}}.get(sem, {sem})


@deuteron.jit
def add_products(x, y, places, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    product = tl.load(x + i, mask=i < n, other=0.0) * tl.load(y + i, mask=i < n, other=0.0)
    tl.atomic_add(out + tl.load(places + i, mask=i < n, other=0), product, mask=i < n)
    tl.atomic_add(out + n + i, product, mask=i < n)


def test_products_are_rounded_before_they_are_added(monkeypatch, rng):
    """As where another thread updates, too: what a launch gives does not depend on that."""
    n, found = 500, []
    x, y = (rng.random(n, np.float32) for _ in range(2))
    places, first = rng.integers(0, n, n).astype(np.int32), rng.random(2 * n, np.float32)
    for interprets in ("0", "1"):
        monkeypatch.setenv("DEUTERON_INTERPRET", interprets)
        found.append(first.copy())
        add_products[(8,)](x, y, places, found[-1], n, BLOCK=64)
    np.testing.assert_array_equal(*found)
