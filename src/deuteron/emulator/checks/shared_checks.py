"""Checks of shared memory: unwritten data, races, data of asynchronous operations before their wait.

    checks.read(threads, flat, size)        raises Fault where a thread may not read yet
    checks.store(threads, flat, values)     likewise, and stores

For each granule (the narrowest access of the kernel, at most 4 bytes) it keeps the last write, and for each warp its
last read, each with thread and time. An access is a race unless the last write, and for a write the last reads too, are
known to the thread (see `clocks`). Threads that write the same value to the same place do not race.
"""

from __future__ import annotations

import numpy as np

from deuteron.emulator.checks.clocks import Clocks
from deuteron.emulator.checks.visits import Visits
from deuteron.emulator.faults import Fault, format_ranges
from deuteron.emulator.machine.residents import Residents

GENERIC, ATOMIC, ASYNC = 0, 1, 2


class SharedChecks:
    """The state of all shared memory of resident blocks. Granules are numbered over their flat memory."""

    def __init__(self, residents: Residents):
        shared = residents.shared
        self.residents = residents
        self.granule = residents.launch.shared_granule
        self.count = len(shared.data) // self.granule
        unit_size = residents.block_size * shared.cluster_size
        self.clocks = Clocks(residents.num_threads // unit_size, unit_size, residents.warp_of(np.arange(unit_size)))
        self.writer = np.full(self.count, -1, np.int32)
        self.write_time = np.zeros(self.count, np.int32)
        self.write_kind = np.zeros(self.count, np.int8)
        rows = 2 * self.clocks.num_warps
        self.reader = np.zeros((rows, self.count), np.int32)
        self.read_time = np.zeros((rows, self.count), np.int32)
        self.has_reads = np.zeros(rows, bool)
        self.flight = np.zeros(self.count, np.int32)
        self.flight_reads = np.zeros(self.count, np.int32)
        self.flight_reader = np.zeros(self.count, np.int32)
        self.labels: list[str] = [""]
        self.is_mbarrier = np.zeros(self.count, bool)
        self.num_mbarriers = 0
        self.visits = Visits(residents, self.clocks)

    def granules(self, flat: np.ndarray, size: int) -> np.ndarray:
        """[accesses, granules of each]."""
        return (flat // self.granule)[:, None] + np.arange(max(size // self.granule, 1))

    def granules_of(self, flat: np.ndarray) -> np.ndarray:
        """The granules of a set of bytes, as one access: of a 64 x 64 box in a fiftieth of `np.unique`'s time."""
        is_touched = np.zeros(self.count, bool)
        is_touched[flat.reshape(-1) // self.granule] = True
        return np.flatnonzero(is_touched)[None, :]

    def use_mbarrier(self, threads: np.ndarray, flat: int) -> None:
        """The initialisation of an mbarrier is known to the threads that use it."""
        granules = np.repeat(self._words_of_mbarrier(flat), len(threads), axis=0)
        self._visit(threads, granules)
        self._check_writer(threads, granules, False)
        self._record_read(threads, granules)

    def change_mbarrier(self, thread: int, flat: int, is_live: bool) -> None:
        """An mbarrier begins or ends: as a write, ordered after all that was done with this memory."""
        threads, granules = np.array([thread]), self._words_of_mbarrier(flat)
        self._check_flight(granules, threads)
        self._check_writer(threads, granules, False)
        self._check_readers(threads, granules)
        self.is_mbarrier[granules] = is_live
        self.num_mbarriers += 1 if is_live else -1
        self.record_write(threads, granules, GENERIC)

    def is_fenced(self, thread: int, flat: int) -> bool:
        """Whether what was last written there is visible to the async proxy, as this thread knows."""
        granules, threads = self._words_of_mbarrier(flat), np.array([thread])
        return not self._unfenced(threads, granules).any()

    def knows(self, thread: int, other: int, time: int) -> bool:
        """Whether what `other` (within the unit) did up to a time is ordered before what `thread` does now."""
        unit, local = divmod(thread, self.clocks.unit_size)
        return bool(self.clocks.known[unit, local, other] >= time)

    def exit_block(self, slot: int, threads: np.ndarray) -> None:
        """The shared memory of a block, whose last threads exit, may not be needed any more."""
        begin, end = (block * self.residents.shared.stride // self.granule for block in (slot, slot + 1))
        number = self.flight[begin:end].max()
        if number:
            message = f"exits while {self.labels[number]} still writes shared memory: its completion was not waited for"
            raise Fault("asynchronous data", message, threads)
        self.visits.exit_block(slot, threads)

    def _visit(self, threads: np.ndarray, granules: np.ndarray) -> None:
        if self.residents.shared.cluster_size > 1:
            self.visits.visit(threads, granules[:, 0] * self.granule // self.residents.shared.stride)

    def _words_of_mbarrier(self, flat: int) -> np.ndarray:
        return self.granules(np.array([flat]), 8)

    def read(self, threads: np.ndarray, flat: np.ndarray, size: int, atomic: bool = False) -> None:
        granules = self.granules(flat, size)
        self._visit(threads, granules)
        self._check_plain(granules)
        self._check_flight(granules, threads)
        self._check_written(granules, threads)
        self._check_writer(threads, granules, atomic)
        if not atomic:
            self._record_read(threads, granules)

    def store(self, threads: np.ndarray, flat: np.ndarray, values: np.ndarray, atomic: bool = False) -> None:
        size = values.itemsize * values.shape[1]
        granules = self.granules(flat, size)
        shared = self.residents.shared
        self._visit(threads, granules)
        self._check_plain(granules)
        self._check_flight(granules, threads)
        same = (shared.load_flat(flat, values.itemsize, values.shape[1]) == values).all(1)
        self._check_writer(threads, granules, atomic, same)
        self._check_readers(threads, granules)
        shared.store_flat(flat, values)
        self.record_write(threads, granules, ATOMIC if atomic else GENERIC)
        self._check_one_writer(threads, flat, granules, values)

    def record_write(self, threads: np.ndarray, granules: np.ndarray, kind: int) -> None:
        unit, local = self.clocks.split(threads)
        self.writer[granules] = local[:, None]
        self.write_time[granules] = self.clocks.known[unit, local, local][:, None]
        self.write_kind[granules] = kind

    def check_overwrite(self, threads: np.ndarray, granules: np.ndarray) -> None:
        """Raise unless these threads may overwrite: for asynchronous writes, when they are issued."""
        self._visit(threads, granules)
        self._check_plain(granules)
        self._check_flight(granules, threads)
        self._check_writer(threads, granules, False)
        self._check_readers(threads, granules)

    def check_async_read(self, threads: np.ndarray, granules: np.ndarray, label: str) -> None:
        """Raise unless the async proxy may read what these threads ask it to: written, ordered, fenced."""
        self._check_flight(granules, threads, is_read=True)
        self._check_written(granules, threads)
        self._check_writer(threads, granules, False)
        bad = self._unfenced(threads, granules)
        if bad.any():
            who = self._thread(self.writer[granules][bad][0])
            message = f"{label} reads shared memory that {who} wrote without fence.proxy.async"
            raise Fault("missing proxy fence", message, np.flatnonzero(bad.any(1)))

    def check_async_write(self, thread: int, granules: np.ndarray, label: str) -> None:
        """Raise unless the async proxy may write what this thread asks it to: what threads wrote there is fenced."""
        threads = np.array([thread])
        self.check_overwrite(threads, granules)
        bad = self._unfenced(threads, granules)
        if bad.any():
            who = self._thread(self.writer[granules][bad][0])
            message = f"{label} overwrites shared memory that {who} wrote without fence.proxy.async"
            raise Fault("missing proxy fence", message, threads)

    def _unfenced(self, threads: np.ndarray, granules: np.ndarray) -> np.ndarray:
        """What was last written by threads, and is not visible to the async proxy as these threads know."""
        unit, local = self.clocks.split(threads)
        fenced = self.clocks.fenced[unit[:, None], local[:, None], self.writer[granules]]
        return (self.write_kind[granules] != ASYNC) & (fenced < self.write_time[granules])

    def new_label(self, label: str) -> int:
        """A number by which an asynchronous operation is named."""
        self.labels.append(label)
        return len(self.labels) - 1

    def begin_async_read(self, granules: np.ndarray, label: str) -> None:
        self.flight_reads[granules] += 1
        self.flight_reader[granules] = self.new_label(label)

    def end_async_read(self, granules: np.ndarray, waiting: np.ndarray) -> None:
        """An asynchronous read is over: threads of each warp that asked for it know that of their warp, by waiting."""
        self.flight_reads[granules] -= 1
        warps = self.residents.warp_of(waiting)
        for warp in np.unique(warps):
            threads = waiting[warps == warp]
            _, column, time = self.clocks.next_engine_time(int(threads[0]))
            row = column - self.clocks.unit_size + self.clocks.num_warps
            self.has_reads[row] = True
            self.reader[row, granules] = column
            self.read_time[row, granules] = time
            self.clocks.learn(threads, column, time)

    def synchronise(self, arrived: np.ndarray, waiting: np.ndarray) -> None:
        self.clocks.synchronise(arrived, waiting)

    def synchronise_cluster(self, arrived: np.ndarray, releasing: np.ndarray, waiting: np.ndarray) -> None:
        """`releasing` says which threads arrived without `.relaxed`."""
        self.clocks.meet(arrived, waiting)
        if releasing.any():
            self.clocks.synchronise(arrived[releasing], waiting)

    def synchronise_warps(self, threads: np.ndarray) -> None:
        self.clocks.synchronise_warps(threads)

    def proxy_fence(self, threads: np.ndarray) -> None:
        self.clocks.proxy_fence(threads)

    def _record_read(self, threads: np.ndarray, granules: np.ndarray) -> None:
        unit, local = self.clocks.split(threads)
        rows = self.clocks.warp_of_thread[local]
        self.has_reads[rows] = True
        self.reader[rows[:, None], granules] = local[:, None]
        self.read_time[rows[:, None], granules] = self.clocks.known[unit, local, local][:, None]

    def record_async_write(self, granules: np.ndarray, column: int, time: int) -> None:
        self.visits.record(int(granules[0, 0]) * self.granule // self.residents.shared.stride, column, time)
        self.writer[granules] = column
        self.write_time[granules] = time
        self.write_kind[granules] = ASYNC

    def _check_plain(self, granules: np.ndarray) -> None:
        if not self.num_mbarriers:
            return
        bad = self.is_mbarrier[granules]
        if bad.any():
            message = "accesses an mbarrier, which only mbarrier instructions may do before mbarrier.inval"
            raise Fault("mbarrier", message, np.flatnonzero(bad.any(1)))

    def _check_flight(self, granules: np.ndarray, threads: np.ndarray, is_read: bool = False) -> None:
        number = self.flight[granules]
        if number.any():
            label = self.labels[int(number[number > 0][0])]
            message = f"accesses shared memory that {label} still writes: its completion was not waited for"
            raise Fault("asynchronous data", message, np.flatnonzero((number > 0).any(1)))

    def _check_written(self, granules: np.ndarray, threads: np.ndarray) -> None:
        bad = self.writer[granules] < 0
        if bad.any():
            byte = int(granules[bad][0]) * self.granule % self.residents.shared.stride
            message = f"reads shared memory at byte {self._offset(byte)}, which was never written"
            raise Fault("unwritten shared memory", message, np.flatnonzero(bad.any(1)))

    def _check_writer(
        self, threads: np.ndarray, granules: np.ndarray, atomic: bool, same: np.ndarray | None = None
    ) -> None:
        """The last write is known to the thread. Not needed between atomics, and where the value stays the `same`."""
        unit, local = self.clocks.split(threads)
        writer = self.writer[granules]
        known = self.clocks.known[unit[:, None], local[:, None], np.maximum(writer, 0)]
        bad = (writer >= 0) & (known < self.write_time[granules])
        if atomic:
            bad &= self.write_kind[granules] != ATOMIC
        if same is not None:
            bad &= ~same[:, None]
        if bad.any():
            raise self._race(bad, granules, writer, "wrote")

    def _check_readers(self, threads: np.ndarray, granules: np.ndarray) -> None:
        """What is overwritten has been read by all that read it: their reads are known to the thread."""
        reading = self.flight_reads[granules]
        if reading.any():
            label = self.labels[int(self.flight_reader[granules][reading > 0][0])]
            message = f"overwrites shared memory that {label} still reads: its completion was not waited for"
            raise Fault("asynchronous data", message, np.flatnonzero((reading > 0).any(1)))
        unit, local = self.clocks.split(threads)
        where = np.flatnonzero(self.has_reads)[:, None, None], granules
        times, readers = self.read_time[where], self.reader[where]
        all_bad = times > self.clocks.known[unit[:, None], local[:, None], readers]
        for bad, reader in zip(all_bad, readers, strict=True) if all_bad.any() else ():
            if (bad & self._same_unit(granules, unit)).any():
                raise self._race(bad, granules, reader, "read")

    def _same_unit(self, granules: np.ndarray, unit: np.ndarray) -> np.ndarray:
        """Rows of reads are by warp within the unit; granules belong to one unit, so this holds for all."""
        slots = granules * self.granule // self.residents.shared.stride
        return slots // self.residents.shared.cluster_size == unit[:, None]

    def _check_one_writer(
        self, threads: np.ndarray, flat: np.ndarray, granules: np.ndarray, values: np.ndarray
    ) -> None:
        """Threads of one instruction that write the same place write the same value."""
        _, local = self.clocks.split(threads)
        if (self.writer[granules] == local[:, None]).all():
            return
        kept = self.residents.shared.load_flat(flat, values.itemsize, values.shape[1])
        bad = (kept != values).any(1)
        if bad.any():
            message = "threads write different values to the same shared memory in one instruction"
            raise Fault("race", message, np.flatnonzero(bad))

    def _race(self, bad: np.ndarray, granules: np.ndarray, other: np.ndarray, verb: str) -> Fault:
        byte = int(granules[bad][0]) * self.granule % self.residents.shared.stride
        who = format_ranges(np.unique(other[bad][other[bad] < self.clocks.unit_size]))
        what = f"accesses shared memory at byte {self._offset(byte)} that"
        if not who and verb == "wrote":
            message = f"{what} an asynchronous operation wrote: its completion was not waited for"
            return Fault("asynchronous data", message, np.flatnonzero(bad.any(1)))
        who = f"threads {who}" if who else "an asynchronous operation"
        return Fault("race", f"{what} {who} {verb}, with no barrier between", np.flatnonzero(bad.any(1)))

    def _thread(self, column: int) -> str:
        return f"thread {column}" if column < self.clocks.unit_size else "an asynchronous operation"

    def _offset(self, byte: int) -> int:
        return byte - (self.residents.shared.size - self.residents.launch.shared_bytes)
