"""Compiles several kernels in processes of their own, into the cache, from where launches take them.

    for index, error in compile_ahead([Job(backend, source, target, options), ...], processes=4):
        ...                             job `index` is in the cache, or `error` says why not

    this process:  source -> tile IR as text         a worker:  -> all other stages -> this process: the cache

The frontend runs here, so that a worker imports nothing of the user's program, which may not be importable, nor guarded
by `if __name__ == "__main__":`. A worker that ends before its time, as LLVM may do, fails one kernel. Where none can
be started, or nothing can be cached, nothing is compiled ahead.
"""

from __future__ import annotations

import contextlib
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from deuteron.compiler.cache import Entry
from deuteron.compiler.job import Job
from deuteron.compiler.worker import READY, Begun
from deuteron.errors import CompilerDied, DeuteronError
from deuteron.settings import settings

START_SECONDS = 1.0  # of a worker, until it compiles: measured, 0.8 s of which are imports


def can_compile_ahead() -> bool:
    """Whether what a worker compiles is what a compile in this process would give, and is found in the cache; and
    whether anything may be compiled."""
    is_looked_into = settings.dump_dir is not None or settings.override_dir is not None
    is_cached = not settings.always_compile and not settings.strict
    return settings.compile_processes > 1 and is_cached and not is_looked_into


def is_worth_it(seconds: float, count: int, processes: int) -> bool:
    """Whether workers save more than they cost for so many kernels that take so long each."""
    return seconds * count * (1 - 1 / max(1, min(count, processes))) > START_SECONDS


def compile_ahead(jobs: Sequence[Job], processes: int) -> Iterator[tuple[int, DeuteronError | None]]:
    """The outcome of every job that was compiled, as it is there."""
    pool = _Pool(min(processes, len(jobs)))
    try:
        for index, job in enumerate(jobs):
            pool.add(index, job)
            yield from pool.finished(jobs)
        yield from pool.rest(jobs)
    finally:
        pool.stop()


class _Pool:
    """Workers, each with a thread that waits for it. Outcomes: an Entry, a DeuteronError, or None for no worker."""

    def __init__(self, count: int):
        self._tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._outcomes: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._num_missing = 0
        self._workers = [Worker() for _ in range(count)]
        self._is_stopped = False
        self._threads = [threading.Thread(target=self._serve, args=(w,), daemon=True) for w in self._workers]
        for thread in self._threads:
            thread.start()

    def add(self, index: int, job: Job) -> None:
        """Lower a job, and give it to whichever worker is free."""
        self._num_missing += 1
        try:
            self._tasks.put((index, Begun(*job.lower())))
        except DeuteronError as error:
            self._outcomes.put((index, error))

    def finished(self, jobs: Sequence[Job]) -> Iterator[tuple[int, DeuteronError | None]]:
        """The outcomes that are there."""
        while not self._outcomes.empty():
            yield from self._taken(jobs)

    def rest(self, jobs: Sequence[Job]) -> Iterator[tuple[int, DeuteronError | None]]:
        """All others, as they come."""
        while self._num_missing:
            yield from self._taken(jobs)

    def _taken(self, jobs: Sequence[Job]) -> Iterator[tuple[int, DeuteronError | None]]:
        index, outcome = self._outcomes.get()
        self._num_missing -= 1
        if isinstance(outcome, Entry):
            jobs[index].keep(outcome)
            yield index, None
        elif outcome is not None:
            yield index, outcome

    def _serve(self, worker: Worker) -> None:
        while (task := self._tasks.get()) is not None:
            index, begun = task
            self._outcomes.put((index, None if self._is_stopped else worker.compile(begun)))
        worker.close()

    def stop(self) -> None:
        """End the workers, whatever they are at."""
        self._is_stopped = True
        for _ in self._threads:
            self._tasks.put(None)
        for worker in self._workers:
            worker.stop()


class Worker:
    """A process; one that has died is started again. It is of a session of its own: Ctrl-C is for the parent."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def compile(self, begun: Begun) -> Entry | DeuteronError | None:
        """None where no process can be started."""
        process = self._process or self._started()
        if process is None:
            return None
        try:
            pickle.dump(begun, process.stdin)
            process.stdin.flush()
            return pickle.load(process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError, ValueError):
            self._process = None
            _close(process)
            return CompilerDied(f"the compiler's process ended with {_ending(process.wait())}")

    def _started(self) -> subprocess.Popen[bytes] | None:
        code = f"import sys; sys.path[:] = {sys.path!r}; from deuteron.compiler.worker import serve; serve()"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        try:
            process = subprocess.Popen([_interpreter(), "-c", code], **pipes, start_new_session=True)
        except (OSError, TypeError, ValueError):
            return None
        self._process = process
        is_ready = _says_ready(process)
        if self._is_stopped or not is_ready:
            self._end()
        if is_ready:
            return process
        self.close()
        self._process = None
        return None

    def stop(self) -> None:
        """End the process, from any thread."""
        self._is_stopped = True
        self._end()

    def close(self) -> None:
        """Close the pipes of a stopped process, on the thread that compiles: another would wait for what it reads."""
        if self._process is not None:
            _close(self._process)

    def _end(self) -> None:
        if (process := self._process) is not None:
            process.kill()
            process.wait()


def _interpreter() -> str | None:
    """Python's; None of a program that is frozen, which would be started itself, and start others in turn."""
    return None if getattr(sys, "frozen", False) else sys.executable


def _says_ready(process: subprocess.Popen[bytes]) -> bool:
    try:
        return pickle.load(process.stdout) == READY
    except (OSError, EOFError, ValueError, pickle.UnpicklingError):
        return False


def _close(process: subprocess.Popen[bytes]) -> None:
    """The pipes of a process that has ended, or will: what was not sent to it is lost."""
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            pipe.close()


def _ending(status: int) -> str:
    """The signal that ended a process, or its exit status."""
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"status {status}"
