"""How many blocks of a kernel a multiprocessor holds, and what limits it.

    occupancy(architecture(90), num_threads=256, registers=168, shared_bytes=98304)
    Occupancy(blocks=1, warps=8, max_warps=64, limited_by=("registers",))

Registers are given to warps in units of 256, and a warp belongs to one of four partitions; shared memory in units of
128 bytes, of which each block costs 1 KB more than it asks for (CUDA C++ Programming Guide, "Compute Capabilities").
"""

from __future__ import annotations

from dataclasses import dataclass

from deuteron.backend.cuda.target import RESERVED_SHARED_BYTES, Architecture
from deuteron.layout.multiprocessor import REGISTERS, WARP_SIZE

PARTITIONS = 4
REGISTER_UNIT = 256
SHARED_UNIT = 128


@dataclass(frozen=True)
class Occupancy:
    """Blocks and warps on a multiprocessor at a time; `limited_by` what no further block would fit into."""

    blocks: int
    warps: int
    max_warps: int
    limited_by: tuple[str, ...]


def occupancy(architecture: Architecture, num_threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """The occupancy of blocks of `num_threads` threads, each with so many registers."""
    warps = -(-num_threads // WARP_SIZE)
    limits = {
        "warps": architecture.max_warps // warps,
        "blocks": architecture.max_blocks,
        "registers": _by_registers(warps, registers),
        "shared memory": _by_shared(architecture, shared_bytes),
    }
    blocks = min(limits.values())
    limited_by = tuple(name for name, limit in limits.items() if limit == blocks)
    return Occupancy(blocks, blocks * warps, architecture.max_warps, limited_by)


def _by_registers(warps: int, registers: int) -> int:
    unit = _rounded(max(registers, 1) * WARP_SIZE, REGISTER_UNIT)
    warps_of_partition = REGISTERS // PARTITIONS // unit
    return warps_of_partition * PARTITIONS // warps


def _by_shared(architecture: Architecture, shared_bytes: int) -> int:
    return architecture.shared_bytes_per_multiprocessor // _rounded(shared_bytes + RESERVED_SHARED_BYTES, SHARED_UNIT)


def _rounded(value: int, unit: int) -> int:
    return -(-value // unit) * unit
