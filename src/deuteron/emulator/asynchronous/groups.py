"""Asynchronous operations that a thread commits in groups and waits for: cp.async, and bulk stores.

    groups.add(operation)                into the group that each of its threads has open
    groups.commit(threads)
    groups.wait(threads, 1)              complete all but the thread's last group

An operation happens at some moment between its issue and the wait for it (`perform`); that it is over counts as known
from the wait on only (`finish`), whenever it happened: so what the checks find does not depend on the moment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from deuteron.emulator.faults import Fault


@dataclass(eq=False)
class Operation:
    """One instruction in flight, of the `threads` that have not waited for it. `perform` and `finish` are called with
    the positions of threads among those that issued it."""

    threads: np.ndarray
    perform: Callable[[np.ndarray], None]
    finish: Callable[[np.ndarray], None]
    label: str
    number: int = field(init=False)
    positions: np.ndarray = field(init=False)
    is_performed: np.ndarray = field(init=False)
    groups: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.positions = np.arange(len(self.threads))
        self.is_performed = np.zeros(len(self.threads), bool)

    def happen(self, chosen: np.ndarray | None = None) -> None:
        """Perform what was not yet, for all threads or those of a mask."""
        due = ~self.is_performed if chosen is None else chosen & ~self.is_performed
        if due.any():
            self.perform(self.positions[due])
            self.is_performed |= due

    def complete(self, chosen: np.ndarray) -> None:
        self.happen(chosen)
        self.finish(self.positions[chosen])
        kept = ~chosen
        self.threads, self.positions, self.groups = self.threads[kept], self.positions[kept], self.groups[kept]
        self.is_performed = self.is_performed[kept]


class Groups:
    """`committed[t]` is the number of groups that thread t has committed; operations with a number below `followed[t]`
    something else than a group waits for."""

    def __init__(self, num_threads: int):
        self.committed = np.zeros(num_threads, np.int64)
        self.followed = np.zeros(num_threads, np.int64)
        self.num_issued = 0
        self.pending: list[Operation] = []

    def add(self, operation: Operation) -> None:
        operation.number, self.num_issued = self.num_issued, self.num_issued + 1
        operation.groups = self.committed[operation.threads].copy()
        self.pending.append(operation)

    def commit(self, threads: np.ndarray) -> None:
        self.committed[threads] += 1

    def wait(self, threads: np.ndarray, keep: int) -> None:
        """Complete for these threads all groups but the last `keep`; -1: what is not committed, too."""
        if not self.pending:
            return
        last = np.full(len(self.committed), -1, np.int64)
        last[threads] = self.committed[threads] - keep - 1
        self._complete(lambda operation: operation.groups <= last[operation.threads])

    def follow(self, threads: np.ndarray) -> int:
        """Something else waits for what these threads have issued so far; to be given to `complete_before`."""
        self.followed[threads] = self.num_issued
        return self.num_issued

    def complete_before(self, threads: np.ndarray, number: int) -> None:
        self._complete(lambda operation: np.isin(operation.threads, threads) & (operation.number < number))

    def _complete(self, choose: Callable[[Operation], np.ndarray]) -> None:
        for operation in self.pending:
            chosen = choose(operation)
            if chosen.any():
                operation.complete(chosen)
        self.pending = [operation for operation in self.pending if len(operation.threads)]

    def check_release(self, threads: np.ndarray) -> None:
        """Raise where one of these threads, which release what they wrote, did not wait."""
        for operation in self.pending:
            left = np.isin(operation.threads, threads)
            if left.any():
                message = f"releases memory that {operation.label} still writes: its completion was not waited for"
                raise Fault("asynchronous data", message, operation.threads[left])

    def check_exit(self, threads: np.ndarray) -> None:
        """Raise where one of these threads, which exit, did not wait."""
        for operation in self.pending:
            left = np.isin(operation.threads, threads) & (self.followed[operation.threads] <= operation.number)
            if left.any():
                message = f"exits while {operation.label} still uses shared memory: its completion was not waited for"
                raise Fault("asynchronous data", message, operation.threads[left])
