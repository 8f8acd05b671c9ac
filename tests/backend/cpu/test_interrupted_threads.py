"""Threads that run a task at the same time are over when their caller goes on, however it was interrupted."""

import signal
import threading
import time

import pytest

from deuteron.backend.cpu.together import run_together


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


@pytest.mark.parametrize("subject", ["", "kernel 'k'"])
def test_an_interrupted_caller_waits_for_the_threads(interrupts, subject):
    """They use its memory. A thread that was joined just then used to count as ended."""
    stopped, ended = threading.Event(), []

    def task():
        stopped.wait()
        time.sleep(0.3)
        ended.append(True)

    with pytest.raises(Interrupted):
        try:
            run_together(task, 3, stopped.set, subject)
        finally:
            num_ended = len(ended)
    assert num_ended == 3


def test_what_a_task_raises_is_raised():
    def task():
        raise MemoryError

    with pytest.raises(MemoryError):
        run_together(task, 2, lambda: None)
