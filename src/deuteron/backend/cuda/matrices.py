"""ldmatrix and stmatrix: 8x8 matrices between shared memory and registers, where the layouts' algebra shows rows of 16
bytes.

    load_matrices(ctx, tile, layout)            the bits of each register, or None
    store_matrices(ctx, tile, layout, bits)     whether it could

Eight lanes give the addresses of the rows of a matrix; up to four move at once. Lane l has word l % 4 of row l / 4;
with `.trans`, of 16-bit elements, those of column l / 4 in row 2 * (l % 4) and the next:

                 registers in a word      lanes 1, 2              lanes 4, 8, 16
    plain        next elements in memory  next words in memory    rows
    transposed   rows                     rows                    next elements in memory

What else moves a register or a warp moves by whole rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deuteron.backend.gpu.context import Context
from deuteron.backend.gpu.shared_tile import Addresses, SharedTile
from deuteron.backend.gpu.words import pack, struct_members, struct_type, unpack
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


@dataclass(frozen=True)
class _Access:
    """The instructions of one tile: which matrices each moves, from where."""

    found: _Matrices
    registers: list[int]
    addresses: Addresses
    matrix_bits: list[int]
    other_bits: list[int]

    @property
    def form(self) -> str:
        return f"m8n8.x{1 << len(self.matrix_bits)}{'.trans' if self.found.transposed else ''}.b16.p3"

    def instructions(self) -> Iterator[tuple[Value, list[list[int]]]]:
        """The address of each, and the registers that are the words it moves."""
        for first in _combinations(self.other_bits):
            words = [
                [first | matrix | within for within in _combinations(self.found.word_bits)]
                for matrix in _combinations(self.matrix_bits)
            ]
            yield self.addresses.at(f2.apply(self.registers, first)), words


def load_matrices(ctx: Context, tile: SharedTile, layout: LinearLayout) -> list[Value] | None:
    """Load a tile; None where ldmatrix does not load such a layout."""
    access, results = _access(ctx, tile, layout), {}
    if access is None:
        return None
    name = f"llvm.nvvm.ldmatrix.sync.aligned.{access.form}"
    for address, words in access.instructions():
        type = struct_type("i32", len(words))
        loaded = struct_members(ctx.b, ctx.b.call(type, name, address), "i32", len(words))
        for word, registers in zip(loaded, words, strict=True):
            results.update(zip(registers, unpack(ctx.b, [word], tile.type, len(registers)), strict=True))
    return [results[register] for register in range(len(results))]


def store_matrices(ctx: Context, tile: SharedTile, layout: LinearLayout, bits: Sequence[Value]) -> bool:
    """Store a tile, if stmatrix stores such a layout and the target has it. Warps that hold the same would store it
    several times.
    """
    if not ctx.machine.has_stmatrix or any(layout.free_bits().values()):
        return False
    access = _access(ctx, tile, layout)
    if access is None:
        return False
    for address, words in access.instructions():
        packed = [pack(ctx.b, [bits[register] for register in registers])[0] for registers in words]
        as_words = [ctx.b.bitcast(word, "i32") if word.type != "i32" else word for word in packed]
        ctx.b.intrinsic(f"llvm.nvvm.stmatrix.sync.aligned.{access.form}", "void", address, *as_words, overloads=())
    return True


def _access(ctx: Context, tile: SharedTile, layout: LinearLayout) -> _Access | None:
    size, to_offset = byte_width(tile.type), layout.compose(tile.layout.right_inverse())
    registers, lanes, warps = ([size * basis[0] for basis in to_offset.of(name)] for name in (REGISTER, LANE, WARP))
    found = _plain(registers, lanes, warps, size) or _transposed(registers, lanes, warps, size)
    if found is None:
        return None
    others = [bit for bit in range(len(registers)) if bit not in found.word_bits]
    matrix_bits = others[: log2(MAX_MATRICES)]
    in_address = [registers[bit] for bit in matrix_bits] + [0] * (log2(MAX_MATRICES) - len(matrix_bits))
    addresses = Addresses(ctx.b, tile, ctx.threads.image([*found.rows, *in_address], warps))
    return _Access(found, registers, addresses, matrix_bits, others[len(matrix_bits) :])


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
