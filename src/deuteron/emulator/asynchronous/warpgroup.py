"""wgmma in flight: products that are computed at some moment before the warpgroup has waited for them.

products.issue(group, product, is_early)
products.commit(threads)
products.wait(group, keep)             in the order of issue: computes, frees the registers and shared memory
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from deuteron.emulator.faults import Fault


@dataclass(frozen=True)
class InFlight:
    """A register that an asynchronous instruction owns until it is waited for; the sources of one may be read."""

    label: str
    may_read: bool


class Owner(Protocol):
    """A group of threads, whose registers products write."""

    threads: np.ndarray
    guards: dict[int, np.ndarray | InFlight]


@dataclass(eq=False)
class Product:
    """One wgmma of some threads. `compute(group, threads)` updates the accumulators of these threads, whole
    warpgroups, and `finish(threads)` is called when they have waited; `registers` are those it owns, and whether they
    may be read meanwhile."""

    threads: np.ndarray
    compute: Callable[[Owner, np.ndarray], None]
    finish: Callable[[np.ndarray], None]
    registers: dict[int, InFlight]
    label: str
    is_computed: bool = False
    groups: np.ndarray = field(init=False)

    def happen(self, group: Owner, threads: np.ndarray) -> None:
        if not self.is_computed:
            self.compute(group, threads)


class Products:
    """The wgmma of a wave that were not waited for."""

    def __init__(self, num_threads: int):
        self.committed = np.zeros(num_threads, np.int64)
        self.pending: list[Product] = []

    def issue(self, group: Owner, product: Product, is_early: bool) -> None:
        product.groups = self.committed[group.threads].copy()
        self.pending.append(product)
        for index, guard in product.registers.items():
            old = group.guards.get(index)
            keeps_old = isinstance(old, InFlight) and not old.may_read
            group.guards[index] = old if keeps_old else guard
        if is_early:
            self._compute_all(group)

    def commit(self, threads: np.ndarray) -> None:
        self.committed[threads] += 1

    def wait(self, group: Owner, keep: int) -> None:
        last = np.full(len(self.committed), -1, np.int64)
        last[group.threads] = self.committed[group.threads] - keep - 1
        for product in self.pending:
            done = product.groups <= last[product.threads]
            if done.any():
                product.happen(group, product.threads[done])
                product.finish(product.threads[done])
                product.threads, product.groups = product.threads[~done], product.groups[~done]
        self.pending = [product for product in self.pending if len(product.threads)]
        self._release(group)

    def check_exit(self, threads: np.ndarray) -> None:
        for product in self.pending:
            left = np.isin(product.threads, threads)
            if left.any():
                message = f"exits while {product.label} is in flight: its completion was not waited for"
                raise Fault("asynchronous data", message, product.threads[left])

    def _compute_all(self, group: Owner) -> None:
        """What is in flight, in the order of issue, as far as it is of the threads of this group alone."""
        for product in self.pending:
            mine = np.isin(product.threads, group.threads)
            if mine.any() and not mine.all():
                return
            if mine.any():
                product.happen(group, product.threads)
                product.is_computed = True

    def _release(self, group: Owner) -> None:
        """Registers that no product in flight owns may be used again."""
        owned: set[int] = set()
        for product in self.pending:
            if np.isin(group.threads, product.threads).any():
                owned |= product.registers.keys()
        for index, guard in list(group.guards.items()):
            if isinstance(guard, InFlight) and index not in owned:
                del group.guards[index]
