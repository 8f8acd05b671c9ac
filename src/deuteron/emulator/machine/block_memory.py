"""Shared memory of the blocks of a wave, and local memory of its threads: one array each, a stride for every owner.

    shared.flat_address(group, address, size)      index of the first byte in `shared.data`; checks the bounds

Fresh memory holds 0xA5 bytes, so that what reads it unwritten is seen even where the check for that is off.
"""

from __future__ import annotations

import numpy as np

from deuteron.emulator.faults import Fault
from deuteron.emulator.machine.global_memory import BITS
from deuteron.emulator.machine.windows import OFFSET_MASK, RANK_SHIFT, SHARED_BASE

POISON = 0xA5


class FlatMemory:
    """Bytes with a stride for every owner (a block or a thread)."""

    def __init__(self, num_owners: int, size: int):
        self.size = size
        self.stride = -(-size // 128) * 128
        self.data = np.full(max(num_owners * self.stride, 16), POISON, np.uint8)
        self.views = {width: self.data.view(dtype) for width, dtype in BITS.items()}

    def load_flat(self, flat: np.ndarray, width: int, count: int) -> np.ndarray:
        return self.views[width][_index(flat, width, count)]

    def store_flat(self, flat: np.ndarray, values: np.ndarray) -> None:
        width, count = values.itemsize, values.shape[1]
        self.views[width][_index(flat, width, count)] = values


def _index(flat: np.ndarray, width: int, count: int) -> np.ndarray:
    first = flat // width
    return first[:, None] + np.arange(count) if count > 1 else first[:, None]


class SharedMemory(FlatMemory):
    """The shared memory of every block of a wave; blocks of a cluster are neighbours."""

    def __init__(self, num_blocks: int, size: int, cluster_size: int):
        super().__init__(num_blocks, SHARED_BASE + size)
        self.cluster_size = cluster_size

    def base(self, slots: np.ndarray) -> np.ndarray:
        """What the addresses of variables have in each block: in a cluster its rank, as on a GPU."""
        return (slots % self.cluster_size + 1 << RANK_SHIFT) * (self.cluster_size > 1)

    def flat_address(self, slots: np.ndarray, address: np.ndarray, size: int) -> np.ndarray:
        """Byte index of shared::cta or shared::cluster addresses, seen from the blocks `slots`; checks the range."""
        address = address.astype(np.int64)
        offset = address & OFFSET_MASK
        rank = address >> RANK_SHIFT
        bad = (offset < SHARED_BASE) | (offset + size > self.size) | (rank < 0) | (rank > self.cluster_size)
        if bad.any():
            raise Fault("out-of-bounds", self._describe(int(address[bad][0]), size), np.flatnonzero(bad))
        if rank.any():
            first = slots // self.cluster_size * self.cluster_size
            slots = np.where(rank > 0, first + rank - 1, slots)
        return slots * self.stride + offset

    def _describe(self, address: int, size: int) -> str:
        offset, rank = address & OFFSET_MASK, address >> RANK_SHIFT
        if rank < 0 or rank > self.cluster_size:
            return f"accesses shared address {address:#x}: no block of the cluster has it"
        return (
            f"accesses {size} bytes at {offset - SHARED_BASE} of the {self.size - SHARED_BASE} bytes of shared memory"
        )


class LocalMemory(FlatMemory):
    """The local memory of every thread of a wave."""

    def flat_address(self, threads: np.ndarray, address: np.ndarray, size: int) -> np.ndarray:
        address = address.astype(np.int64)
        bad = (address < 0) | (address + size > self.size)
        if bad.any():
            message = f"accesses {size} bytes at {int(address[bad][0])} of {self.size} bytes of local memory"
            raise Fault("out-of-bounds", message, np.flatnonzero(bad))
        return threads * self.stride + address
