"""What each line costs in a launch on the emulator.

    read_profile(kernel, sources, Run((8,), (x, out, 1000)))

Arrays are copied, as they lie in memory, to where a GPU would have them: aligned to 256 bytes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from deuteron.compiler.kernel import CompiledKernel
from deuteron.emulator.machine.global_memory import byte_bounds
from deuteron.errors import Location, UsageError
from deuteron.explorer.model import LineCost, Profile
from deuteron.explorer.sources import Sources

_ALIGNMENT = 256


@dataclass(frozen=True)
class Run:
    """A launch that is to be profiled: a grid, and arguments for all runtime parameters."""

    grid: Sequence[int]
    args: Sequence[object]


def read_profile(kernel: CompiledKernel, sources: Sources, run: Run) -> Profile:
    """The cost of a launch by source line; raises UsageError for a kernel that the emulator does not run."""
    from deuteron.emulator.kernels import profile_kernel  # deferred: most explorations launch nothing

    if "ptx" not in kernel.asm:
        raise UsageError(f"kernel '{kernel.name}' is for {kernel.metadata.target}: the emulator runs kernels for cuda")
    grid = (*run.grid, 1, 1)[:3]
    args = [_copied(arg) if isinstance(arg, np.ndarray) else arg for arg in run.args]
    found = profile_kernel(kernel.asm["ptx"], kernel.metadata, grid, args).lines()
    lines = (
        LineCost(sources.number(Location(file, line)) if file else None, **asdict(counts))
        for (file, line), counts in found.items()
    )
    return Profile(grid, tuple(lines))


def _copied(array: np.ndarray) -> np.ndarray:
    """A copy with the same strides, whatever lies between its elements."""
    low, high = byte_bounds(array)
    memory = np.empty(high - low + _ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % _ALIGNMENT
    memory[begin : begin + high - low] = np.frombuffer((ctypes.c_char * (high - low)).from_address(low), np.uint8)
    place = begin + array.ctypes.data - low
    return np.ndarray(array.shape, array.dtype, memory, place, array.strides)
