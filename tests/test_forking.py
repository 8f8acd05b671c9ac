"""What is in the middle of something while another thread forks the process."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from deuteron import forking
from deuteron.forking import undivided

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def forked(child) -> int:
    """The exit status of a process that runs `child()`, which has ten seconds."""
    process = os.fork()
    if process == 0:
        signal.alarm(10)
        os._exit(child())
    return os.waitpid(process, 0)[1]


def test_a_fork_waits_for_other_threads():
    lock, begun = threading.Lock(), threading.Event()

    def work():
        with undivided(), undivided(), lock:
            begun.set()
            time.sleep(0.2)

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    assert forked(lambda: 0 if lock.acquire(timeout=5) else 1) == 0
    thread.join()
    assert not forking._depths and not forking._forking


def test_it_goes_ahead_where_that_takes_long(monkeypatch):
    monkeypatch.setattr(forking, "LONGEST_WAIT", 0.05)
    begun, goes_on = threading.Event(), threading.Event()

    def work():
        with undivided():
            begun.set()
            goes_on.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    assert forked(lambda: len(forking._depths)) == 0
    goes_on.set()
    thread.join()


def test_who_would_begin_waits_for_the_fork():
    begun = threading.Event()

    def work():
        with undivided():
            begun.set()

    forking._before_fork()
    thread = threading.Thread(target=work)
    thread.start()
    assert not begun.wait(0.1)
    with undivided():  # but not the thread that forks
        pass
    forking._after_in_parent()
    assert begun.wait(10)
    thread.join()


def test_a_thread_forks_in_the_middle_of_its_own_work():
    """Another one may wait for it, and is not waited for; in the child it is where it was."""
    begun, goes_on = threading.Event(), threading.Event()

    def work():
        with undivided():
            begun.set()
            goes_on.wait(10)

    thread = threading.Thread(target=work)
    with undivided():
        thread.start()
        begun.wait()
        before = time.monotonic()
        assert forked(lambda: 0 if list(forking._depths) == [threading.get_ident()] else 1) == 0
        assert time.monotonic() - before < 5
        goes_on.set()
    thread.join()
    assert not forking._depths


PROGRAM = """
import os, signal, threading, time
import numpy as np, deuteron, deuteron.language as tl

@deuteron.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)

def work():
    for block in (16, 32, 64, 128):
        x, y = np.arange(block, dtype="f4"), np.zeros(block, "f4")
        copy[(1,)](x, y, block - 1, BLOCK=block)
        assert (x[:-1] == y[:-1]).all()

def child():
    signal.alarm(50)
    work()
    return 0

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
children = []
for _ in range(4):
    time.sleep(0.1)
    children.append(os.fork())
    if not children[-1]:
        os._exit(child())
for thread in threads:
    thread.join()
print([os.waitpid(child, 0)[1] for child in children])
"""


def test_children_of_a_process_whose_threads_compile(tmp_path):
    """Imports, compiles and loads for the first time, under locks of Python, of llvmlite and of ours."""
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "DEUTERON_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "program.py"]
    assert subprocess.check_output(command, cwd=tmp_path, env=environment, timeout=100) == b"[0, 0, 0, 0]\n"


IMPORTS = """
import sys, threading
import numpy
import deuteron, deuteron.language as tl
from deuteron import forking

@deuteron.jit
def add(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)

class Finder:
    def find_spec(self, name, path=None, target=None):
        if threading.get_ident() not in forking._depths:
            print(name)

sys.meta_path.insert(0, Finder())
thread = threading.Thread(target=lambda: add[(1,)](numpy.zeros(16, "f4"), 15, BLOCK=16))
thread.start()
thread.join()
"""


@pytest.mark.parametrize("how", ["DEUTERON_INTERPRET", "DEUTERON_EMULATE", "DEUTERON_SYNC"])
def test_no_launch_imports_while_others_may_fork(tmp_path, how):
    """An import that is cut in two leaves its lock taken in the child."""
    (tmp_path / "program.py").write_text(IMPORTS)
    environment = {**os.environ, "DEUTERON_CACHE_DIR": str(tmp_path / "cache"), how: "1"}
    command = [sys.executable, "program.py"]
    assert subprocess.check_output(command, cwd=tmp_path, env=environment, timeout=100) == b""
