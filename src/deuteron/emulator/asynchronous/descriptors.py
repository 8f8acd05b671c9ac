"""Matrix descriptors of wgmma: 64 bits that say where a tile lies in shared memory.

    tile = Descriptor(bits)
    tile.addresses(64, 16, 2, is_transposed=False)       byte addresses [64 rows, 16 of K] of 2-byte elements

Strides in the manual's words: LBO (leading dimension), SBO (stride dimension), both bytes (PTX manual, wgmma, "Matrix
Descriptor"; canonical layouts). "Rows" are M or N.
"""

from __future__ import annotations

import numpy as np

from deuteron.emulator.asynchronous.swizzle import pattern_bits, swizzle
from deuteron.emulator.faults import Fault

_SPANS = {0: 0, 1: 128, 2: 64, 3: 32}


class Descriptor:
    """The fields of a descriptor."""

    def __init__(self, bits: int):
        self.start = (bits & 0x3FFF) << 4
        self.leading = (bits >> 16 & 0x3FFF) << 4
        self.stride = (bits >> 32 & 0x3FFF) << 4
        self.base_offset = bits >> 49 & 7
        self.span = _SPANS[bits >> 62]
        self._check()

    def addresses(self, rows: int, depth: int, itemsize: int, is_transposed: bool) -> np.ndarray:
        """The address of each element [rows, depth]; `is_transposed`: rows are contiguous in memory, not K."""
        row, k = np.arange(rows)[:, None], np.arange(depth)[None, :]
        place = self._row_major if is_transposed else self._k_major
        return swizzle(self.start + place(row, k, itemsize), self.span)

    def _k_major(self, row: np.ndarray, k: np.ndarray, itemsize: int) -> np.ndarray:
        byte = k * itemsize
        if self.span:
            return row // 8 * self.stride + row % 8 * self.span + byte
        return row // 8 * self.stride + byte // 16 * self.leading + row % 8 * 16 + byte % 16

    def _row_major(self, row: np.ndarray, k: np.ndarray, itemsize: int) -> np.ndarray:
        byte = row * itemsize
        if self.span:
            return byte // self.span * self.leading + k // 8 * self.stride + k % 8 * self.span + byte % self.span
        return byte // 16 * self.stride + k // 8 * self.leading + k % 8 * 16 + byte % 16

    def _check(self) -> None:
        if self.base_offset:
            raise Fault("descriptor", f"a matrix descriptor has base offset {self.base_offset}, which is not modelled")
        if self.start & pattern_bits(self.span):
            message = f"a matrix descriptor starts at {self.start:#x}, within a pattern of its {self.span}-byte swizzle"
            raise Fault("descriptor", message)
