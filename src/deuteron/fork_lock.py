"""A lock that is free in a process which was forked while another thread held it.

    lock = ForkLock()
    with lock.here(): ...           that of this process: after a fork it is another one

In the child that thread is not there, and would hold the lock for ever.
"""

from __future__ import annotations

import os
import threading


class ForkLock:
    """A lock for each process that descends from the one that made it."""

    def __init__(self) -> None:
        self._of_process: dict[int, threading.Lock] = {}

    def here(self) -> threading.Lock:
        """The lock of this process; whoever holds it while it forks gives back what it took."""
        process = os.getpid()
        return self._of_process.get(process) or self._of_process.setdefault(process, threading.Lock())
