"""The pool: every program runs once, whoever launches meanwhile, forks, interrupts, or has no threads or memory."""

from __future__ import annotations

import ctypes
import multiprocessing
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
from deuteron.backend.cpu.launch import thread_pool as module
from deuteron.backend.cpu.launch.thread_pool import ThreadPool, thread_pool
from deuteron.backend.cpu.launch.trampoline import trampolines


@deuteron.jit
def count(visits, rounds, BLOCK: tl.constexpr):
    """Each program adds 1 to its own element after so many rounds; not atomically, for no program may run twice."""
    program = tl.program_id(0)
    value = tl.arange(0, BLOCK) + 0.0
    for _ in range(rounds):
        value = value * 0.999 + 0.5
    tl.store(visits + program, tl.load(visits + program) + (tl.sum(value) > -1.0).to(tl.int32))


def launch(num_programs: int, rounds: int) -> None:
    visits = np.zeros(num_programs + 1, np.int32)
    count[(num_programs,)](visits, rounds, BLOCK=64)
    assert visits.tolist() == [1] * num_programs + [0], (num_programs, rounds)


def launch_at_random(seed: int, seconds: float, failures: list[BaseException]) -> None:
    """Grids of any length, short and long programs, sometimes with a break in which helpers go to sleep."""
    rng = random.Random(seed)
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end and not failures:
            launch(rng.choice((1, 2, 3, 5, 8, 17, 64, 333)), rng.choice((0, 0, 1, 10, 100, 1000)))
            if rng.random() < 0.1:
                time.sleep(rng.choice((0, 1e-5, 1e-4, 1e-3)))
    except BaseException as error:
        failures.append(error)


@pytest.fixture(autouse=True)
def many_threads(monkeypatch):
    monkeypatch.setenv("DEUTERON_NUM_THREADS", "7")


@pytest.mark.parametrize("num_threads", [1, 16])
def test_threads_launch_at_random(seed, num_threads):
    failures: list[BaseException] = []
    given = [(seed + number, 1.0, failures) for number in range(num_threads)]
    threads = [threading.Thread(target=launch_at_random, args=args) for args in given]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    launch(64, 1)
    assert thread_pool().num_workers >= 6


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forks_while_others_launch(seed):
    """A child has helpers of its own, whatever the threads of its parent were doing, but for imports: Python's locks
    of modules stay taken in a child that is forked in the midst of one, so that what imports, compiles, comes before.
    """
    for rounds in (0, 1, 10, 100, 1000):
        launch(64, rounds)
    failures: list[BaseException] = []
    thread = threading.Thread(target=launch_at_random, args=(seed, 60, failures))
    thread.start()
    try:
        for number in range(8):
            receiver, sender = multiprocessing.get_context("fork").Pipe(False)

            def child(seed: int = seed + number, sender=sender) -> None:
                found: list[BaseException] = []
                launch_at_random(seed, 0.05, found)
                launch(64, 1)
                sender.send((repr(found), thread_pool().num_workers))

            process = multiprocessing.get_context("fork").Process(target=child)
            process.start()
            assert receiver.poll(30)
            assert receiver.recv() == ("[]", 6)
            process.join()
    finally:
        failures.append(KeyboardInterrupt())
        thread.join()
    assert len(failures) == 1


@pytest.fixture
def native_scratch():
    """No Python while a launch runs, in which a signal handler would be called."""
    before = thread_pool().set_scratch(trampolines().own_scratch)
    yield
    thread_pool().set_scratch(before)


@pytest.mark.parametrize("num_threads", ["1", "7"])
def test_a_signal_handler_may_launch(monkeypatch, native_scratch, num_threads):
    """It runs on the thread that waits for a launch, of which programs are running then; what it raises ends that."""
    monkeypatch.setenv("DEUTERON_NUM_THREADS", num_threads)
    launch(50, 100)
    calls: list[int] = []

    def handler(number: int, frame: object) -> None:
        launch(20, 100)
        calls.append(number)
        if len(calls) == 2:
            raise TimeoutError

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    try:
        with pytest.raises(TimeoutError):
            while True:  # on many cores one of them is over before a signal comes
                launch(200_000, 1000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    launch(50, 100)


def test_a_change_of_the_number_of_threads_is_heard(monkeypatch):
    """By launches in machine code, too."""
    for _ in range(5):
        launch(50, 100)
    at_most: list[int] = []
    start = ThreadPool.start
    monkeypatch.setattr(ThreadPool, "start", lambda pool, number: (at_most.append(number), start(pool, number)))
    monkeypatch.setenv("DEUTERON_NUM_THREADS", "3")
    launch(50, 100)
    assert at_most == [2]


def test_no_more_threads_can_be_had(monkeypatch):
    pool = ThreadPool()

    class Refused(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(module.threading, "Thread", Refused)
    pool.start(3)
    assert pool.num_workers == 1  # a record without a thread: an invitation that nobody accepts
    pool.start(3)
    assert pool.num_workers == 1


def test_no_memory_for_scratch():
    @deuteron.jit
    def reverse(x, out, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        value = tl.exp(tl.load(x + i))
        tl.store(out + i + tl.program_id(0) * BLOCK, value / tl.sum(value))

    x, out = np.zeros(1024, np.float32), np.zeros(4096, np.float32)
    refuse = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)(lambda key, size: None)
    before = thread_pool().set_scratch(ctypes.cast(refuse, ctypes.c_void_p).value)
    for _ in range(5):
        with pytest.raises(MemoryError, match="bytes that a program of kernel 'reverse' takes"):
            reverse[(4,)](x, out, BLOCK=1024)
    thread_pool().set_scratch(before)
    reverse[(4,)](x, out, BLOCK=1024)
    np.testing.assert_allclose(out, 1 / 1024)


ENDS = """
import sys, threading, time
sys.path[:0] = {path!r}
from tests.backend.cpu.launch.test_thread_pool import launch, launch_at_random
launch(64, 1000)
if {is_launching}:
    threading.Thread(target=launch_at_random, args=(1, 60, []), daemon=True).start()
time.sleep({pause})
print("ends")
"""


@pytest.mark.parametrize(("is_launching", "pause"), [(False, 0), (False, 0.01), (True, 0.1)])
def test_a_process_ends_whatever_its_helpers_do(is_launching, pause):
    code = ENDS.format(path=sys.path, is_launching=is_launching, pause=pause)
    for _ in range(2):
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=os.environ)
        assert (run.returncode, run.stdout, run.stderr) == (0, "ends\n", "")
