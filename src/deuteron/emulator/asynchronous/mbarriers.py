"""mbarriers: objects in shared memory that count arrivals and bytes of asynchronous copies, phase by phase.

barriers.initialise(flat, 1, offset, thread)
barriers.at(flat).arrive(2)                two arrivals; the phase completes when none is pending and no byte is
barriers.at(flat).phase                    how many phases are over
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from deuteron.emulator.faults import Fault

MAX_COUNT = (1 << 20) - 1


@dataclass(eq=False)
class MBarrier:
    """`released` collects what arriving threads know, `completed` what the threads that wait learn (vector clocks).
    `maker` initialised it, and made that visible to others by a `fence.mbarrier_init` at its time `fenced_at`."""

    count: int
    flat: int
    offset: int
    maker: int
    fenced_at: int | None = None
    phase: int = 0
    pending: int = 0
    bytes: int = 0
    released: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    completed: tuple[np.ndarray, np.ndarray] | None = None

    def arrive(self, count: int) -> int:
        """Some arrivals; returns the phase they belong to."""
        if count > self.pending:
            message = f"arrives {count} times at {self.describe()}"
            raise Fault("mbarrier", message)
        phase = self.phase
        self.pending -= count
        self._advance()
        return phase

    def expect(self, num_bytes: int) -> None:
        self.bytes += num_bytes

    def receive(self, num_bytes: int) -> None:
        """Bytes that an asynchronous copy has written."""
        self.bytes -= num_bytes
        self._advance()

    def release(self, snapshot: tuple[np.ndarray, np.ndarray]) -> None:
        known = [*self.released, snapshot]
        self.released = [(np.maximum.reduce([k for k, _ in known]), np.maximum.reduce([f for _, f in known]))]

    def describe(self) -> str:
        state = f"{self.pending} of {self.count} arrivals and {self.bytes} bytes pending"
        return f"the mbarrier at shared byte {self.offset}, phase {self.phase} with {state}"

    def _advance(self) -> None:
        if self.pending == 0 and self.bytes == 0:
            self.phase += 1
            self.pending = self.count
            self.completed = self.released[0] if self.released else self.completed


class MBarriers:
    """The mbarriers of a wave by their place in the flat shared memory."""

    def __init__(self) -> None:
        self._objects: dict[int, MBarrier] = {}

    def initialise(self, flat: int, count: int, offset: int, thread: int) -> None:
        if not 1 <= count <= MAX_COUNT:
            raise Fault("mbarrier", f"an mbarrier's count is from 1 to {MAX_COUNT}, got {count}")
        if flat in self._objects:
            raise Fault("mbarrier", f"initialises {self._objects[flat].describe()}: mbarrier.inval has to come first")
        self._objects[flat] = MBarrier(count, flat, offset, thread, pending=count)

    def invalidate(self, flat: int, offset: int) -> None:
        barrier = self.at(flat, offset)
        if barrier.bytes:
            raise Fault("mbarrier", f"invalidates {barrier.describe()}")
        del self._objects[flat]

    def fence(self, thread: int, time: int) -> None:
        """`fence.mbarrier_init` of a thread at its time, for those that it initialised."""
        for barrier in self._objects.values():
            if barrier.maker == thread and barrier.fenced_at is None:
                barrier.fenced_at = time

    def at(self, flat: int, offset: int) -> MBarrier:
        if flat not in self._objects:
            raise Fault("mbarrier", f"there is no initialised mbarrier at shared byte {offset}")
        return self._objects[flat]
