"""Launches whose programs assert: what is told, what still runs, and that none waits for a program that failed."""

from __future__ import annotations

import signal
import threading
import time

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.backend.metadata import KernelMetadata
from deuteron.errors import AssertionFailure


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("DEUTERON_TARGET", "cpu")


@triton.jit
def count_up(counts, bad):
    pid = tl.program_id(0) + tl.num_programs(0) * tl.program_id(1)
    tl.device_assert(pid != bad, "a bad program")
    tl.store(counts + pid, 1)


@pytest.mark.parametrize("num_threads", ["1", "4"])
def test_programs_after_a_failure_do_not_begin(monkeypatch, num_threads):
    monkeypatch.setenv("DEUTERON_NUM_THREADS", num_threads)
    counts = np.zeros(1000, np.int32)
    with pytest.raises(AssertionFailure, match=r"program \(3, 1, 0\): a bad program"):
        count_up[(500, 2)](counts, 503, debug=True)
    assert counts[503] == 0
    if num_threads == "1":
        assert counts.sum() == 503
    count_up[(500, 2)](counts, 1000, debug=True)  # nothing of it is left for the next launch
    assert counts.all()


@triton.jit
def wait_for_first(flag, bad):
    pid = tl.program_id(0)
    if pid == 0:
        tl.device_assert(bad == 0, "the first program fails")
        tl.atomic_xchg(flag, 1)
    else:
        while tl.atomic_add(flag, 0) == 0:
            pass


def test_programs_that_wait_for_one_that_failed_stop():
    wait_for_first[(4,)](np.zeros(1, np.int32), 0, debug=True)
    with pytest.raises(AssertionFailure, match="the first program fails"):
        wait_for_first[(4,)](np.zeros(1, np.int32), 1, debug=True)


def test_the_metadata_says_which_assertions_there_are():
    args = (np.zeros(1, np.int32), 0)
    kernel = count_up.warmup(*args, debug=True, check="", sanitize_overflow=False, grid=(1,))
    (assertion,) = kernel.metadata.assertions
    assert (assertion.message, assertion.shape) == ("a bad program", ())
    assert KernelMetadata.from_json(kernel.metadata.to_json()) == kernel.metadata
    assert not count_up.warmup(*args, grid=(1,)).metadata.assertions


@triton.jit
def for_long(x_ptr, n, bad, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    pid = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    if pid == bad:
        tl.device_assert(pid != bad, "bad")
    for _ in range(n):
        total = total * 0.5 + tl.load(x_ptr + i)
    tl.store(x_ptr + i, total)


@pytest.mark.parametrize("grid", [1, 3])
def test_launches_that_look_whether_to_stop_can_be_interrupted(monkeypatch, grid):
    monkeypatch.setenv("DEUTERON_NUM_THREADS", "2")
    x = np.ones(1024, np.float32)
    for_long.warmup(x, 1 << 30, -1, BLOCK=1024, debug=True, grid=(grid,))
    main = threading.main_thread().ident
    threading.Timer(0.5, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
    begin = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        for_long[(grid,)](x, 1 << 30, -1, BLOCK=1024, debug=True)
    assert time.perf_counter() - begin < 30


def test_a_failure_ends_programs_that_have_begun(monkeypatch):
    monkeypatch.setenv("DEUTERON_NUM_THREADS", "2")
    begin = time.perf_counter()
    with pytest.raises(AssertionFailure, match="bad"):
        for_long[(2,)](np.ones(1024, np.float32), 1 << 30, 1, BLOCK=1024, debug=True)
    assert time.perf_counter() - begin < 30
