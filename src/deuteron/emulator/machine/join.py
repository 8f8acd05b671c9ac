"""Where threads that took different branches meet again: the immediate post-dominator of the branch.

    join = Join(pc, parent, threads)     made when a group diverges; both parts carry it
    join.arrive(part)                    a part reached `pc`; when all threads have, they go on as one group

Warps do not wait for each other on a GPU, only emulating them together is faster. So a join gives up: when nothing else
can run, warps that are complete here go on alone (`complete_warps`), and if that does not help, single threads.
"""

from __future__ import annotations

import numpy as np

from deuteron.emulator.machine.group import Group


class Join:
    """Threads that are expected at `pc`; `parent` is the join that they belong to after it."""

    def __init__(self, pc: int, parent: Join | None, threads: np.ndarray):
        self.pc = pc
        self.parent = parent
        self.members = set(threads.tolist())
        self.arrived: list[Group] = []

    @property
    def is_complete(self) -> bool:
        return sum(group.size for group in self.arrived) == len(self.members)

    def leave(self, threads: np.ndarray) -> None:
        """Threads that will never arrive, or have gone on."""
        self.members.difference_update(threads.tolist())

    def take_all(self) -> list[Group]:
        groups, self.arrived = self.arrived, []
        return groups

    def complete_warps(self) -> np.ndarray:
        """Threads that have arrived and whose warp has no member that has not."""
        threads = np.concatenate([g.threads for g in self.arrived])
        missing = np.array(sorted(self.members.difference(threads.tolist())), np.int64)
        wave = self.arrived[0].wave
        return threads[~np.isin(wave.warp_of(threads), wave.warp_of(missing))]
