"""The blocks that are resident at the same time, and everything that belongs to them while they run.

    wave = Wave(launch, blocks)      blocks: their linear numbers in the grid; the blocks of a cluster are neighbours

Thread t of the i-th block has the number i * block_size + t within the wave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deuteron.emulator.asynchronous.mbarriers import MBarriers
from deuteron.emulator.asynchronous.state import AsyncState
from deuteron.emulator.asynchronous.warpgroup import Products
from deuteron.emulator.checks.shared_checks import SharedChecks
from deuteron.emulator.faults import EmulatorError, Fault, Place, format_ranges, make_error
from deuteron.emulator.machine.barriers import Barrier
from deuteron.emulator.machine.block_memory import LocalMemory, SharedMemory
from deuteron.emulator.machine.group import Group
from deuteron.emulator.machine.windows import SHARED_BASE

if TYPE_CHECKING:
    from deuteron.emulator.launch import Launch
    from deuteron.emulator.machine.scheduler import Scheduler
    from deuteron.emulator.program import Program


class Wave:
    """`alive` says of each thread whether it has not exited; `num_events` counts what other threads can see;
    `barrier_places` says at which barrier of its block a thread arrived last, and in which round of it."""

    scheduler: Scheduler

    def __init__(self, launch: Launch, blocks: np.ndarray):
        self.launch = launch
        self.blocks = blocks
        self.block_size = launch.block_size
        self.warps_per_block = -(-self.block_size // 32)
        self.num_threads = len(blocks) * self.block_size
        self.alive = np.ones(self.num_threads, bool)
        self.shared = SharedMemory(len(blocks), launch.shared_bytes, launch.cluster_size)
        self.local = LocalMemory(self.num_threads, launch.program.layout.local_bytes)
        self.memory = launch.memory
        self.random = np.random.default_rng(launch.options.seed + int(blocks[0]))
        self.barriers: dict[tuple[int, int], Barrier] = {}
        self.barrier_places = np.full((self.num_threads, 2), -1)
        self.converging: dict[int, np.ndarray] = {}
        self.asynchronous = AsyncState(self)
        self.mbarriers = MBarriers()
        self.products = Products(self.num_threads)
        self.checks = SharedChecks(self) if launch.options.check_shared else None
        self.counter = launch.profile.count if launch.profile is not None else None
        self.profile = launch.profile
        self.cluster_rounds = np.full(self.num_threads, -1)
        self.num_events = 0
        self._specials: dict[str, np.ndarray] = {}

    def warp_of(self, threads: np.ndarray) -> np.ndarray:
        return threads // self.block_size * self.warps_per_block + threads % self.block_size // 32

    def exit(self, threads: np.ndarray) -> None:
        self.asynchronous.check_exit(threads)
        self.alive[threads] = False
        self.num_events += 1
        for slot in np.unique(threads // self.block_size).tolist() if self.checks is not None else ():
            if not self.alive_in_block(slot):
                self.checks.exit_block(slot, threads)

    def shared_offset(self, flat: int) -> int:
        """The byte of the kernel's shared memory that a place in flat shared memory is."""
        return flat % self.shared.stride - SHARED_BASE

    def alive_in_block(self, slot: int) -> int:
        return int(self.alive[slot * self.block_size : (slot + 1) * self.block_size].sum())

    def special(self, name: str) -> np.ndarray:
        """The value of a special register for every thread of the wave."""
        if "clock" in name or "timer" in name:
            return self.launch.specials.value(name, self)
        if name not in self._specials:
            self._specials[name] = self.launch.specials.value(name, self)
        return self._specials[name]

    def place(self, program: Program, pc: int, threads: np.ndarray) -> Place:
        instruction = program.steps[pc].instruction
        block, text = None, ""
        if len(threads):
            slot = int(threads[0]) // self.block_size
            block = self.launch.block_index(int(self.blocks[slot]))
            text = format_ranges(threads[threads // self.block_size == slot] % self.block_size)
        name = program.function.name
        return Place(name, instruction.line, instruction.text, instruction.source, block, text)

    def make_error(self, program: Program, fault: Fault, group: Group) -> EmulatorError:
        threads = fault.threads if len(fault.threads) else group.threads
        return make_error(fault, self.place(program, group.pc, np.sort(threads)))
