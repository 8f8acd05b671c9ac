"""The swizzles of TMA and wgmma: 16-byte chunks are exchanged by exclusive or with the row's address bits.

swizzle(address, 128)      bits 4-6 ^= bits 7-9;   64: bits 4-5 ^= bits 7-8;   32: bit 4 ^= bit 7
"""

from __future__ import annotations

import numpy as np

_ROWS = {0: 0, 32: 1, 64: 3, 128: 7}


def swizzle(address: np.ndarray, span: int) -> np.ndarray:
    """Shared-memory byte addresses under the swizzle with this span in bytes (0: none)."""
    return address ^ ((address >> 7 & _ROWS[span]) << 4)


def pattern_bits(span: int) -> int:
    """The address bits that are zero where a pattern begins."""
    return _ROWS[span] << 7
