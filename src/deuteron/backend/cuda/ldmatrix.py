"""ldmatrix: 8x8 matrices from shared memory into registers, where the layouts' algebra shows rows of 16 bytes.

    load_matrices(ctx, tile, layout)      the bits of each register, or None

Eight lanes give the addresses of the rows of a matrix; up to four are loaded at once. Lane l gets word l % 4 of row
l / 4; with `.trans`, of 16-bit elements, those of column l / 4 in row 2 * (l % 4) and the next:

                 registers in a word      lanes 1, 2              lanes 4, 8, 16
    plain        next elements in memory  next words in memory    rows
    transposed   rows                     rows                    next elements in memory

What else moves a register or a warp moves by whole rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deuteron.backend.cuda.context import Context
from deuteron.backend.cuda.shared_tile import Addresses, SharedTile
from deuteron.backend.cuda.words import struct_members, struct_type, unpack
from deuteron.backend.llvm.types import Value, byte_width
from deuteron.layout import f2
from deuteron.layout.linear import LANE, REGISTER, WARP, LinearLayout, log2

ROW_BYTES, WORD_BYTES, MAX_MATRICES = 16, 4, 4


@dataclass(frozen=True)
class _Matrices:
    """`rows`: the offsets that the three bits of a row's number add; `word_bits`: the register bits within a word."""

    transposed: bool
    rows: tuple[int, ...]
    word_bits: tuple[int, ...]


def load_matrices(ctx: Context, tile: SharedTile, layout: LinearLayout) -> list[Value] | None:
    """Load a tile; None where ldmatrix does not load such a layout."""
    size, to_offset = byte_width(tile.type), layout.compose(tile.layout.right_inverse())
    registers, lanes, warps = ([size * basis[0] for basis in to_offset.of(name)] for name in (REGISTER, LANE, WARP))
    found = _plain(registers, lanes, warps, size) or _transposed(registers, lanes, warps, size)
    if found is None:
        return None
    others = [bit for bit in range(len(registers)) if bit not in found.word_bits]
    matrix_bits = others[: log2(MAX_MATRICES)]
    in_address = [registers[bit] for bit in matrix_bits] + [0] * (log2(MAX_MATRICES) - len(matrix_bits))
    thread = ctx.threads.image([*found.rows, *in_address], warps)
    addresses, results = Addresses(ctx.b, tile, thread), {}
    for first in _combinations(others[len(matrix_bits) :]):
        words = _load(ctx, addresses.at(f2.apply(registers, first)), 1 << len(matrix_bits), found.transposed)
        for matrix, word in zip(_combinations(matrix_bits), words, strict=True):
            elements = unpack(ctx.b, [word], tile.type, 1 << len(found.word_bits))
            for within, element in zip(_combinations(found.word_bits), elements, strict=True):
                results[first | matrix | within] = element
    return [results[register] for register in range(len(results))]


def _plain(registers: list[int], lanes: list[int], warps: list[int], size: int) -> _Matrices | None:
    in_word = [size << bit for bit in range(log2(WORD_BYTES // size))] if size <= WORD_BYTES else [0]
    if any(offset not in registers for offset in in_word) or lanes[:2] != [WORD_BYTES, 2 * WORD_BYTES]:
        return None
    bits = tuple(registers.index(offset) for offset in in_word)
    rest = [offset for bit, offset in enumerate(registers) if bit not in bits]
    return _Matrices(False, tuple(lanes[2:]), bits) if _are_rows([*rest, *lanes[2:], *warps]) else None


def _transposed(registers: list[int], lanes: list[int], warps: list[int], size: int) -> _Matrices | None:
    if size != 2 or not registers or lanes[2:] != [2, 4, 8] or not _are_rows([*registers, *lanes[:2], *warps]):
        return None
    return _Matrices(True, (registers[0], *lanes[:2]), (0,))


def _are_rows(offsets: Sequence[int]) -> bool:
    return all(offset % ROW_BYTES == 0 for offset in offsets)


def _combinations(bits: Sequence[int]) -> list[int]:
    """All masks of these bits, the first bit changing the fastest."""
    return [sum((number >> i & 1) << bit for i, bit in enumerate(bits)) for number in range(1 << len(bits))]


def _load(ctx: Context, address: Value, count: int, transposed: bool) -> list[Value]:
    form = f"x{count}.trans" if transposed else f"x{count}"
    name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.{form}.b16.p3"
    return struct_members(ctx.b, ctx.b.call(struct_type("i32", count), name, address), "i32", count)
