"""How many CTAs (thread blocks) of a kernel a multiprocessor holds, and what limits it.

    occupancy(architecture(90).machine, num_threads=256, registers=168, shared_bytes=98304)
    Occupancy(ctas=1, warps=8, max_warps=64, limited_by=("registers",))

Registers are given to warps in units of 256, and a warp belongs to one of four partitions; shared memory in units of
128 bytes, of which each CTA costs 1 KB more than it asks for (CUDA C++ Programming Guide, "Compute Capabilities").
"""

from __future__ import annotations

from dataclasses import dataclass

from deuteron.machine.gpu import GPU, RegisterFile, SharedMemory


@dataclass(frozen=True)
class Occupancy:
    """CTAs and warps on a multiprocessor at a time; `limited_by` what no further CTA would fit into."""

    ctas: int
    warps: int
    max_warps: int
    limited_by: tuple[str, ...]


def occupancy(machine: GPU, num_threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """The occupancy of CTAs of `num_threads` threads, each with so many registers."""
    warps = -(-num_threads // machine.warp_size)
    limits = {
        "warps": machine.resident_warps // warps,
        "CTAs": machine.resident_ctas,
        "registers": _warps_by_registers(machine.registers, max(registers, 1) * machine.warp_size) // warps,
        "shared memory": _by_shared(machine.shared, shared_bytes),
    }
    ctas = min(limits.values())
    limited_by = tuple(name for name, limit in limits.items() if limit == ctas)
    return Occupancy(ctas, ctas * warps, machine.resident_warps, limited_by)


def _warps_by_registers(file: RegisterFile, of_warp: int) -> int:
    return file.count // file.partitions // _rounded(of_warp, file.unit) * file.partitions


def _by_shared(memory: SharedMemory, num_bytes: int) -> int:
    return memory.bytes_per_multiprocessor // _rounded(num_bytes + memory.reserved_bytes, memory.unit)


def _rounded(value: int, unit: int) -> int:
    return -(-value // unit) * unit
