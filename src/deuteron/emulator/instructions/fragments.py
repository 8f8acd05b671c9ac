"""How matrices lie in the registers of a warp, for mma.sync and wgmma.

Lane 4g + t of a warp holds, with e elements in a register (the tile is 16 rows or, for M = 8, rows of g only):

    A (M x K)   register i, element j:   row g + 8 * (i % 2)      column e * t + j + 4 * e * (i // 2)
    B (K x N)   register i, element j:   row e * t + j + 4 * e * i      column g
    C (M x N)   register i:              row g + 8 * (i // 2 % 2)  column 2 * t + i % 2 + 8 * (i // 4)
"""

from __future__ import annotations

from functools import cache

import numpy as np

_LANES = np.arange(32)
_G, _T = _LANES // 4, _LANES % 4


@cache
def gather_a(rows: int, columns: int, per_register: int) -> np.ndarray:
    """Index [rows, columns] into the flattened [lane, register, element]."""
    registers = rows * columns // 32 // per_register
    lane, i, j = np.ix_(_LANES, np.arange(registers), np.arange(per_register))
    row_step = 8 * (i % 2) if rows == 16 else 0 * i
    half = i // 2 if rows == 16 else i
    row = lane // 4 + row_step + 0 * j
    column = per_register * (lane % 4) + j + 4 * per_register * half
    return _invert(row, column, rows, columns)


@cache
def gather_b(rows: int, columns: int, per_register: int) -> np.ndarray:
    registers = rows * columns // 32 // per_register
    lane, i, j = np.ix_(_LANES, np.arange(registers), np.arange(per_register))
    row = per_register * (lane % 4) + j + 4 * per_register * i
    return _invert(row, lane // 4 + 0 * row, rows, columns)


@cache
def gather_c(rows: int, columns: int) -> np.ndarray:
    """Index [rows, columns] into [lane, element]; two elements of a 16-bit accumulator share a register."""
    count = rows * columns // 32
    lane, i = np.ix_(_LANES, np.arange(count))
    row, column = accumulator_position(lane, i, rows)
    return _invert(row, column, rows, columns)


def accumulator_position(lane: np.ndarray, i: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray]:
    if rows == 8:
        return lane // 4 + 0 * i, 2 * (lane % 4) + i
    return lane // 4 + 8 * (i // 2 % 2), 2 * (lane % 4) + i % 2 + 8 * (i // 4)


@cache
def scatter_c(rows: int, columns: int) -> np.ndarray:
    """The inverse of `gather_c`: index [lane, element] into the flattened matrix."""
    lane, i = np.ix_(_LANES, np.arange(rows * columns // 32))
    row, column = accumulator_position(lane, i, rows)
    return row * columns + column


def _invert(row: np.ndarray, column: np.ndarray, rows: int, columns: int) -> np.ndarray:
    row, column = np.broadcast_arrays(row, column)
    result = np.empty((rows, columns), np.int64)
    result[row, column] = np.arange(row.size).reshape(row.shape)
    return result
