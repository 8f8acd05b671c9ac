"""wgmma in flight: computed at some moment before the warpgroup has waited for them.

wgmmas.issue(group, wgmma, is_early)
wgmmas.commit(threads)
wgmmas.wait(group, keep)             in the order of issue: computes, frees the registers and shared memory
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from deuteron.emulator.faults import Fault


class Owner(Protocol):
    """A group of threads, whose registers wgmmas write."""

    threads: np.ndarray
    in_flight: set[int]


@dataclass(eq=False)
class Wgmma:
    """One wgmma of some threads. `compute(group, threads)` updates the accumulators of these threads, whole
    warpgroups, and `finish(threads)` is called when they have waited; `registers` are those it owns, and whether they
    may be read meanwhile."""

    threads: np.ndarray
    compute: Callable[[Owner, np.ndarray], None]
    finish: Callable[[np.ndarray], None]
    registers: dict[int, bool]
    label: str
    is_computed: bool = False
    groups: np.ndarray = field(init=False)

    def happen(self, group: Owner, threads: np.ndarray) -> None:
        if not self.is_computed:
            self.compute(group, threads)


class WgmmasInFlight:
    """Those of a wave that were not waited for."""

    def __init__(self, num_threads: int):
        self.committed = np.zeros(num_threads, np.int64)
        self.pending: list[Wgmma] = []

    def issue(self, group: Owner, wgmma: Wgmma, is_early: bool) -> None:
        wgmma.groups = self.committed[group.threads].copy()
        self.pending.append(wgmma)
        group.in_flight |= wgmma.registers.keys()
        if is_early:
            self._compute_all(group)

    def commit(self, threads: np.ndarray) -> None:
        self.committed[threads] += 1

    def wait(self, group: Owner, keep: int) -> None:
        last = np.full(len(self.committed), -1, np.int64)
        last[group.threads] = self.committed[group.threads] - keep - 1
        for wgmma in self.pending:
            done = wgmma.groups <= last[wgmma.threads]
            if done.any():
                wgmma.happen(group, wgmma.threads[done])
                wgmma.finish(wgmma.threads[done])
                wgmma.threads, wgmma.groups = wgmma.threads[~done], wgmma.groups[~done]
        self.pending = [wgmma for wgmma in self.pending if len(wgmma.threads)]
        self._release(group)

    def owner(self, index: int, threads: np.ndarray, only_reads: bool) -> tuple[str, np.ndarray] | None:
        """What is in flight and does not let these threads use a register, by name, and for which of them."""
        for wgmma in self.pending:
            if index in wgmma.registers and not (only_reads and wgmma.registers[index]):
                owning = np.isin(threads, wgmma.threads)
                if owning.any():
                    return wgmma.label, threads[owning]
        return None

    def check_exit(self, threads: np.ndarray) -> None:
        for wgmma in self.pending:
            left = np.isin(wgmma.threads, threads)
            if left.any():
                message = f"exits while {wgmma.label} is in flight: its completion was not waited for"
                raise Fault("asynchronous data", message, wgmma.threads[left])

    def _compute_all(self, group: Owner) -> None:
        """What is in flight, in the order of issue, as far as it is of the threads of this group alone."""
        for wgmma in self.pending:
            mine = np.isin(wgmma.threads, group.threads)
            if mine.any() and not mine.all():
                return
            if mine.any():
                wgmma.happen(group, wgmma.threads)
                wgmma.is_computed = True

    def _release(self, group: Owner) -> None:
        """Registers that no wgmma in flight owns may be used again."""
        owned: set[int] = set()
        for wgmma in self.pending:
            if np.isin(group.threads, wgmma.threads).any():
                owned |= wgmma.registers.keys()
        group.in_flight &= owned
