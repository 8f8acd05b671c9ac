"""wgmma in flight: products that are computed when the warpgroup waits for them.

wave.products.issue(group, compute, registers)
wave.products.commit(threads)
wave.products.wait(group, keep)             computes, writes the registers of the group, in the order of issue
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from deuteron.emulator.machine.group import Group, InFlight


@dataclass(eq=False)
class Product:
    """One wgmma of some threads. `compute(group, threads)` updates the accumulators of these threads, whole
    warpgroups; `registers` are those it owns, and whether they may be read meanwhile."""

    threads: np.ndarray
    compute: Callable[[Group, np.ndarray], None]
    registers: dict[int, InFlight]
    groups: np.ndarray


class Products:
    """The wgmma of a wave that were not waited for."""

    def __init__(self, num_threads: int):
        self.committed = np.zeros(num_threads, np.int64)
        self.pending: list[Product] = []

    def issue(self, group: Group, compute: Callable, registers: dict[int, InFlight]) -> None:
        groups = self.committed[group.threads].copy()
        self.pending.append(Product(group.threads, compute, registers, groups))
        for index, guard in registers.items():
            old = group.guards.get(index)
            keeps_old = isinstance(old, InFlight) and not old.may_read
            group.guards[index] = old if keeps_old else guard

    def commit(self, threads: np.ndarray) -> None:
        self.committed[threads] += 1

    def wait(self, group: Group, keep: int) -> None:
        last = np.full(len(self.committed), -1, np.int64)
        last[group.threads] = self.committed[group.threads] - keep - 1
        for product in self.pending:
            done = product.groups <= last[product.threads]
            if done.any():
                product.compute(group, product.threads[done])
                product.threads, product.groups = product.threads[~done], product.groups[~done]
        self.pending = [product for product in self.pending if len(product.threads)]
        self._release(group)

    def _release(self, group: Group) -> None:
        """Registers that no product in flight owns may be used again."""
        owned: set[int] = set()
        for product in self.pending:
            if np.isin(group.threads, product.threads).any():
                owned |= product.registers.keys()
        for index, guard in list(group.guards.items()):
            if isinstance(guard, InFlight) and index not in owned:
                del group.guards[index]
