"""Everything asynchronous that a wave has in flight.

state.is_early()       whether the operation being issued happens at once (options `early`, `random`)
state.deliver()        completes one copy that nothing but an mbarrier waits for; the scheduler calls it when stuck
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from deuteron.emulator.asynchronous.groups import Groups

if TYPE_CHECKING:
    from deuteron.emulator.machine.wave import Wave


class AsyncState:
    """`copies`: cp.async; `stores`: bulk copies out of shared memory; `queue`: copies that complete on an mbarrier."""

    def __init__(self, wave: Wave):
        self.wave = wave
        self.mode = wave.launch.options.asynchronous
        self.random = np.random.default_rng(wave.launch.options.seed + int(wave.blocks[0]))
        self.copies = Groups(wave.num_threads)
        self.stores = Groups(wave.num_threads)
        self.queue: deque[Callable[[], None]] = deque()

    def is_early(self) -> bool:
        if self.mode == "random":
            return bool(self.random.integers(2))
        return self.mode == "early"

    def enqueue(self, operation: Callable[[], None]) -> None:
        """An operation that completes on its own."""
        if self.is_early():
            operation()
        else:
            self.queue.append(operation)

    def deliver(self) -> bool:
        if not self.queue:
            return False
        if self.mode == "random":
            self.queue.rotate(int(self.random.integers(len(self.queue))))
        self.queue.popleft()()
        self.wave.num_events += 1
        return True

    def finish(self) -> None:
        """At the end of the kernel copies to global memory are complete."""
        while self.deliver():
            pass
        self.stores.finish()
