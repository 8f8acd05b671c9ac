"""The blocks that are resident at the same time: their threads, their memory, and who is still alive.

    residents = Residents(launch, blocks)

`blocks` are their linear numbers in the grid; those of a cluster are neighbours. Thread t of the i-th block has the
number i * block_size + t among them.
"""

from __future__ import annotations

import numpy as np
from numpy.random import default_rng

from deuteron.emulator.machine.block_memory import LocalMemory, SharedMemory
from deuteron.emulator.machine.launch_state import LaunchState
from deuteron.emulator.machine.windows import SHARED_BASE


class Residents:
    """`alive` says of each thread whether it has not exited; `num_events` counts what other threads can see."""

    def __init__(self, launch: LaunchState, blocks: np.ndarray):
        self.launch = launch
        self.blocks = blocks
        self.block_size = launch.block_size
        self.warps_per_block = -(-self.block_size // 32)
        self.num_threads = len(blocks) * self.block_size
        self.alive = np.ones(self.num_threads, bool)
        self.shared = SharedMemory(len(blocks), launch.shared_bytes, launch.cluster_size)
        self.local = LocalMemory(self.num_threads, launch.layout.local_bytes)
        self.memory = launch.memory
        self.random = default_rng(launch.options.seed + int(blocks[0]))
        self.num_events = 0

    def warp_of(self, threads: np.ndarray) -> np.ndarray:
        return threads // self.block_size * self.warps_per_block + threads % self.block_size // 32

    def shared_offset(self, flat: int) -> int:
        """The byte of the kernel's shared memory that a place in flat shared memory is."""
        return flat % self.shared.stride - SHARED_BASE

    def alive_in_block(self, slot: int) -> int:
        return int(self.alive[slot * self.block_size : (slot + 1) * self.block_size].sum())
