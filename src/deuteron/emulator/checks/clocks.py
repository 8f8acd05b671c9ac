"""Vector clocks: what each thread of a block (or cluster) knows to have happened.

    clocks.known[unit, thread, other]      what `other` did up to this time is ordered before what `thread` does next

A thread's own time goes on whenever it releases something: arrives at a barrier or an mbarrier. It begins after BEGUN:
who knows of the time BEGUN knows that the thread runs, but of nothing that it did. Each warp has one more column, for
the asynchronous operations that it issued. `fenced` is the same for the async proxy: the generic writes that a
`fence.proxy.async` made visible to it.
"""

from __future__ import annotations

import numpy as np

BEGUN = 1


class Clocks:
    """`unit_size`: the threads of a block, or of a whole cluster. Columns: threads, then warps (asynchronous)."""

    def __init__(self, num_units: int, unit_size: int, warp_of_thread: np.ndarray):
        self.unit_size = unit_size
        self.warp_of_thread = warp_of_thread
        self.num_warps = int(warp_of_thread.max()) + 1
        self.num_columns = unit_size + self.num_warps
        self.known = np.zeros((num_units, unit_size, self.num_columns), np.int32)
        own = np.arange(unit_size)
        self.known[:, own, own] = BEGUN + 1
        self.announced = np.full((num_units, unit_size), BEGUN, np.int32)
        self.fenced = np.zeros_like(self.known)
        self.engine = np.zeros((num_units, self.num_warps), np.int32)

    def split(self, threads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The unit and the number within the unit."""
        return np.divmod(threads, self.unit_size)

    def now(self, threads: np.ndarray) -> np.ndarray:
        unit, local = self.split(threads)
        return self.known[unit, local, local]

    def synchronise(self, arrived: np.ndarray, waiting: np.ndarray) -> None:
        """The threads that waited, of one unit, know what any that arrived knew."""
        unit, local = int(arrived[0]) // self.unit_size, arrived % self.unit_size
        for table in (self.known, self.fenced):
            together = table[unit, local].max(0)
            table[unit, waiting % self.unit_size] = together
        self.advance(arrived)

    def meet(self, arrived: np.ndarray, waiting: np.ndarray) -> None:
        """The threads that waited know that those that arrived have begun, and the mbarriers that they announced: what
        a relaxed barrier of a cluster says."""
        unit, local = int(arrived[0]) // self.unit_size, arrived % self.unit_size
        row = np.zeros(self.num_columns, np.int32)
        row[local] = self.announced[unit, local]
        own = waiting % self.unit_size
        self.known[unit, own] = np.maximum(self.known[unit, own], row)

    def announce(self, threads: np.ndarray) -> None:
        """`fence.mbarrier_init`: others that meet these threads know what they did up to now."""
        unit, local = self.split(threads)
        self.announced[unit, local] = self.known[unit, local, local]

    def synchronise_warps(self, threads: np.ndarray) -> None:
        """The same within each warp."""
        unit, local = self.split(threads)
        keys = unit * self.num_warps + self.warp_of_thread[local]
        order = np.argsort(keys, kind="stable")
        starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
        sizes = np.diff(np.append(starts, len(order)))
        unit, local = unit[order], local[order]
        for table in (self.known, self.fenced):
            per_warp = np.maximum.reduceat(table[unit, local], starts, axis=0)
            table[unit, local] = np.repeat(per_warp, sizes, axis=0)
        self.advance(threads)

    def advance(self, threads: np.ndarray) -> None:
        unit, local = self.split(threads)
        self.known[unit, local, local] += 1

    def release(self, threads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What these threads, of one unit, know together; their later accesses are not part of it."""
        unit, local = int(threads[0]) // self.unit_size, threads % self.unit_size
        snapshot = self.known[unit, local].max(0), self.fenced[unit, local].max(0)
        self.advance(threads)
        return snapshot

    def acquire(self, threads: np.ndarray, snapshot: tuple[np.ndarray, np.ndarray]) -> None:
        unit, local = self.split(threads)
        for table, row in zip((self.known, self.fenced), snapshot, strict=True):
            table[unit, local] = np.maximum(table[unit, local], row)

    def proxy_fence(self, threads: np.ndarray) -> None:
        """What these threads know is visible to the async proxy too."""
        unit, local = self.split(threads)
        self.fenced[unit, local] = np.maximum(self.fenced[unit, local], self.known[unit, local])

    def next_engine_time(self, thread: int) -> tuple[int, int, int]:
        """A new time of the asynchronous column of a thread's warp: unit, column, time."""
        unit, local = divmod(thread, self.unit_size)
        warp = int(self.warp_of_thread[local])
        self.engine[unit, warp] += 1
        return unit, self.unit_size + warp, int(self.engine[unit, warp])

    def learn(self, threads: np.ndarray, column: int, time: int) -> None:
        """Threads know that an asynchronous operation is complete."""
        unit, local = self.split(threads)
        self.known[unit, local, column] = np.maximum(self.known[unit, local, column], time)
