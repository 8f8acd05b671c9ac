"""One instruction made ready to run: a Python closure, and the registers that it reads and writes.

    step.run(group)      executes it for all threads of the group

`run` returns None (go on with the next step), the index of the step to go on with, or STOP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from deuteron.cached_property import cached_property
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
    elsewhere. `low_bytes`: of the sources that are not read as a whole, how many bytes are."""

    instruction: Instruction
    run: Run
    sources: frozenset[int]
    destinations: frozenset[int]
    names: list[str]
    is_guarded: bool
    allows_in_flight: bool = False
    parts: Parts | None = None
    low_bytes: Mapping[int, int] = field(default_factory=dict)

    @cached_property
    def source_bits(self) -> int:
        return sum(1 << index for index in self.sources)

    @cached_property
    def destination_bits(self) -> int:
        return sum(1 << index for index in self.destinations)

    def named_sources(self) -> Iterable[tuple[int, str]]:
        return ((index, self.names[index]) for index in sorted(self.sources))

    def check_registers(self, group: Group) -> None:
        """Complain about registers that a wgmma in flight owns or that threads which run this never wrote; what they
        write is written from now on."""
        in_flight = self._touched & group.in_flight
        if in_flight and not self.allows_in_flight:
            self._check_in_flight(in_flight, group)
        if self._touched & group.unwritten.keys():
            self._check_unwritten(group)

    @cached_property
    def _touched(self) -> frozenset[int]:
        return self.sources | self.destinations

    @cached_property
    def _predicate(self) -> frozenset[int]:
        return frozenset([self.instruction.guard.index]) if self.is_guarded else frozenset()

    @cached_property
    def _used(self) -> frozenset[int]:
        """The registers that are looked at, not only moved."""
        if self.parts is not None:
            return (self.sources - self.parts.moved) | self._predicate
        return self.sources - self.destinations if self.allows_in_flight else self.sources

    def _active(self, group: Group) -> np.ndarray:
        """Which threads of the group run this."""
        if not self.is_guarded:
            return np.ones(group.size, bool)
        values = group.registers[self.instruction.guard.index]
        return ~values if self.instruction.guard_negated else values

    def _check_in_flight(self, registers: frozenset[int], group: Group) -> None:
        threads = group.threads[self._active(group)]
        for index in registers:
            found = group.wave.asynchronous.wgmmas.owner(index, threads, index not in self.destinations)
            if found is not None:
                label, owning = found
                message = f"uses register {self.names[index]} while {label} is in flight"
                raise Fault("register in flight", message, owning)

    def _check_unwritten(self, group: Group) -> None:
        active = self._active(group)
        for index in self._used & group.unwritten.keys():
            unwritten = group.unwritten[index][:, : self.low_bytes.get(index)].any(1)
            self._check_written(group, index, unwritten & (active | (index in self._predicate)))
        if self.parts is not None:
            if self.parts.arithmetic:
                for index in self.parts.moved & group.unwritten.keys():
                    self._check_written(group, index, group.unwritten[index].all(1) & active)
            self.parts.spread(group)
            return
        for index in (self.destinations - self.sources) & group.unwritten.keys():
            group.set_unwritten(index, group.unwritten[index] & ~active[:, None])

    def _check_written(self, group: Group, index: int, missing: np.ndarray) -> None:
        if missing.any():
            message = f"reads register {self.names[index]}, which these threads never wrote"
            raise Fault("unwritten register", message, group.threads[missing])
