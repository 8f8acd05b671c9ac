"""Bytes of registers that were never written, followed through instructions that only put them elsewhere.

    mov.b32 %r1, {%rs1, %rs2};         %rs2 was never written: neither is the high half of %r1
    add.rn.f16x2 %r2, %r1, %r1;        nor that of %r2
    mov.b32 {%rs3, %rs4}, %r2;         %rs3 may be used, %rs4 may not
    add.s32 %r3, %r1, 1;               of %r3 the high half is unwritten: bytes of a sum depend on lower ones
    cvt.u16.u32 %rs5, %r3;             %rs5 may be used
    shl.b32 %r4, %r1, 16;              so may %r4, from which that half is shifted out
    st.global.b16 [%rd1], %r3;         so may the low half here

LLVM computes with a pair, or a word, of which it needs one half. So a byte that was never written is at fault where it
is used, which is any instruction but these. Integers of which nothing was written are at fault in arithmetic, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from deuteron.cached_property import cached_property
from deuteron.emulator.machine.block_memory import POISON
from deuteron.emulator.machine.group import Group


@dataclass(frozen=True, eq=False)
class Parts:
    """Each source is a list of registers (None: constants, what is dropped) that make up `size` bytes one after the
    other; a byte of the destinations comes from the same byte of the sources, in `arithmetic` from lower ones as well.
    `cleared` are bytes that are 0 whatever the sources are. Before that the bytes of the sources move up by `raised`
    bytes, as in a shift. `guard` says which threads move them (None: all)."""

    destinations: tuple[int | None, ...]
    sources: tuple[tuple[int | None, ...], ...]
    size: int
    guard: Callable[[Group], np.ndarray] | None = None
    arithmetic: bool = False
    cleared: np.ndarray | None = None
    raised: int = 0

    @cached_property
    def moved(self) -> frozenset[int]:
        """The registers among the sources."""
        return frozenset(index for registers in self.sources for index in registers if index is not None)

    def spread(self, group: Group) -> None:
        """The bytes of the destinations that come from unwritten ones are unwritten."""
        unwritten = np.zeros((group.size, self.size), bool)
        for registers in self.sources:
            unwritten |= np.concatenate([self._unwritten(group, index, len(registers)) for index in registers], 1)
        if self.raised:
            unwritten = np.pad(unwritten, ((0, 0), (self.raised, 0)))[:, : self.size]
        if self.arithmetic:
            unwritten = np.logical_or.accumulate(unwritten, 1)
        if self.cleared is not None:
            unwritten &= ~self.cleared
        for index, part in zip(self.destinations, np.split(unwritten, len(self.destinations), 1), strict=True):
            if index is None:
                continue
            if self.guard is not None:
                part = np.where(self.guard(group)[:, None], part, group.unwritten_bytes(index, part.shape[1]))
            group.set_unwritten(index, part)

    def fill(self, group: Group, dtype: np.dtype) -> None:
        """Give sources that no thread ever wrote some value."""
        for index in self.moved:
            if group.registers[index] is None:
                group.unwritten[index] = group.unwritten_bytes(index, dtype.itemsize)
                group.registers[index] = np.full(group.size * dtype.itemsize, POISON, np.uint8).view(dtype)
        self.spread(group)

    def _unwritten(self, group: Group, index: int | None, count: int) -> np.ndarray:
        width = self.size // count
        return np.zeros((group.size, width), bool) if index is None else group.unwritten_bytes(index, width)
