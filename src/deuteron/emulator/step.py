"""One instruction made ready to run: a Python closure, and the registers that it reads and writes.

    step.run(group)      executes it for all threads of the group

`run` returns None (go on with the next step), the index of the step to go on with, or STOP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deuteron.emulator.asynchronous.warpgroup import InFlight
from deuteron.emulator.faults import Fault
from deuteron.emulator.machine.group import Group
from deuteron.emulator.parts import Parts
from deuteron.ptx.syntax import Instruction

STOP = -1
Run = Callable[[Group], int | None]


@dataclass(eq=False)
class Step:
    """`allows_in_flight`: it is a wgmma, which may use the registers of another one that is in flight, and looks itself
    whether its accumulators were written. `parts`: it does not look at bytes that were never written, only puts them
    elsewhere."""

    instruction: Instruction
    run: Run
    sources: frozenset[int]
    destinations: frozenset[int]
    names: list[str]
    is_guarded: bool
    allows_in_flight: bool = False
    parts: Parts | None = None

    @cached_property
    def source_bits(self) -> int:
        return sum(1 << index for index in self.sources)

    @cached_property
    def destination_bits(self) -> int:
        return sum(1 << index for index in self.destinations)

    def named_sources(self) -> Iterable[tuple[int, str]]:
        return ((index, self.names[index]) for index in sorted(self.sources))

    def check_guards(self, group: Group) -> None:
        """Complain about registers that a wgmma in flight owns or that some threads never wrote."""
        for index in (self.sources | self.destinations) & group.guards.keys():
            guard = group.guards[index]
            if isinstance(guard, InFlight):
                self._check_in_flight(index, guard, group)
            elif index in self.sources and self.parts is None:
                self._check_unwritten(index, guard, group)
            elif index not in self.sources and not self.is_guarded:
                del group.guards[index]
        if self.parts is not None and not self.is_guarded:
            self.parts.spread(group)

    def _check_in_flight(self, index: int, guard: InFlight, group: Group) -> None:
        only_reads = index not in self.destinations
        if not self.allows_in_flight and not (guard.may_read and only_reads):
            message = f"uses register {self.names[index]} while {guard.label} is in flight"
            raise Fault("register in flight", message, group.threads)

    def _check_unwritten(self, index: int, guard: np.ndarray, group: Group) -> None:
        is_accumulator = self.allows_in_flight and index in self.destinations
        if guard.any() and not self.is_guarded and not is_accumulator:
            message = f"reads register {self.names[index]}, which these threads never wrote"
            raise Fault("unwritten register", message, group.threads[guard.any(1)])
