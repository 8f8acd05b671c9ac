"""Threads of a wave that are at the same instruction and run it together.

A group owns the registers of its threads: `registers[i]` is a NumPy array with one element for every thread, None where
no thread has written it yet. Instructions compute on whole arrays, without masks:

    group.registers[3] = group.registers[1] + group.registers[2]

Where threads take different branches the group is split (`take`), where they meet again groups are joined
(`concatenate`); only registers that are live there are copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from deuteron.emulator.asynchronous.warpgroup import InFlight
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
    """`threads` are the numbers of the threads within the wave, ascending. `guards` maps a register to why it may
    not be used: a mask [threads, bytes] of what was never written, or the wgmma that is in flight on it."""

    def __init__(self, wave: Wave, scheduler: Scheduling, threads: np.ndarray, num_registers: int):
        self.wave = wave
        self.scheduler = scheduler
        self.threads = threads
        self.registers: list[np.ndarray | None] = [None] * num_registers
        self.guards: dict[int, np.ndarray | InFlight] = {}
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
        for index, guard in self.guards.items():
            part.guards[index] = guard if isinstance(guard, InFlight) else guard[mask]
        part.pc, part.join = self.pc, self.join
        return part

    def merge(self, index: int, mask: np.ndarray, old: np.ndarray | None) -> None:
        """Keep what was just written to a register where the mask is on, the old values elsewhere."""
        values = self.registers[index]
        if old is None:
            self.guards[index] = np.repeat(~mask[:, None], values.itemsize, 1)
            return
        self.registers[index] = np.where(mask, values, old)
        guard = self.guards.get(index)
        if isinstance(guard, np.ndarray):
            self.guards[index] = guard & ~mask[:, None]

    def unwritten(self, index: int, width: int) -> np.ndarray:
        """Which of the bytes [threads, width] of a register were never written."""
        guard = self.guards.get(index)
        if isinstance(guard, np.ndarray):
            return guard
        return np.full((self.size, width), self.registers[index] is None)


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
    for group in groups:
        whole.guards.update({k: v for k, v in group.guards.items() if isinstance(v, InFlight)})
    whole.pc, whole.join = first.pc, first.join
    return whole


def _concatenate_register(whole: Group, groups: Sequence[Group], index: int, order: np.ndarray) -> None:
    parts = [g.registers[index] for g in groups]
    written = [p for p in parts if p is not None]
    if not written:
        return
    dtype = written[0].dtype
    filled = [np.zeros(g.size, dtype) if p is None else p for g, p in zip(groups, parts, strict=True)]
    whole.registers[index] = np.concatenate(filled)[order]
    mask = np.concatenate([g.unwritten(index, dtype.itemsize) for g in groups])[order]
    if mask.any():
        whole.guards[index] = mask
