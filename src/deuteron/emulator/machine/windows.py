"""Where the state spaces lie in the generic address space.

Global, constant and parameter memory have the addresses of the NumPy arrays that hold them, so aliases and pointers in
memory work. Shared and local memory have windows at addresses that no process uses:

    generic address of shared offset 0x400 of the own block           0x0000_0100_0000_0400
    the same of block 1 of the cluster (as `mapa` gives it)           0x0000_0100_0200_0400
"""

SHARED_WINDOW = 1 << 40
LOCAL_WINDOW = 1 << 41
WINDOW_SIZE = 1 << 32
# Bits 24 and up of a shared::cluster address: the rank of the block in the cluster plus one, 0 for the own block. Those
# of variables have it where there are clusters: a GPU's have the rank there.
RANK_SHIFT = 24
OFFSET_MASK = (1 << RANK_SHIFT) - 1
# The first bytes of shared memory belong to the system on sm_90: nothing of the kernel is at address 0.
SHARED_BASE = 1024
