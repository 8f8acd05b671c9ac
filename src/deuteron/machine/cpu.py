"""What is true of a CPU, as its compiler has found it out.

CPU(cpu="x86-64-v3", features="", vector_bits=256, vector_registers=16,
    converts_half=True, rounds=True, fuses=True, exchanges_wide=True, masks_narrow=False, gathers_fast=False)
"""

from __future__ import annotations

from dataclasses import dataclass

# More is shared by many cores: sixteen of a Xeon's that say they have 300 MiB gain by storing 64 MiB past them, add
# 1.8 to 1.3 ms on all of them, 18 to 11 on one.
USUAL_CACHE = 32 << 20
USUAL_SECOND_CACHE = 1 << 20  # of one core


@dataclass(frozen=True)
class CPU:
    """Its LLVM name and features, its widest vector registers, and what it has instructions for.

    `converts_half`: fp16 from and to fp32. `rounds`: to whole numbers, which floor needs.
    `fuses`: x * y + z, rounded once. `exchanges_wide`: compares and exchanges 16 bytes.
    `masks_narrow`: moves of 8 and 16 bits under a mask. `gathers_fast`: of words, faster than finding out whether these
    lie close together.
    `cache_bytes`: of the last cache. `second_cache_bytes`: of that of one core.
    """

    cpu: str
    features: str
    vector_bits: int
    vector_registers: int
    converts_half: bool
    rounds: bool
    fuses: bool
    exchanges_wide: bool
    masks_narrow: bool
    gathers_fast: bool
    cache_bytes: int = USUAL_CACHE
    second_cache_bytes: int = USUAL_SECOND_CACHE

    def vector_width(self, element_bits: int) -> int:
        """How many elements a vector register holds."""
        return self.vector_bits // element_bits
