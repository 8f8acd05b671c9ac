"""Asynchronous operations that a thread commits in groups and waits for: cp.async, bulk stores, wgmma.

    groups.add(threads, operation)       into the group that each thread has open
    groups.commit(threads)
    groups.wait(threads, 1)              complete all but the thread's last group

`Operation.complete(chosen)` is called with the positions of its threads that have waited.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(eq=False)
class Pending:
    """One instruction in flight: its threads that have not waited, the group of each, what to do at the wait."""

    threads: np.ndarray
    groups: np.ndarray
    positions: np.ndarray
    complete: Callable[[np.ndarray], None]


class Groups:
    """`committed[t]` is the number of groups that thread t has committed."""

    def __init__(self, num_threads: int):
        self.committed = np.zeros(num_threads, np.int64)
        self.pending: list[Pending] = []

    def add(self, threads: np.ndarray, complete: Callable[[np.ndarray], None]) -> None:
        self.pending.append(Pending(threads, self.committed[threads].copy(), np.arange(len(threads)), complete))

    def commit(self, threads: np.ndarray) -> None:
        self.committed[threads] += 1

    def wait(self, threads: np.ndarray, keep: int) -> None:
        """Complete for these threads all groups but the last `keep`; -1: what is not committed, too."""
        if not self.pending:
            return
        last = np.full(len(self.committed), -1, np.int64)
        last[threads] = self.committed[threads] - keep - 1
        self._complete(lambda pending: pending.groups <= last[pending.threads])

    def finish(self) -> None:
        self._complete(lambda pending: np.ones(len(pending.threads), bool))

    def _complete(self, choose: Callable[[Pending], np.ndarray]) -> None:
        for pending in self.pending:
            chosen = choose(pending)
            if chosen.any():
                pending.complete(pending.positions[chosen])
                pending.threads, pending.groups = pending.threads[~chosen], pending.groups[~chosen]
                pending.positions = pending.positions[~chosen]
        self.pending = [pending for pending in self.pending if len(pending.threads)]
