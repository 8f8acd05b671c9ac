"""Threads for programs that may wait for one another: they run at the same time, and their caller can be interrupted.

    run_together(task, 8, stop, "kernel 'barrier' (line 12)")

While a program waits, its thread goes on running machine code; the system gives the others their share. The caller
only waits, so that Ctrl-C reaches it; `stop()` then makes the programs leave their loops. A launch that takes long is
told of once, since one whose programs wait for what none of them writes never ends.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable

# As many programs as wait at a time; a GPU has room for some 2,000 small ones.
MOST_TOGETHER = 1024
SECONDS_UNTIL_WARNING = 10.0  # of a launch that waits; not measured
_SECONDS_BETWEEN_LOOKS = 0.001  # after an interrupt


def run_together(task: Callable[[], None], num_threads: int, stop: Callable[[], None], subject: str = "") -> None:
    """Call the task on so many threads, or as many as there are to be had; raises what any of the calls raised.

    Without a subject a launch that takes long is not told of: its programs do not wait.
    """
    calls = _Calls(task)
    try:
        calls.start(num_threads)
        _wait(calls, subject)
    except BaseException:  # Ctrl-C: the threads use the caller's memory
        stop()
        calls.wait_whatever_comes()
        raise
    if calls.errors:
        raise calls.errors[0]


class _Calls:
    """Calls of a task, each on a thread of its own.

    They are counted, for threads cannot be asked: one that Ctrl-C comes to while it is joined counts as ended from then
    on (CPython up to 3.12), though it runs.
    """

    def __init__(self, task: Callable[[], None]):
        self._task = task
        self._lock = threading.Lock()
        self._are_over = threading.Event()
        self.num_running = 0
        self.errors: list[BaseException] = []

    def start(self, num_threads: int) -> None:
        """Begin so many calls, or those that there are threads for; raises RuntimeError where there is none."""
        self.num_running = num_threads
        for number in range(num_threads):
            try:
                threading.Thread(target=self._run, name=f"deuteron {number}", daemon=True).start()
            except RuntimeError:  # no more threads can be had
                self._ended(num_threads - number)
                if not number:
                    raise
                return

    def _run(self) -> None:
        try:
            self._task()
        except BaseException as error:  # a task may fail to get memory: the caller raises it
            self.errors.append(error)
        finally:
            self._ended(1)

    def _ended(self, count: int) -> None:
        with self._lock:
            self.num_running -= count
            if not self.num_running:
                self._are_over.set()

    def wait(self, timeout: float | None) -> bool:
        """Whether they are over, after so many seconds at most."""
        return self._are_over.wait(timeout)

    def wait_whatever_comes(self) -> None:
        """Until they are over, through any number of interrupts."""
        while self.num_running:
            try:
                time.sleep(_SECONDS_BETWEEN_LOOKS)
            except BaseException:  # raised by a signal handler: the first interrupt is raised when they are over
                continue


def _wait(calls: _Calls, subject: str) -> None:
    if not subject or calls.wait(SECONDS_UNTIL_WARNING):
        calls.wait(None)
        return
    warnings.warn(_warning(calls.num_running, subject), RuntimeWarning, stacklevel=5)
    calls.wait(None)


def _warning(num_running: int, subject: str) -> str:
    return (
        f"{subject} runs since {SECONDS_UNTIL_WARNING:g} s, on {num_running} threads. Its programs wait in a loop for "
        "what others write; if none does, it never ends. Ctrl-C stops it, and DEUTERON_INTERPRET=1 finds such waits."
    )
