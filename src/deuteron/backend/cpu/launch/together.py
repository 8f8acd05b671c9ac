"""Threads for programs that may wait for one another: as many run at the same time as it takes.

    run_together(task, 2, stop, Waiting("kernel 'barrier'", 64, num_left))

on two threads, or more while none of the 64 programs that is left begins.

While a program waits, its thread goes on running machine code; the system gives the others their share. Most programs
wait for earlier ones, which have ended or run already, so that there are as many threads as there would be for others,
until none has begun a program for a while. The caller only waits, so that Ctrl-C reaches it; `stop()` then makes the
programs leave their loops. A launch that takes long is told of once, since one whose programs wait for what none of
them writes never ends.
"""

from __future__ import annotations

import queue
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

# As many programs as wait at a time; a GPU has room for some 2,000 small ones.
MOST_TOGETHER = 1024
SECONDS_UNTIL_WARNING = 10.0  # of a launch that waits; not measured
_SECONDS_WITHOUT_BEGIN = 0.005  # until there are twice as many threads; not measured
_SECONDS_BETWEEN_LOOKS = 0.001  # after an interrupt


@dataclass(frozen=True)
class Waiting:
    """Programs that wait: of what, for messages; the most threads for them; how many programs have not begun."""

    subject: str
    most: int
    num_left: Callable[[], int]


def run_together(task: Callable[[], None], num_threads: int, stop: Callable[[], None], waiting: Waiting) -> int:
    """Call the task on so many threads, or as many as there are to be had; raises what any of the calls raised.

    A call returns when there is nothing left to do for it, and a call that begins then does nothing. Returns how many
    threads there were in the end.
    """
    calls = _Calls(task)
    try:
        calls.start(num_threads)
        _wait(calls, waiting)
    except BaseException:  # Ctrl-C: the threads use the caller's memory
        calls.end(stop)
        raise
    interrupt = calls.end()
    if interrupt is not None:
        raise interrupt
    if calls.errors:
        raise calls.errors[0]
    return calls.num_started


class _Calls:
    """Calls of a task, each on a thread of its own.

    They are counted, for threads cannot be asked: one that Ctrl-C comes to while it is joined counts as ended from then
    on (CPython up to 3.12), though it runs. And they count themselves, for who starts a thread may be interrupted.

    The caller waits at a queue, which is written in C: an interrupt in the midst of waiting for a `threading.Event` may
    leave its lock taken, so that the thread that sets the event waits without end, and the caller for that thread.
    """

    def __init__(self, task: Callable[[], None]):
        self._task = task
        self._lock = threading.Lock()
        self._ends: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._is_closed = False
        self.num_started = self.num_running = 0
        self.errors: list[BaseException] = []

    def start(self, num_threads: int) -> None:
        """Begin so many calls, or those that there are threads for; raises RuntimeError where there is none at all."""
        for _ in range(num_threads):
            try:
                threading.Thread(target=self._run, name=f"deuteron {self.num_started}", daemon=True).start()
            except RuntimeError:  # no more threads can be had
                if not self.num_started:
                    raise
                return
            self.num_started += 1

    def _run(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            self.num_running += 1
        try:
            self._task()
        except BaseException as error:  # a task may fail to get memory: the caller raises it
            self.errors.append(error)
        with self._lock:
            self.num_running -= 1
            if not self.num_running:
                self._ends.put(None)

    def wait(self, timeout: float) -> bool:
        """Whether they are over, after so many seconds at most."""
        try:
            self._ends.get(timeout=timeout)
        except queue.Empty:
            return False
        return True

    def end(self, stop: Callable[[], None] = lambda: None) -> BaseException | None:
        """Begin no more, and wait until all are over, through any number of interrupts; returns the first of these."""
        interrupt = None
        while True:
            try:
                stop()
                with self._lock:
                    self._is_closed = True
                    if not self.num_running:
                        return interrupt
                time.sleep(_SECONDS_BETWEEN_LOOKS)
            except BaseException as error:  # raised by a signal handler
                interrupt = interrupt or error


def _wait(calls: _Calls, waiting: Waiting) -> None:
    is_told, begin, left = False, time.monotonic(), -1
    while not calls.wait(_SECONDS_WITHOUT_BEGIN):
        before, left = left, waiting.num_left()
        if left == before:
            calls.start(min(calls.num_started, waiting.most - calls.num_started, left))
        if not is_told and time.monotonic() - begin > SECONDS_UNTIL_WARNING:
            is_told = True
            warnings.warn(_warning(calls, left, waiting), RuntimeWarning, stacklevel=5)


def _warning(calls: _Calls, left: int, waiting: Waiting) -> str:
    is_full = left and calls.num_started >= waiting.most
    later = f" The {left} that have not begun do so where one of these ends." if is_full else ""
    return (
        f"{waiting.subject} runs since {SECONDS_UNTIL_WARNING:g} s, on {calls.num_running} threads. Its programs wait "
        f"in a loop for what others write; if none does, it never ends.{later} Ctrl-C stops it, and "
        "DEUTERON_INTERPRET=1 finds such waits."
    )
