"""What takes time in a timeline: copies in flight, tensor cores, mbarriers; and the groups that are waited for.

    machine = Machine(record)
    end = machine.copy(slot, begin=3.0, num_bytes=16384, ...)        when it has arrived
    barrier.phases                                                  when each phase was over

Durations are nominal, in units of which a dot of 128x128x64 takes 8 and a copy is under way for 14.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

COPY_LATENCY = 14.0
COPY_UNITS_PER_BYTE = 1 / 16384
LOAD_LATENCY = 10.0
DOT_UNITS = 8 / (128 * 128 * 64)
ISSUE = 0.35
BARRIER = 0.25
ELEMENT_UNITS = 1 / 100  # of arithmetic on floats, for each element of a thread


@dataclass
class Barrier:
    """An mbarrier: a phase ends with `count` arrivals and when as many bytes have come as were expected."""

    count: int = 1
    arrivals: int = 0
    expected: int = 0
    latest: float = 0.0
    phases: list[float] = field(default_factory=list)

    def arrive(self, time: float, count: int = 1) -> None:
        self.arrivals += count
        self._end_phase(time)

    def expect(self, time: float, num_bytes: int) -> None:
        self.expected += num_bytes
        self.arrive(time)

    def deliver(self, time: float, num_bytes: int) -> None:
        """Bytes that will have come at that time."""
        self.expected -= num_bytes
        self._end_phase(time)

    def _end_phase(self, time: float) -> None:
        self.latest = max(self.latest, time)
        if self.arrivals >= self.count and self.expected <= 0:
            self.phases.append(self.latest)
            self.arrivals, self.expected = 0, 0

    def passed(self, parity: int) -> float | None:
        """When the phase of that parity was over; None while it is not. Before the first, that of parity 1 is."""
        if len(self.phases) % 2 == parity:
            return None
        return self.phases[-1] if self.phases else 0.0


@dataclass
class Groups:
    """Asynchronous work of one worker, in groups: when each is done."""

    ends: list[float] = field(default_factory=list)
    open_end: float = 0.0

    def add(self, end: float) -> None:
        self.open_end = max(self.open_end, end)

    def commit(self) -> None:
        self.ends.append(max(self.open_end, self.ends[-1] if self.ends else 0.0))
        self.open_end = 0.0

    def done(self, pending: int) -> float:
        """When all but the last `pending` groups are done."""
        finished = self.ends[: len(self.ends) - pending] if pending else self.ends
        return finished[-1] if finished else 0.0


@dataclass
class Shared:
    """What all workers share: mbarriers, tensor cores, and how often each slot of a ring was filled."""

    barriers: dict[tuple, Barrier] = field(default_factory=lambda: defaultdict(Barrier))
    tensor_cores_free: float = 0.0
    fills: dict[object, int] = field(default_factory=lambda: defaultdict(int))
    held: dict[tuple, int] = field(default_factory=dict)  # which bundle a slot holds
