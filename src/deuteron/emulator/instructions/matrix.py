"""ldmatrix and stmatrix: 8x8 tiles of 16-bit elements between shared memory and the registers of a warp.

    ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r1, %r2, %r3, %r4}, [%r5];

Lane 8i + r gives the address of row r of tile i (16 bytes); lane 4g + t gets elements 2t, 2t + 1 of row g (trans: of
column g).
"""

from __future__ import annotations

import numpy as np

from deuteron.emulator.instructions.accesses import SPACES, load, store
from deuteron.emulator.instructions.convergence import WARP, together
from deuteron.emulator.instructions.operands import Decoding
from deuteron.emulator.instructions.rules import Rules

RULES = Rules()


def _take_form(d: Decoding) -> tuple[int, bool, str]:
    d.choice("sync")
    d.flag("aligned")
    d.choice("m8n8")
    count = int(d.choice("x1", "x2", "x4")[1:])
    is_transposed = d.flag("trans")
    space = d.choice(*SPACES, default="generic")
    d.choice("b16")
    return count, is_transposed, space


@RULES.effect("ldmatrix")
def decode_ldmatrix(d: Decoding):
    count, is_transposed, space = _take_form(d)
    writes = [d.set(operand, "b32") for operand in d.vector(0)]
    if len(writes) != count:
        raise d.error(f"expected {count} destinations")
    address, pc = d.address(1), d.pc

    def run(group):
        group.pc = pc
        rows = load(group, space, address(group), group.lanes < 8 * count, 4, 4)
        tiles = _transposed(rows) if is_transposed else rows
        words = tiles.reshape(len(group.warp_numbers), count, 32)
        for index, write in enumerate(writes):
            write(group, np.ascontiguousarray(words[:, index]).reshape(-1))

    return together(d, WARP, run)


@RULES.effect("stmatrix")
def decode_stmatrix(d: Decoding):
    count, is_transposed, space = _take_form(d)
    reads = [d.get(operand, "b32") for operand in d.vector(1)]
    address, pc = d.address(0), d.pc

    def run(group):
        group.pc = pc
        words = np.stack([read(group).reshape(-1, 32) for read in reads], 1)
        rows = np.ascontiguousarray(words).reshape(-1, 4)
        rows = _transposed(rows) if is_transposed else rows
        chosen = group.lanes < 8 * count
        values = np.zeros((group.size, 4), np.uint32)
        values[chosen] = rows
        store(group, space, address(group), chosen, values)

    return together(d, WARP, run)


def _transposed(rows: np.ndarray) -> np.ndarray:
    """Rows of four words, eight rows a tile: every tile of 8x8 halves transposed."""
    tiles = np.ascontiguousarray(rows).view(np.uint16).reshape(-1, 8, 8)
    return np.ascontiguousarray(tiles.transpose(0, 2, 1)).view(np.uint32).reshape(-1, 4)
