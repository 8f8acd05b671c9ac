"""ldmatrix and stmatrix: 8x8 matrices between shared memory and registers, where the layouts' algebra shows rows of 16
bytes.

    load_matrices(ctx, tile, layout)            the bits of each register, or None
    store_matrices(ctx, tile, layout, bits)     whether it could

Eight lanes give the addresses of the rows of a matrix; up to four move at once. Which lane has what of them is in
`layout/shared_access.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deuteron.backend.gpu.context import Context
from deuteron.backend.gpu.shared_tile import Addresses, SharedTile, within
from deuteron.backend.gpu.threads import xor
from deuteron.backend.gpu.words import pack, struct_members, struct_type, unpack
from deuteron.backend.llvm.types import Value, byte_width
from deuteron.layout import f2
from deuteron.layout.linear import LinearLayout, log2
from deuteron.layout.shared_access import ROW_BYTES, Matrices, Offsets, find_matrices

MAX_MATRICES = 4


@dataclass(frozen=True)
class _Access:
    """The instructions of one tile: which matrices each moves, from where."""

    found: Matrices
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
    whole = within(layout, tile.layout.right_inverse())
    offsets = Offsets.of(whole, tile.layout, byte_width(tile.type))
    found, registers = find_matrices(offsets), offsets.registers
    if found is None or tile.begin.bits % ROW_BYTES:
        return None
    others = [bit for bit in range(len(registers)) if bit not in found.word_bits]
    matrix_bits = others[: log2(MAX_MATRICES)]
    in_address = [registers[bit] for bit in matrix_bits] + [0] * (log2(MAX_MATRICES) - len(matrix_bits))
    thread = xor(ctx.b, ctx.threads.image([*found.rows, *in_address], offsets.warps), tile.begin)
    addresses = Addresses(ctx.b, tile, thread)
    return _Access(found, registers, addresses, matrix_bits, others[len(matrix_bits) :])


def _combinations(bits: Sequence[int]) -> list[int]:
    """All masks of these bits, the first bit changing the fastest."""
    return [sum((number >> i & 1) << bit for i, bit in enumerate(bits)) for number in range(1 << len(bits))]
