"""Visits to the shared memory of a block, by threads of others in its cluster and by copies that arrive: the
block has to have begun, and still to be.

    visits.visit(threads, slots)           threads access the shared memory of these blocks
    visits.exit_block(slot, threads)       the last threads of a block exit

A block may be visited by a thread that knows that it has begun (see `clocks`), and when it exits, one of its
threads has to know of every visit. So it does not matter in which order blocks run here.
"""

from __future__ import annotations

import numpy as np

from deuteron.emulator.checks.clocks import Clocks
from deuteron.emulator.faults import Fault
from deuteron.emulator.machine.residents import Residents


class Visits:
    """`latest[block, column]`: the time of the last visit by each thread (or engine of a warp) of the cluster."""

    def __init__(self, residents: Residents, clocks: Clocks):
        self.residents, self.clocks = residents, clocks
        self.latest = np.zeros((len(residents.blocks), clocks.num_columns), np.int32)

    def visit(self, threads: np.ndarray, slots: np.ndarray) -> None:
        away = slots != threads // self.residents.block_size
        if not away.any():
            return
        visitors, slots = threads[away], slots[away]
        for slot in np.unique(slots).tolist():
            mine = visitors[slots == slot]
            self._check(mine, slot)
            _, local = self.clocks.split(mine)
            self.latest[slot, local] = self.clocks.now(mine)

    def record(self, slot: int, column: int, time: int) -> None:
        """An asynchronous operation wrote to a block."""
        self.latest[slot, column] = time

    def exit_block(self, slot: int, threads: np.ndarray) -> None:
        unit, own = self._threads_of(slot)
        late = np.flatnonzero(self.latest[slot] > self.clocks.known[unit, own].max(0))
        if len(late) and late[-1] >= self.clocks.unit_size:
            message = "exits though a copy into its shared memory was not waited for"
            raise Fault("asynchronous data", message, threads)
        if len(late):
            message = "exits while other blocks of the cluster may still access its shared memory: no barrier between"
            raise Fault("cluster", message, threads)

    def _check(self, threads: np.ndarray, slot: int) -> None:
        if not self.residents.alive_in_block(slot):
            message = "accesses the shared memory of a block of the cluster that has exited"
            raise Fault("cluster", message, threads)
        unit, own = self._threads_of(slot)
        _, local = self.clocks.split(threads)
        knows = self.clocks.known[unit][local][:, own].any(1)
        if not knows.all():
            message = "accesses the shared memory of a block of the cluster that may not have begun: no barrier between"
            raise Fault("cluster", message, threads[~knows])

    def _threads_of(self, slot: int) -> tuple[int, slice]:
        """The unit of a block, and its threads within that."""
        unit, first = divmod(slot * self.residents.block_size, self.clocks.unit_size)
        return unit, slice(first, first + self.residents.block_size)
