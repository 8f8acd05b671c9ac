"""Checks of global memory: threads of a block that touch what others of it wrote, or write what they read.

    checks.read(threads, address, size)        raises Fault where another warp of the block wrote there, unordered
    checks.write(threads, address, values)     likewise, also where another warp read there

A kernel's ops follow each other: what one stores the next one loads, whichever threads do it. For each granule (the
narrowest access of the kernel) it keeps the last write and two reads by different threads. What is ordered, `Clocks`
know. What other blocks do is the kernel's affair, and within a warp accesses happen in the order of its instructions.
Atomics do not race with each other, nor do writes that change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deuteron.emulator.checks.clocks import Clocks
from deuteron.emulator.faults import Fault, blaming, format_ranges
from deuteron.emulator.machine.global_memory import Allocation
from deuteron.emulator.machine.residents import Residents

NOBODY = -1


class _Accesses:
    """The last access of each granule of one kind: by which thread of the wave, at which time of its own."""

    def __init__(self, count: int):
        self._thread = np.zeros(count, np.int32)  # of calloc: pages that nothing touches take no memory
        self._time = np.zeros(count, np.int32)

    def thread(self, granules: np.ndarray) -> np.ndarray:
        return self._thread[granules] + NOBODY

    def time(self, granules: np.ndarray) -> np.ndarray:
        return self._time[granules]

    def record(self, granules: np.ndarray, threads: np.ndarray, times: np.ndarray) -> None:
        self._thread[granules] = threads - NOBODY
        self._time[granules] = times


@dataclass(eq=False)
class _Table:
    """What is known of an allocation. `is_atomic` is of the last write, `earlier` a read by another thread."""

    writes: _Accesses
    reads: _Accesses
    earlier: _Accesses
    is_atomic: np.ndarray

    @staticmethod
    def of(count: int) -> _Table:
        return _Table(_Accesses(count), _Accesses(count), _Accesses(count), np.zeros(count, bool))


class GlobalChecks:
    """The state of the arrays that the resident blocks access."""

    def __init__(self, residents: Residents, clocks: Clocks):
        self._residents, self._clocks = residents, clocks
        self._granule = residents.launch.global_granule
        self._tables: dict[Allocation, _Table] = {}

    def read(self, threads: np.ndarray, address: np.ndarray, size: int, atomic: bool = False) -> None:
        for allocation, where in self._allocations(address):
            table, granules = self._table(allocation), self._granules(allocation, address[where], size)
            is_reread = self._is_reread(table, threads[where], granules)
            with blaming(np.flatnonzero(where)):
                self._check_writes(table, threads[where], granules, allocation, atomic, is_reread)
            if not atomic:
                self._record_read(table, granules, threads[where])

    def write(self, threads: np.ndarray, address: np.ndarray, values: np.ndarray, atomic: bool = False) -> None:
        size = values.itemsize * values.shape[1]
        for allocation, where in self._allocations(address):
            before = self._residents.memory.load(address[where], values.itemsize, values.shape[1])
            changes = (before != values[where]).any(1)
            table, granules = self._table(allocation), self._granules(allocation, address[where], size)
            changed, of_changed = threads[where][changes], granules[changes]
            is_own = self._has_read(table, changed, of_changed)
            with blaming(np.flatnonzero(where)[changes]):
                self._check_writes(table, changed, of_changed, allocation, atomic)
                for reads in (table.reads, table.earlier):
                    self._check(changed, of_changed, reads, "read", allocation, is_own)
            times = self._clocks.now(threads[where])
            table.writes.record(granules, threads[where][:, None], times[:, None])
            table.is_atomic[granules] = atomic

    def _allocations(self, address: np.ndarray) -> list[tuple[Allocation, np.ndarray]]:
        """The writable allocations that are accessed, and by which threads."""
        found, left = [], np.ones(len(address), bool)
        while left.any():
            allocation = self._residents.memory.find(int(address[left].min()))
            inside = left & (address < allocation.end)
            left &= ~inside
            if allocation.is_writable:
                found.append((allocation, inside))
        return found

    def _table(self, allocation: Allocation) -> _Table:
        if allocation not in self._tables:
            self._tables[allocation] = _Table.of((allocation.end - allocation.origin) // self._granule + 1)
        return self._tables[allocation]

    def _granules(self, allocation: Allocation, address: np.ndarray, size: int) -> np.ndarray:
        """[accesses, granules of each]."""
        first = ((address - np.uint64(allocation.origin)) // np.uint64(self._granule)).astype(np.int64)
        return first[:, None] + np.arange(max(size // self._granule, 1))

    def _record_read(self, table: _Table, granules: np.ndarray, threads: np.ndarray) -> None:
        """Of threads that read one granule together the last one, and the first one beside it, or one from before."""
        readers, times = np.broadcast_to(threads[:, None], granules.shape), self._clocks.now(threads)[:, None]
        before = table.reads.thread(granules), table.reads.time(granules)
        backwards = granules[::-1].copy()  # of a view as of the times NumPy would go forwards, and the last would stay
        table.reads.record(backwards, readers[::-1], times[::-1])
        first = table.reads.thread(granules), table.reads.time(granules)
        table.reads.record(granules, readers, times)
        last = table.reads.thread(granules)
        for thread, time in (before, first):
            other = (thread != last) & (thread != NOBODY)
            table.earlier.record(granules[other], thread[other], time[other])

    def _check_writes(
        self,
        table: _Table,
        threads: np.ndarray,
        granules: np.ndarray,
        allocation: Allocation,
        atomic: bool,
        allowed: np.ndarray | None = None,
    ) -> None:
        allowed = table.is_atomic[granules] if atomic else allowed
        self._check(threads, granules, table.writes, "wrote", allocation, allowed)

    def _is_reread(self, table: _Table, threads: np.ndarray, granules: np.ndarray) -> np.ndarray:
        """What the thread that wrote it reads as well in the same instruction, as `_has_read`."""
        is_own = table.writes.thread(granules) == threads[:, None]
        return np.isin(granules, granules[is_own]) if is_own.any() else is_own

    def _has_read(self, table: _Table, threads: np.ndarray, granules: np.ndarray) -> np.ndarray:
        """What the threads read themselves, as those of other warps did: all that hold an element load it, one of them
        stores it, and the others do not use what they have. That the compiler sees to where they do.
        """
        return (table.reads.thread(granules) == threads[:, None]) | (table.earlier.thread(granules) == threads[:, None])

    def _check(
        self,
        threads: np.ndarray,
        granules: np.ndarray,
        accesses: _Accesses,
        verb: str,
        allocation: Allocation,
        allowed: np.ndarray | None = None,
    ) -> None:
        """The last accesses are known to the threads, or their own warp's. `allowed`: which need not be."""
        other = accesses.thread(granules)
        size, unit = self._residents.block_size, self._clocks.unit_size
        in_block = (other != NOBODY) & (other // size == threads[:, None] // size)
        suspects = in_block & (self._residents.warp_of(other) != self._residents.warp_of(threads)[:, None])
        if allowed is not None:
            suspects &= ~allowed
        if not suspects.any():
            return
        rows, columns = np.nonzero(suspects)
        others, local = other[rows, columns], threads[rows] % unit
        known = self._clocks.known[threads[rows] // unit, local, others % unit]
        bad = known < accesses.time(granules)[rows, columns]
        if bad.any():
            byte = int(granules[rows, columns][bad][0]) * self._granule + allocation.origin - allocation.base
            who = format_ranges(np.unique(others[bad] % size))
            message = f"accesses {allocation.name} at byte {byte} that threads {who} {verb}, with no barrier between"
            raise Fault("race", message, np.unique(rows[bad]))
