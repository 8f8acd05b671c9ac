"""Programs that wait for one another end, whatever their order and the number of threads; Ctrl-C ends them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.backend.cpu.launch import driver, together


@pytest.fixture(autouse=True)
def on_one_thread(monkeypatch):
    monkeypatch.setenv("DEUTERON_TARGET", "cpu")
    monkeypatch.setenv("DEUTERON_NUM_THREADS", "1")


@deuteron.jit
def from_last_to_first(flags, out):
    """Each program waits for the one after it."""
    p = tl.program_id(0)
    if p < tl.num_programs(0) - 1:
        while tl.load(flags + p + 1, volatile=True) == 0:
            pass
        tl.store(out + p, tl.load(out + p + 1) + 1)
    tl.debug_barrier()
    tl.atomic_xchg(flags + p, 1)


@deuteron.jit
def plain_flag(flags, out):
    if tl.program_id(0) == 0:
        while tl.load(flags) == 0:
            pass
        tl.store(out, tl.load(out + 1))
    else:
        tl.store(out + 1, 5)
        tl.atomic_xchg(flags, 1)


@deuteron.jit
def locked(flags, out, N: tl.constexpr):
    """Adds a tile under a lock."""
    while tl.atomic_cas(flags, 0, 1) != 0:
        pass
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(out + i) + i)
    tl.debug_barrier()
    tl.atomic_xchg(flags, 0)


def test_programs_wait_for_later_ones():
    flags, out = np.zeros(16, np.int32), np.zeros(16, np.int32)
    from_last_to_first[(16,)](flags, out)
    assert out.tolist() == list(range(15, -1, -1))


def test_a_flag_that_is_not_volatile():
    flags, out = np.zeros(1, np.int32), np.zeros(2, np.int32)
    plain_flag[(2,)](flags, out)
    assert out.tolist() == [5, 5]


def test_a_lock():
    flags, out = np.zeros(1, np.int32), np.zeros(64, np.int32)
    locked[(50,)](flags, out, 64)
    assert out.tolist() == [50 * i for i in range(64)]


def test_a_wait_for_the_host_warns_and_goes_on(monkeypatch):
    monkeypatch.setattr(together, "SECONDS_UNTIL_WARNING", 0.2)
    flags, out = np.zeros(1, np.int32), np.zeros(64, np.int32)
    flags[0] = 1
    threading.Timer(0.6, lambda: flags.fill(0)).start()
    with pytest.warns(RuntimeWarning, match="kernel 'locked', which waits in line"):
        locked[(1,)](flags, out, 64)
    assert out[1] == 1


def test_a_wait_for_programs_that_cannot_begin_is_told_of(monkeypatch):
    """As many run as may at a time, all of which wait for one that has not begun, until the host lets one end."""
    monkeypatch.setattr(together, "SECONDS_UNTIL_WARNING", 0.2)
    monkeypatch.setattr(driver, "MOST_TOGETHER", 4)
    flags, out = np.zeros(7, np.int32), np.zeros(7, np.int32)
    threading.Timer(0.6, lambda: flags.fill(1)).start()
    with pytest.warns(RuntimeWarning, match="on 4 threads.* The 2 that have not begun"):
        deuteron.jit(from_last_to_first.fn)[(6,)](flags, out)  # that no launch before has given more threads


FOR_EVER = """
import signal
import numpy as np, deuteron, deuteron.language as tl
signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background is started without
@deuteron.jit
def kernel(flag):
    while tl.load(flag, volatile=True) == 0:
        pass
flag = np.ones(1, np.int32)
kernel[(3,)](flag)
flag[0] = 0
print("starts", flush=True)
try:
    kernel[(3,)](flag)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_ends_what_waits_for_ever(tmp_path):
    path = tmp_path / "for_ever.py"
    path.write_text(FOR_EVER)
    with subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE, text=True, env={**os.environ}) as process:
        try:
            assert process.stdout.readline() == "starts\n"
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.5)
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=60)[0] == "interrupted\n"
        finally:
            process.kill()
