"""Launches on the threads of an OpenMP runtime, as torch's operations are: which, and that all programs run once."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.backend.cpu.launch.pool_layout import POOL
from deuteron.backend.cpu.launch.thread_pool import thread_pool
from deuteron.backend.cpu.launch.torch_team import torch_runtime
from tests.backend.cpu.launch.test_thread_pool import launch, launch_at_random

MILLISECOND = 1_000_000
REGION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
LONG = 30_000  # rounds of programs that are worth waking threads for


class MadeUpRuntime:
    """A team whose threads come one after the other, on the thread that launches; `late` is for how long it ends after
    them, in seconds.
    """

    def __init__(self, num_threads: int = 7, late: float = 0.0):
        self.num_threads, self.late, self.is_taken, self.num_regions, self._number = num_threads, late, False, 0, 0
        number = ctypes.CFUNCTYPE(ctypes.c_int)
        self.omp_get_thread_num = number(lambda: self._number)
        self.omp_get_max_threads = number(lambda: self.num_threads)
        self.omp_in_parallel = number(lambda: self.is_taken)
        given = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
        self.GOMP_parallel = ctypes.CFUNCTYPE(None, *given)(self._run)

    def _run(self, function: int, data: int, num_threads: int, flags: int) -> None:
        assert (num_threads, flags) == (0, 0)
        self.num_regions += 1
        for number in reversed(range(self.num_threads)):
            self._number = number
            REGION(function)(data)
        time.sleep(self.late)


def word(name: str) -> int:
    return thread_pool()._words[POOL.index(name)]


def set_words(**values: int) -> None:
    thread_pool()._set(**values)


@pytest.fixture(autouse=True)
def many_threads(monkeypatch):
    monkeypatch.setenv("DEUTERON_NUM_THREADS", "7")
    launch(50, LONG)
    yield
    thread_pool().leave_team()
    set_words(team_from=0)


@pytest.fixture
def made_up():
    def join(**given) -> MadeUpRuntime:
        runtime = MadeUpRuntime(**given)
        thread_pool().join(runtime)
        set_words(team_from=0)
        return runtime

    return join


@pytest.fixture
def openmp():
    """GNU's runtime."""
    try:
        library = ctypes.CDLL("libgomp.so.1")
    except OSError:
        pytest.skip("has no libgomp")
    library.omp_set_num_threads(7)
    thread_pool().join(library)
    set_words(team_from=0)
    return library


def test_long_launches_are_in_the_team(made_up):
    runtime = made_up()
    launch(50, LONG)
    assert runtime.num_regions == 1
    launch(1, LONG)
    for _ in range(3):
        launch(2, 0)
    regions = runtime.num_regions
    launch(2, 0)  # which is known to be short by now
    assert runtime.num_regions == regions


@pytest.mark.parametrize("given", [{"num_threads": 6}, {"is_taken": True}])
def test_a_team_that_is_small_or_taken(made_up, given):
    runtime = made_up()
    for name, value in given.items():
        setattr(runtime, name, value)
    launch(50, LONG)
    assert runtime.num_regions == 0


def test_only_the_main_thread_is_in_the_team(made_up):
    """Others would each have a team of their own."""
    runtime, failures = made_up(), []
    thread = threading.Thread(target=launch_at_random, args=(1, 0.2, failures))
    thread.start()
    thread.join()
    assert (failures, runtime.num_regions) == ([], 0)


def test_where_there_are_no_more_threads(made_up):
    """The runtime would end the process."""
    runtime = made_up()
    set_words(is_full=1)
    launch(50, LONG)
    set_words(is_full=0)
    assert runtime.num_regions == 0


def test_a_rest_after_a_thread_was_late(made_up):
    """32 times as long as it was waited for."""
    runtime = made_up(late=0.01)
    begin = time.monotonic_ns()
    launch(50, LONG)
    assert word("team_from") - begin > 320 * MILLISECOND
    launch(50, LONG)
    assert runtime.num_regions == 1
    set_words(team_from=0)
    launch(50, LONG)
    assert runtime.num_regions == 2


def test_all_programs_run_once(openmp, seed):
    set_words(spin=1 << 31)  # two seconds: never rests, and yet no thread spins on in the tests after this one
    try:
        failures: list[BaseException] = []
        others = [threading.Thread(target=launch_at_random, args=(seed + number, 1.0, failures)) for number in (1, 2)]
        for thread in others:
            thread.start()
        launch_at_random(seed, 1.0, failures)
        for thread in others:
            thread.join()
    finally:
        set_words(spin=50_000)
    assert not failures


@deuteron.jit
def slow(out, n):
    total = 0.0
    for i in range(n):
        total = total * 0.999 + i
    tl.store(out + tl.program_id(0), total)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_of_a_fork_goes_on(openmp):
    """A signal handler forks in the middle of a program; the child, which has no team, goes on after the launch."""
    out = np.zeros(8, np.float32)
    slow[(8,)](out, 30_000_000)
    expected, parent, children = out.copy(), os.getpid(), []

    def handler(number: int, frame: object) -> None:
        children.append(os.fork())

    before = signal.signal(signal.SIGALRM, handler)
    try:
        while not children:
            out[:] = 0
            set_words(team_from=0)
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            slow[(8,)](out, 30_000_000)
    finally:
        if os.getpid() != parent:
            launch(50, LONG)
            os._exit(17 if out.any() and set(out) <= {0.0, *expected} else 18)
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_array_equal(out, expected)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 17


def test_signals_in_the_middle_of_programs(openmp, seed):
    """As without a team, in a process of its own."""
    script = Path(__file__).with_name("interrupted_programs.py")
    environment = {**os.environ, "OMP_NUM_THREADS": "3", "DEUTERON_NUM_THREADS": "3"}
    command = [sys.executable, script, str(seed % 2**32), "team"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert run.returncode == 0, run.stdout + run.stderr


def test_torch_is_found():
    pytest.importorskip("torch")
    runtime = torch_runtime()
    assert runtime is not None
    thread_pool().join_torch()
    assert word("parallel") == ctypes.cast(runtime.GOMP_parallel, ctypes.c_void_p).value


def test_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert torch_runtime() is None
    thread_pool().join_torch()
    assert word("parallel") == 0
