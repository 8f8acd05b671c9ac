"""The blocks that run at the same time, and everything that belongs to them while they run.

wave = Wave(launch, blocks)
"""

from __future__ import annotations

import numpy as np

from deuteron.emulator.asynchronous.mbarriers import MBarriers
from deuteron.emulator.asynchronous.state import AsyncState
from deuteron.emulator.checks.global_checks import GlobalChecks
from deuteron.emulator.checks.shared_checks import SharedChecks
from deuteron.emulator.faults import Place, format_ranges
from deuteron.emulator.machine.barriers import Barrier
from deuteron.emulator.machine.launch_state import LaunchState
from deuteron.emulator.machine.residents import Residents
from deuteron.ptx.syntax import Instruction


class Wave(Residents):
    """`barrier_places` says at which barrier of its block a thread arrived last, and in which round of it."""

    def __init__(self, launch: LaunchState, blocks: np.ndarray):
        super().__init__(launch, blocks)
        self.barriers: dict[tuple[int, int], Barrier] = {}
        self.barrier_places = np.full((self.num_threads, 2), -1)
        self.cluster_rounds = np.full(self.num_threads, -1)
        self.converging: dict[int, np.ndarray] = {}
        self.asynchronous = AsyncState(self)
        self.mbarriers = MBarriers()
        self.checks = SharedChecks(self) if launch.options.check_shared else None
        self.global_checks = self._global_checks() if launch.options.check_global else None
        self.recorder = launch.recorder
        self.specials: dict[str, np.ndarray] = {}

    def _global_checks(self) -> GlobalChecks | None:
        """What is ordered the checks of shared memory know."""
        return GlobalChecks(self, self.checks.clocks) if self.checks is not None and self.block_size > 32 else None

    def exit(self, threads: np.ndarray) -> None:
        self.asynchronous.check_exit(threads)
        self.alive[threads] = False
        self.num_events += 1
        for slot in np.unique(threads // self.block_size).tolist() if self.checks is not None else ():
            if not self.alive_in_block(slot):
                self.checks.exit_block(slot, threads)

    def place(self, kernel: str, instruction: Instruction, threads: np.ndarray) -> Place:
        """Where an instruction of some threads is, those of the first block."""
        block, text = None, ""
        if len(threads):
            slot = int(threads[0]) // self.block_size
            block = self.launch.block_index(int(self.blocks[slot]))
            text = format_ranges(threads[threads // self.block_size == slot] % self.block_size)
        return Place(kernel, instruction.line, instruction.text, instruction.source, block, text)
