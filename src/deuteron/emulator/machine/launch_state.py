"""What all waves of a launch share: its sizes, its options, and the memory that every block sees.

state.block_index(5)          (1, 1, 0): the coordinates of the block with this number
state.address_of("table")     where a parameter or a variable of the module lies
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Protocol

import numpy as np

from deuteron.emulator.machine.global_memory import GlobalMemory
from deuteron.emulator.options import EmulatorOptions
from deuteron.emulator.variables import Layout
from deuteron.errors import LaunchError

Size = tuple[int, int, int]


class Recorder(Protocol):
    """Counts what a launch does; see `deuteron.emulator.profile`."""

    def count(self, pc: int, group: Any) -> None: ...

    def global_access(self, pc: int, warps: np.ndarray, address: np.ndarray, size: int) -> None: ...

    def shared_access(self, pc: int, warps: np.ndarray, lanes: np.ndarray, offset: np.ndarray, size: int) -> None: ...


@dataclass(eq=False)
class LaunchState:
    """`shared_granule`, `global_granule`: bytes of the narrowest access of such memory; `addresses`: of parameters and
    variables.
    """

    grid: Size
    block: Size
    cluster: Size
    has_cluster: bool
    dynamic_shared: int
    layout: Layout
    shared_granule: int
    global_granule: int
    options: EmulatorOptions
    memory: GlobalMemory = field(default_factory=GlobalMemory)
    addresses: dict[str, int] = field(default_factory=dict)
    recorder: Recorder | None = None

    @property
    def block_size(self) -> int:
        return prod(self.block)

    @property
    def cluster_size(self) -> int:
        return prod(self.cluster)

    @property
    def shared_bytes(self) -> int:
        return self.layout.dynamic_start + self.dynamic_shared

    def address_of(self, name: str) -> int:
        """The address of a parameter or a variable of the module."""
        if name not in self.addresses:
            raise LaunchError(f"the PTX names '{name}', which it does not define")
        return self.addresses[name]

    def block_index(self, number: int) -> Size:
        """The coordinates of the block with this number; the blocks of a cluster have consecutive numbers."""
        cluster, rank = divmod(number, self.cluster_size)
        clusters = [g // c for g, c in zip(self.grid, self.cluster, strict=True)]
        outer = _unflatten(cluster, clusters)
        inner = _unflatten(rank, self.cluster)
        x, y, z = (o * c + i for o, c, i in zip(outer, self.cluster, inner, strict=True))
        return x, y, z


def _unflatten(number: int, sizes: Sequence[int]) -> Size:
    return number % sizes[0], number // sizes[0] % sizes[1], number // (sizes[0] * sizes[1])
