"""Threads that help the one that launches a kernel.

    run_on_threads(task, 4)         task() is called here and on up to three other threads at the same time

The call returns when every call of the task has. A helper that wakes up after the caller's own call has returned
finds the job closed and does nothing, so that a short job does not wait for threads to wake. The caller wakes two
helpers, and each of these two more, so that with a hundred cores the caller starts at once as well. Helpers are
started when they are first needed and stay; they are daemons, and in a forked child they are started anew. Any number
of threads may use the pool at once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue


class _Job:
    """A task that some threads run. It is over when it is closed and no helper is active."""

    def __init__(self, task: Callable[[], None], num_helpers: int):
        self._task = task
        self._uninvited = num_helpers
        self._lock = threading.Lock()
        self._over = threading.Lock()
        self._over.acquire()
        self._active = 0
        self._is_closed = False
        self.error: BaseException | None = None

    def take_invitations(self) -> int:
        """How many helpers to wake now; they are counted as invited."""
        with self._lock:
            count = 0 if self._is_closed else min(self._uninvited, 2)
            self._uninvited -= count
            return count

    def help(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._active += 1
        try:
            self._task()
        except BaseException as error:  # a task may fail to get memory: the caller raises it
            self.error = error
        with self._lock:
            self._active -= 1
            if self._is_closed and not self._active:
                self._over.release()

    def close(self) -> None:
        """Take no more helpers, and wait for those at work, even when interrupted: they use the caller's memory."""
        with self._lock:
            self._is_closed = True
            if not self._active:
                return
        interrupt = None
        while self._active:
            try:
                self._over.acquire(timeout=1.0)
            except BaseException as error:  # raised by a signal handler while waiting
                interrupt = error
        if interrupt:
            raise interrupt


class _Pool:
    """Helpers waiting for jobs."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._lock = threading.Lock()
        self._num_helpers = 0

    def start(self, num_helpers: int) -> None:
        """See to it that there are so many helpers, if the system has threads to give."""
        if self._num_helpers >= num_helpers:
            return
        with self._lock:
            while self._num_helpers < num_helpers:
                try:
                    threading.Thread(target=self._work, name="deuteron", daemon=True).start()
                except RuntimeError:  # no more threads can be had: those there are, or the caller alone, do the work
                    return
                self._num_helpers += 1

    def invite(self, job: _Job) -> None:
        for _ in range(job.take_invitations()):
            self._jobs.put(job)

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            self.invite(job)
            job.help()
            del job  # while waiting for the next one, it would keep the caller's arrays alive


def run_on_threads(task: Callable[[], None], num_threads: int) -> None:
    """Call the task on this thread and on up to `num_threads - 1` others; raises what any of the calls raised."""
    job = _Job(task, num_threads - 1)
    _pool.start(num_threads - 1)
    try:
        _pool.invite(job)
        task()
    finally:
        job.close()
    if job.error:
        raise job.error


def _start_anew() -> None:
    global _pool
    _pool = _Pool()


_pool = _Pool()
os.register_at_fork(after_in_child=_start_anew)
