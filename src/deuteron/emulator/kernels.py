"""Launches a compiled kernel on the emulator: what `DEUTERON_EMULATE=1` does.

    run_kernel(kernel.asm["ptx"], kernel.metadata, grid=(8,), args=(x, y, out, 1000))

Block size, shared memory and cluster come from the metadata; `args` are the runtime parameters in order.
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron.backend.metadata import KernelMetadata
from deuteron.emulator.launch import Dim, launch
from deuteron.emulator.options import EmulatorOptions


def run_kernel(
    ptx: str, metadata: KernelMetadata, grid: Dim, args: Sequence[object], options: EmulatorOptions | None = None
) -> None:
    """Run a kernel on NumPy arrays or torch CPU tensors, in place; raises EmulatorError where it is at fault."""
    block = metadata.num_threads
    cluster = metadata.num_ctas if metadata.num_ctas > 1 else None
    launch(ptx, metadata.symbol, grid, block, metadata.shared, args, cluster, options)
