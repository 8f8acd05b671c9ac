"""Threads that run a task at the same time are over when their caller goes on, however it was interrupted."""

import signal
import threading
import time

import pytest

from deuteron.backend.cpu.together import Waiting, run_together

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
    stopped, ended = threading.Event(), []

    def task():
        stopped.wait()
        time.sleep(0.3)
        ended.append(True)

    with pytest.raises(Interrupted):
        try:
            run_together(task, 3, stopped.set, WAITING)
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
