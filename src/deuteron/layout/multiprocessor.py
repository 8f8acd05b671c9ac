"""What NVIDIA's multiprocessors have in common from sm_80 on (CUDA Programming Guide, "Compute Capabilities")."""

from __future__ import annotations

WARP_SIZE = 32  # threads
WARPGROUP = 4  # warps
REGISTERS = 64 * 1024  # of a multiprocessor, of 32 bits
MAX_REGISTERS = 255  # of a thread
