"""Bulk transfers of the async proxy: into shared memory, completing on an mbarrier, and out of it, in groups.

    Inward(wave, thread, parts, read, label).issue()     parts: (flat bytes, mbarrier) of each block
    Outward(wave, thread, bytes, write, label).issue()

`read` gives the bytes to be written when the transfer happens, `write` takes those that were read. A store reads and
writes at two moments: what waits with `.read` waits for the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from deuteron.emulator.asynchronous.groups import Operation
from deuteron.emulator.asynchronous.mbarriers import MBarrier
from deuteron.emulator.faults import Fault
from deuteron.emulator.machine.wave import Wave


@dataclass(eq=False)
class Inward:
    """A bulk copy into the shared memory of one block or, by multicast, of several of a cluster."""

    wave: Wave
    thread: int
    parts: Sequence[tuple[np.ndarray, MBarrier]]
    num_bytes: int
    read: Callable[[], np.ndarray]
    label: str

    def issue(self) -> None:
        with_thread(self.thread, self.read)  # what is out of bounds is reported at the instruction
        checks = self.wave.checks
        if checks is not None:
            number = checks.new_label(self.label)
            for flat, barrier in self.parts:
                with_thread(self.thread, lambda b=barrier: self._check_barrier(b))
                granules = checks.granules_of(flat)
                with_thread(self.thread, lambda g=granules: checks.check_async_write(self.thread, g, self.label))
                checks.flight[granules] = number
        self.wave.asynchronous.enqueue(self.deliver)

    def _check_barrier(self, barrier: MBarrier) -> None:
        """The async proxy sees that the mbarrier was initialised."""
        checks = self.wave.checks
        checks.use_mbarrier(np.array([self.thread]), barrier.flat)
        maker = barrier.maker % checks.clocks.unit_size
        is_known = barrier.fenced_at is not None and checks.knows(self.thread, maker, barrier.fenced_at)
        if not is_known and not checks.is_fenced(self.thread, barrier.flat):
            message = f"{self.label} completes on an mbarrier that thread {maker} initialised without a fence"
            raise Fault("missing proxy fence", f"{message}: fence.mbarrier_init or fence.proxy.async")

    def deliver(self) -> None:
        data = with_thread(self.thread, self.read)
        for flat, barrier in self.parts:
            self.wave.shared.data[flat] = data
            self._record(flat, barrier)
            barrier.receive(self.num_bytes)
        self.wave.num_events += 1

    def _record(self, flat: np.ndarray, barrier: MBarrier) -> None:
        checks = self.wave.checks
        if checks is None:
            return
        granules = checks.granules_of(flat)
        checks.flight[granules] = 0
        _, column, time = checks.clocks.next_engine_time(self.thread)
        checks.record_async_write(granules, column, time)
        snapshot = np.zeros(checks.clocks.num_columns, np.int32)
        snapshot[column] = time
        barrier.release((snapshot, np.zeros_like(snapshot)))


@dataclass(eq=False)
class Outward:
    """A bulk copy out of shared memory, which the thread waits for with `cp.async.bulk.wait_group`."""

    wave: Wave
    thread: int
    flat: np.ndarray
    write: Callable[[np.ndarray], None]
    label: str
    data: np.ndarray | None = None

    def issue(self) -> None:
        checks, threads = self.wave.checks, np.array([self.thread])
        if checks is not None:
            granules = checks.granules_of(self.flat)
            with_thread(self.thread, lambda: checks.check_async_read(threads, granules, self.label))
            checks.begin_async_read(granules, self.label)
        state = self.wave.asynchronous
        state.start(state.stores, Operation(threads, self._read, self._finish_read, self.label))
        state.start(state.writes, Operation(threads, self._write, lambda _: None, self.label))

    def _read(self, _: np.ndarray) -> None:
        if self.data is None:
            self.data = self.wave.shared.data[self.flat]

    def _write(self, chosen: np.ndarray) -> None:
        self._read(chosen)
        with_thread(self.thread, lambda: self.write(self.data))
        self.wave.num_events += 1

    def _finish_read(self, _: np.ndarray) -> None:
        checks = self.wave.checks
        if checks is not None:
            checks.end_async_read(checks.granules_of(self.flat), np.array([self.thread]))


def with_thread(thread: int, action: Callable):
    """A fault raised inside is one of this thread."""
    try:
        return action()
    except Fault as fault:
        fault.threads = np.array([thread])
        raise
