"""Assembles a kernel with a few registers less, where a multiprocessor then holds a third more of its CTAs.

    Used 34 registers, .reqntid 512     three CTAs, 48 of 64 warps
    .maxnreg 32                         four, which is kept if nothing more is spilled
    Used 40 registers, 16 bytes spilled
    .maxnreg 40                         the same, told, which is kept if less is spilled

ptxas takes the registers that suit its schedule and knows of no threshold. What memory bounds gains by CTAs whose
loads and stores overlap (layer norm of 16384x4096: 2.5 % on an H200). Sometimes it spills where it had registers left;
told a limit, it does not (layer norm of 1024 with 2 warps, ptxas 13.0 and 13.5). Dots on tensor cores stay as they
are, and so does a kernel that says itself how many registers it takes.
"""

from __future__ import annotations

import re

from deuteron.backend.cuda.occupancy import occupancy
from deuteron.backend.cuda.ptxas import Cubin, Resources, assemble
from deuteron.backend.cuda.target import Architecture
from deuteron.machine.gpu import GPU

# Of the registers: with fewer still, what is not spilled is computed again. Measured in the kernels above.
MAX_SAVED = 1 / 8
# Of CTAs: three to four gain 2.5 % in layer norm of 16384x4096 (above); smaller gains are not measured.
MIN_GAIN = 4 / 3
_THREADS = re.compile(r"^\.reqntid (\d+)\n", re.MULTILINE)
_STAYS = re.compile(r"\bmma|\bsetmaxnreg|^\.maxnreg", re.MULTILINE)


def assemble_to_fit(ptx: str, architecture: Architecture, dynamic_shared: int, fp_fusion: bool) -> Cubin:
    """The cubin of a kernel that is launched with so many bytes of shared memory."""
    cubin = assemble(ptx, architecture.name, fp_fusion)
    threads = _THREADS.search(ptx)
    if threads is None or _STAYS.search(ptx):
        return cubin
    shared = dynamic_shared + cubin.resources.shared_bytes
    limit = _limit(architecture.machine, int(threads[1]), cubin.resources, shared)
    if limit is None:
        return cubin
    fitted = assemble(_THREADS.sub(rf"\g<0>.maxnreg {limit}\n", ptx, count=1), architecture.name, fp_fusion)
    return fitted if fitted.resources.spill_bytes <= cubin.resources.spill_bytes else cubin


def _limit(machine: GPU, num_threads: int, used: Resources, shared_bytes: int) -> int | None:
    most = min(machine.registers.max_per_thread, machine.registers.count // num_threads)
    if used.spill_bytes and used.registers < most:
        return used.registers
    return rewarding_limit(machine, num_threads, used.registers, shared_bytes)


def rewarding_limit(machine: GPU, num_threads: int, registers: int, shared_bytes: int) -> int | None:
    """The most registers, fewer than these, with which enough more CTAs fit; None where it takes too few."""

    def ctas(count: int) -> int:
        return occupancy(machine, num_threads, count, shared_bytes).ctas

    wanted = max(ctas(registers) * MIN_GAIN, 1)
    counts = range(registers - 1, registers - int(registers * MAX_SAVED) - 1, -1)
    return next((count for count in counts if ctas(count) >= wanted), None)
