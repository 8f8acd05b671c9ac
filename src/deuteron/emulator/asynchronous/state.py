"""Everything asynchronous that a wave has in flight, and when it happens.

state.start(groups, operation)   it happens at once or later (options `early`, `random`)
state.drift()                    some of what is in flight happens now (option `random`); called between turns
state.deliver()                  completes one copy that only an mbarrier waits for; the scheduler calls it when stuck
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from deuteron.emulator.asynchronous.groups import Groups, Operation
from deuteron.emulator.asynchronous.warpgroup import WgmmasInFlight
from deuteron.emulator.machine.residents import Residents

# How often something in flight happens in the time of a turn, where the moment is random: often enough that many
# operations are over long before their wait, seldom enough that many are not.
_DRIFT = 0.25


class AsyncState:
    """`copies`: cp.async. `stores`: bulk copies out of shared memory, until they have read it; `writes`: until they
    have written. `wgmmas`: wgmma. `queue`: copies that complete on an mbarrier."""

    def __init__(self, residents: Residents):
        self.residents = residents
        self.mode = residents.launch.options.asynchronous
        self.random = residents.random
        self.copies, self.stores, self.writes = (Groups(residents.num_threads) for _ in range(3))
        self.wgmmas = WgmmasInFlight(residents.num_threads)
        self.queue: deque[Callable[[], None]] = deque()

    def is_early(self) -> bool:
        if self.mode == "random":
            return bool(self.random.integers(2))
        return self.mode == "early"

    def start(self, groups: Groups, operation: Operation) -> None:
        groups.add(operation)
        if self.is_early():
            operation.happen()

    def enqueue(self, operation: Callable[[], None]) -> None:
        """An operation that completes on its own."""
        if self.is_early():
            operation()
        else:
            self.queue.append(operation)

    def drift(self) -> None:
        if self.mode != "random":
            return
        for groups in (self.copies, self.stores, self.writes):
            for operation in groups.pending:
                if self.random.random() < _DRIFT:
                    operation.happen()
        if self.queue and self.random.random() < _DRIFT:
            self.deliver()

    def deliver(self) -> bool:
        if not self.queue:
            return False
        if self.mode == "random":
            self.queue.rotate(int(self.random.integers(len(self.queue))))
        self.queue.popleft()()
        self.residents.num_events += 1
        return True

    def check_exit(self, threads: np.ndarray) -> None:
        """Nothing that these threads, which exit, have issued may use shared memory any more."""
        for groups in (self.copies, self.stores):
            groups.check_exit(threads)
        self.wgmmas.check_exit(threads)

    def finish(self) -> None:
        """At the end of the kernel copies to global memory are complete."""
        while self.deliver():
            pass
        for operation in self.writes.pending:
            operation.happen()
