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


def run_together(task: Callable[[], None], num_threads: int, stop: Callable[[], None], subject: str = "") -> None:
    """Call the task on so many threads, or as many as there are to be had; raises what any of the calls raised.

    Without a subject a launch that takes long is not told of: its programs do not wait.
    """
    errors: list[BaseException] = []

    def run() -> None:
        try:
            task()
        except BaseException as error:  # a task may fail to get memory: the caller raises it
            errors.append(error)

    threads = _start(run, num_threads)
    try:
        _wait(threads, subject)
    except BaseException:  # Ctrl-C: the threads use the caller's memory
        stop()
        for thread in threads:
            thread.join()
        raise
    if errors:
        raise errors[0]


def _start(run: Callable[[], None], num_threads: int) -> list[threading.Thread]:
    threads: list[threading.Thread] = []
    for number in range(num_threads):
        thread = threading.Thread(target=run, name=f"deuteron {number}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no more threads can be had
            if not threads:
                raise
            break
        threads.append(thread)
    return threads


def _wait(threads: list[threading.Thread], subject: str) -> None:
    warning_at = time.monotonic() + SECONDS_UNTIL_WARNING if subject else 0.0
    for thread in threads:
        while thread.is_alive():
            thread.join(timeout=max(warning_at - time.monotonic(), 0.01) if warning_at else None)
            if warning_at and time.monotonic() >= warning_at:
                warning_at = 0
                warnings.warn(_warning(sum(t.is_alive() for t in threads), subject), RuntimeWarning, stacklevel=5)


def _warning(num_running: int, subject: str) -> str:
    return (
        f"{subject} runs since {SECONDS_UNTIL_WARNING:g} s, on {num_running} threads. Its programs wait in a loop for "
        "what others write; if none does, it never ends. Ctrl-C stops it, and DEUTERON_INTERPRET=1 finds such waits."
    )
