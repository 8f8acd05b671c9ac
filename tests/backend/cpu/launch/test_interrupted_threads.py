"""Threads that run a task at the same time are over when their caller goes on, however it was interrupted."""

import signal
import subprocess
import sys
import threading
import time

import pytest

from deuteron.backend.cpu.launch.together import Waiting, run_together

WAITING = Waiting("kernel 'k'", 3, lambda: 0)


class Interrupted(Exception):
    pass


@pytest.fixture
def interrupts():
    """Interrupts this thread after 0.1 s, and twice more soon after."""
    times = iter(range(3))

    def interrupt(*_):
        if next(times, None) is not None:
            raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.05)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_an_interrupted_caller_waits_for_the_threads(interrupts):
    """They use its memory. A thread that was joined just then used to count as ended."""
    stopped, ended = [], []

    def task():
        while not stopped:
            time.sleep(0.001)
        time.sleep(0.3)
        ended.append(True)

    with pytest.raises(Interrupted):
        try:
            run_together(task, 3, lambda: stopped.append(True), WAITING)
        finally:
            num_ended = len(ended)
    assert num_ended == 3


def test_what_a_task_raises_is_raised():
    def task():
        raise MemoryError

    with pytest.raises(MemoryError):
        run_together(task, 2, lambda: None, WAITING)


def test_an_interrupt_while_threads_are_started():
    """Those that were not started are not waited for; this one used to be waited for without end."""
    stopped, ended = threading.Event(), []

    class Thread(threading.Thread):
        def start(self):
            if self.name == "deuteron 2":
                raise Interrupted
            super().start()

    def task():
        stopped.wait()
        ended.append(True)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(threading, "Thread", Thread)
        run_together(task, 5, stopped.set, WAITING)
    assert len(ended) == 2


def test_there_are_more_threads_only_while_no_program_begins():
    """The last of 20 programs lets the others go on; a single thread would do for those that wait for none."""
    left, go_on, lock = [20], threading.Event(), threading.Lock()

    def task():
        while True:
            with lock:
                if not left[0]:
                    return
                left[0] -= 1
                is_last = not left[0]
            if is_last or not waits:
                go_on.set()
            assert go_on.wait(60)

    waits = False
    assert run_together(task, 1, go_on.set, Waiting("kernel 'k'", 20, lambda: left[0])) == 1
    left, waits = [20], True
    go_on.clear()
    assert run_together(task, 1, go_on.set, Waiting("kernel 'k'", 20, lambda: left[0])) == 20


EVERYWHERE = """
import sys, time
from deuteron.backend.cpu.launch import together

class Interrupted(Exception):
    pass

def is_waiting(frame):
    return frame is not None and (frame.f_code is together._wait.__code__ or is_waiting(frame.f_back))

def interrupted_at(number):
    num_seen, ended = 0, []

    def trace(frame, event, _):
        nonlocal num_seen
        frame.f_trace_opcodes = True
        num_seen += event == "opcode"
        if num_seen == number:
            raise Interrupted
        return trace

    def task():
        time.sleep(0.01)
        ended.append(True)

    sys.settrace(lambda frame, *_: trace(frame, *_) if is_waiting(frame) else None)
    try:
        together.run_together(task, 2, lambda: None, together.Waiting("kernel 'k'", 2, lambda: 0))
    except Interrupted:
        return len(ended) == 2
    finally:
        sys.settrace(None)
    print(number)
    return None

number = 1
while (is_right := interrupted_at(number)) is not None:
    assert is_right, number
    number += 1
"""


def test_an_interrupt_at_any_instruction_of_the_wait():
    """One in the midst of waiting for an event left the event's lock taken: the launch never ended."""
    found = subprocess.run([sys.executable, "-c", EVERYWHERE], capture_output=True, text=True, timeout=120)
    assert found.returncode == 0 and int(found.stdout) > 10, found.stderr
