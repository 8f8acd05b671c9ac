"""Threads of a wave that are at the same instruction and run it together.

A group owns the registers of its threads: `registers[i]` is a NumPy array with one element for every thread, None where
no thread has written it yet. Instructions compute on whole arrays, without masks:

    group.registers[3] = group.registers[1] + group.registers[2]

Where threads take different branches the group is split (`take`), where they meet again groups are joined
(`concatenate`); only registers that are live there are copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from deuteron.cached_property import cached_property
from deuteron.emulator.machine.wave import Wave

if TYPE_CHECKING:
    from deuteron.emulator.machine.join import Join
    from deuteron.emulator.machine.wait import Wait


class Scheduling(Protocol):
    """What instructions ask the scheduler for."""

    def start_at(self, group: Group, pc: int) -> None: ...

    def diverge(self, group: Group, mask: np.ndarray, taken: int, pc: int) -> None: ...

    def block(self, group: Group, pc: int, wait: Wait) -> int: ...

    def exit(self, group: Group, mask: np.ndarray | None, pc: int) -> None: ...


class Group:
    """`threads` are the numbers of the threads within the wave, ascending. `unwritten` maps a register to a mask
    [threads, bytes] of what was never written; `in_flight` are those that wgmmas of some of the threads own."""

    def __init__(self, wave: Wave, scheduler: Scheduling, threads: np.ndarray, num_registers: int):
        self.wave = wave
        self.scheduler = scheduler
        self.threads = threads
        self.registers: list[np.ndarray | None] = [None] * num_registers
        self.unwritten: dict[int, np.ndarray] = {}
        self.in_flight: set[int] = set()
        self.pc = 0
        self.join: Join | None = None
        self.wait: Wait | None = None

    @property
    def size(self) -> int:
        return len(self.threads)

    @cached_property
    def slots(self) -> np.ndarray:
        """The block of each thread, as a number within the wave."""
        return self.threads // self.wave.block_size

    @cached_property
    def lanes(self) -> np.ndarray:
        return self.threads % self.wave.block_size % 32

    @cached_property
    def warps(self) -> np.ndarray:
        """The warp of each thread, as a number within the wave."""
        return self.slots * self.wave.warps_per_block + self.threads % self.wave.block_size // 32

    @cached_property
    def warp_numbers(self) -> np.ndarray:
        return np.unique(self.warps)

    @cached_property
    def is_whole(self) -> bool:
        """Whether the group consists of complete warps of 32."""
        return len(self.warp_numbers) * 32 == self.size

    @cached_property
    def _dense(self) -> np.ndarray:
        """Where each thread is in an array [warps, 32], flattened."""
        return np.searchsorted(self.warp_numbers, self.warps) * 32 + self.lanes

    @cached_property
    def present(self) -> np.ndarray:
        """Which lanes of its warps are in the group: [warps, 32]."""
        return self.to_warps(np.ones(self.size, bool))

    def to_warps(self, values: np.ndarray) -> np.ndarray:
        """One value for each thread as [warps, 32]; lanes that are not in the group hold 0."""
        if self.is_whole:
            return values.reshape(-1, 32)
        result = np.zeros((len(self.warp_numbers), 32), values.dtype)
        result.reshape(-1)[self._dense] = values
        return result

    def from_warps(self, values: np.ndarray) -> np.ndarray:
        """The inverse of `to_warps`."""
        flat = np.ascontiguousarray(values).reshape(-1)
        return flat if self.is_whole else flat[self._dense]

    def take(self, mask: np.ndarray, live: Iterable[int]) -> Group:
        """A new group of some of the threads, with the registers that are live where it goes."""
        part = Group(self.wave, self.scheduler, self.threads[mask], len(self.registers))
        for index in live:
            values = self.registers[index]
            part.registers[index] = None if values is None else values[mask]
            if index in self.unwritten:
                part.set_unwritten(index, self.unwritten[index][mask])
        part.in_flight = set(self.in_flight)
        part.pc, part.join = self.pc, self.join
        return part

    def merge(self, index: int, mask: np.ndarray, old: np.ndarray | None) -> None:
        """Keep what was just written to a register where the mask is on, the old values elsewhere."""
        values = self.registers[index]
        if old is None:
            self.set_unwritten(index, self.unwritten_bytes(index, values.itemsize) | ~mask[:, None])
            return
        self.registers[index] = np.where(mask, values, old)

    def unwritten_bytes(self, index: int, width: int) -> np.ndarray:
        """Which of the bytes [threads, width] of a register were never written."""
        if index in self.unwritten:
            return self.unwritten[index]
        return np.full((self.size, width), self.registers[index] is None)

    def set_unwritten(self, index: int, mask: np.ndarray) -> None:
        if mask.any():
            self.unwritten[index] = mask
        else:
            self.unwritten.pop(index, None)


def concatenate(groups: Sequence[Group], live: Iterable[int]) -> Group:
    """One group of the threads of several, which are at the same instruction."""
    first = groups[0]
    if len(groups) == 1:
        return first
    threads = np.concatenate([g.threads for g in groups])
    order = np.argsort(threads, kind="stable")
    whole = Group(first.wave, first.scheduler, threads[order], len(first.registers))
    for index in live:
        _concatenate_register(whole, groups, index, order)
    whole.in_flight = set().union(*(group.in_flight for group in groups))
    whole.pc, whole.join = first.pc, first.join
    return whole


def _concatenate_register(whole: Group, groups: Sequence[Group], index: int, order: np.ndarray) -> None:
    parts = [g.registers[index] for g in groups]
    written = [p for p in parts if p is not None]
    if not written:
        return
    if len(written) == len(parts) and not any(index in g.unwritten for g in groups):
        whole.registers[index] = np.concatenate(parts)[order]
        return
    dtype = written[0].dtype
    filled = [np.zeros(g.size, dtype) if p is None else p for g, p in zip(groups, parts, strict=True)]
    whole.registers[index] = np.concatenate(filled)[order]
    whole.set_unwritten(index, np.concatenate([g.unwritten_bytes(index, dtype.itemsize) for g in groups])[order])
