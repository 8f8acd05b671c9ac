"""The named barriers of a block: threads that have arrived, threads that wait, and the completed rounds.

barrier = wave.barrier(slot, 1)
round = barrier.arrive(threads, expected)      the round the threads belong to
barrier.round > round                          it is complete
"""

from __future__ import annotations

import numpy as np

from deuteron.emulator.faults import Fault


class Barrier:
    """One of the 16 barriers of a block. `votes` collects what `bar.red` reduces, or whether an arrival releases."""

    def __init__(self) -> None:
        self.round = 0
        self.expected: int | None = None
        self.arrived: list[np.ndarray] = []
        self.waiting: list[np.ndarray] = []
        self.votes: list[np.ndarray] = []
        self.results: dict[int, np.ndarray] = {}

    @property
    def num_arrived(self) -> int:
        return sum(len(threads) for threads in self.arrived)

    def arrive(self, threads: np.ndarray, expected: int | None, waits: bool, votes: np.ndarray | None = None) -> int:
        """Threads come to the barrier; `expected` None: all of the block that have not exited."""
        if self.arrived and expected != self.expected:
            message = f"a barrier is used with {expected or 'all'} and with {self.expected or 'all'} threads at once"
            raise Fault("barrier", message, threads)
        twice = np.isin(threads, np.concatenate(self.arrived)) if self.arrived else np.zeros(1, bool)
        if twice.any():
            raise Fault("barrier", "arrives at a barrier a second time before it completed", threads[twice])
        self.expected = expected
        self.arrived.append(threads)
        if waits:
            self.waiting.append(threads)
        if votes is not None:
            self.votes.append(votes)
        return self.round

    def complete(self, num_alive: int) -> tuple[np.ndarray, np.ndarray] | None:
        """The threads that arrived and those of them that wait, if the round is complete now; the next one begins."""
        expected = num_alive if self.expected is None else self.expected
        if not self.arrived or self.num_arrived < expected:
            return None
        threads = np.concatenate(self.arrived)
        waiting = np.concatenate(self.waiting) if self.waiting else threads[:0]
        if self.votes:
            self.results[self.round] = np.concatenate(self.votes)
        self.arrived, self.waiting, self.votes = [], [], []
        self.round += 1
        return threads, waiting
