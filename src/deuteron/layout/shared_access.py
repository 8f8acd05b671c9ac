"""How a warp accesses a tile in shared memory: lane by lane in vectors, or eight rows of 16 bytes at a time, as
ldmatrix and stmatrix do; and how often banks are asked twice.

    offsets = Offsets.of(layout, memory, 2)          what each bit of (register, lane, warp) adds, in bytes
    find_matrices(offsets)                           Matrices(transposed=False, rows=(128, 256, 512), word_bits=(0,))
    conflicts(offsets.lanes, vector_bytes=16)        0

Lane l has word l % 4 of row l / 4 of a matrix; with `.trans`, of 16-bit elements, those of column l / 4 in row
2 * (l % 4) and the next:

                 registers in a word      lanes 1, 2              lanes 4, 8, 16
    plain        next elements in memory  next words in memory    rows
    transposed   rows                     rows                    next elements in memory

What else moves a register or a warp moves by whole rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deuteron.layout import f2
from deuteron.layout.linear import LANE, REGISTER, WARP, LinearLayout, log2

ROW_BYTES, WORD_BYTES, VECTOR_BYTES = 16, 4, 16
PHASE_BYTES = 128  # what all banks give at once


@dataclass(frozen=True)
class Offsets:
    """What each bit of a register's, lane's, warp's number adds (by XOR) to the offset in memory, in bytes."""

    registers: list[int]
    lanes: list[int]
    warps: list[int]
    element_bytes: int

    @classmethod
    def of(cls, layout: LinearLayout, memory: LinearLayout, element_bytes: int) -> Offsets:
        """Of a tile that threads have in `layout`, and memory in `memory` (offset -> coordinates)."""
        to_offset = layout.compose(memory.right_inverse())
        columns = ([element_bytes * basis[0] for basis in to_offset.of(name)] for name in (REGISTER, LANE, WARP))
        return cls(*columns, element_bytes)

    @property
    def vector_bytes(self) -> int:
        """The widest vector of neighbours that a thread has: only registers decide the lowest bits."""
        bits, size = 0, self.element_bytes
        while size << bits < VECTOR_BYTES and self._is_in_registers(size << bits):
            bits += 1
        return size << bits

    def _is_in_registers(self, offset: int) -> bool:
        moved = any(column & offset for column in (*self.lanes, *self.warps))
        return not moved and f2.solve(self.registers, offset) is not None


@dataclass(frozen=True)
class Matrices:
    """`rows`: the offsets that the three bits of a row's number add; `word_bits`: the register bits within a word."""

    transposed: bool
    rows: tuple[int, ...]
    word_bits: tuple[int, ...]


def find_matrices(offsets: Offsets) -> Matrices | None:
    """The matrices that a tile consists of; None where it does not."""
    return _plain(offsets) or _transposed(offsets)


def _plain(offsets: Offsets) -> Matrices | None:
    registers, lanes, size = offsets.registers, offsets.lanes, offsets.element_bytes
    in_word = [size << bit for bit in range(log2(WORD_BYTES // size))] if size <= WORD_BYTES else [0]
    if any(offset not in registers for offset in in_word) or lanes[:2] != [WORD_BYTES, 2 * WORD_BYTES]:
        return None
    bits = tuple(registers.index(offset) for offset in in_word)
    rest = [offset for bit, offset in enumerate(registers) if bit not in bits]
    return Matrices(False, tuple(lanes[2:]), bits) if _are_rows([*rest, *lanes[2:], *offsets.warps]) else None


def _transposed(offsets: Offsets) -> Matrices | None:
    registers, lanes = offsets.registers, offsets.lanes
    has_columns = offsets.element_bytes == 2 and registers and lanes[2:] == [2, 4, 8]
    if not has_columns or not _are_rows([*registers, *lanes[:2], *offsets.warps]):
        return None
    return Matrices(True, (registers[0], *lanes[:2]), (0,))


def _are_rows(offsets: Sequence[int]) -> bool:
    return all(offset % ROW_BYTES == 0 for offset in offsets)


def conflicts(lanes: Sequence[int], vector_bytes: int) -> int:
    """How many further passes an access takes in which each bit of a lane's number adds such an offset: 0 if the lanes
    that memory serves together, as many as 128 bytes are for, are in different banks. Lanes at one place count once.
    """
    together = lanes[: log2(PHASE_BYTES // max(vector_bytes, WORD_BYTES))]
    words = [offset & -max(vector_bytes, WORD_BYTES) for offset in together]
    return (1 << f2.rank(words) - f2.rank([offset % PHASE_BYTES for offset in words])) - 1
