"""Tiles in shared memory: stored from registers and loaded into them, in the widest vectors that both layouts allow.

A register's offset is `thread part XOR register part`, both linear images under `layout(registers) -> coordinates ->
offset`. Registers whose offsets differ in the lowest bits only make a vector.

    tile = SharedTile(address, scratch, "i16")
    store_tile(ctx, tile, fragment_layout, bits)        each element once
    load_tile(ctx, tile, fragment_layout)               bits, one for each register
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from deuteron.analysis.addresses.access_vectors import MAX_BYTES
from deuteron.backend.gpu.context import Context
from deuteron.backend.gpu.threads import Index, apply_columns, owned_registers, xor
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, byte_width, const
from deuteron.layout import f2
from deuteron.layout.linear import LANE, REGISTER, WARP, LinearLayout, log2


@dataclass(frozen=True)
class SharedTile:
    """Where a tile begins, its layout (offset -> coordinates), and the integer type of its elements' bits; `origin`
    has the coordinates at which a part of it begins, where only that is accessed, and `begin` how many bytes further it
    does where that is known at run time only: to be XORed, as all offsets are.
    """

    address: Value
    layout: LinearLayout
    type: str
    origin: tuple[int, ...] | None = None
    begin: Index = Index(const("i32", 0), 0)

    def part(self, b: Builder, axis: int, index: Value, step: int) -> SharedTile:
        """The part that begins at `index` along an axis, a multiple of `step` that is known at run time."""
        inverse = self.layout.right_inverse()
        columns = [column[0] * byte_width(self.type) for column in inverse.of(inverse.in_names[axis])]
        moving = [column if 1 << bit >= step else 0 for bit, column in enumerate(columns)]
        return replace(self, begin=xor(b, self.begin, apply_columns(b, index, moving)))


@dataclass(frozen=True)
class _Offsets:
    """Offsets in bytes: the part of the thread, of each register, and how many neighbours are a vector."""

    thread: Index
    registers: list[int]
    vector: int


def store_tile(ctx: Context, tile: SharedTile, layout: LinearLayout, bits: Sequence[Value]) -> None:
    """Store the registers of a tile in a distributed layout."""
    offsets = _offsets(ctx, tile, layout)
    mask = ctx.threads.owner(layout)
    addresses = Addresses(ctx.b, tile, offsets.thread)
    for group in _groups(offsets, byte_width(tile.type), owned_registers(layout)):
        ctx.isa.store(ctx.b, [bits[r] for r in group], addresses.at(offsets.registers[group[0]]), mask)


def load_tile(ctx: Context, tile: SharedTile, layout: LinearLayout) -> list[Value]:
    """Load the registers of a tile in a distributed layout."""
    offsets = _offsets(ctx, tile, layout)
    addresses, by_offset = Addresses(ctx.b, tile, offsets.thread), {}
    for group in _groups(offsets, byte_width(tile.type), owned_registers(layout)):
        loaded = ctx.isa.load(ctx.b, tile.type, addresses.at(offsets.registers[group[0]]), len(group))
        by_offset.update(zip((offsets.registers[r] for r in group), loaded, strict=True))
    return [by_offset[offset] for offset in offsets.registers]


def register_addresses(ctx: Context, tile: SharedTile, layout: LinearLayout) -> Callable[[int], Value]:
    """Where each register of a tile in a distributed layout goes."""
    offsets = _offsets(ctx, tile, layout)
    addresses = Addresses(ctx.b, tile, offsets.thread)
    return lambda register: addresses.at(offsets.registers[register])


def _offsets(ctx: Context, tile: SharedTile, layout: LinearLayout) -> _Offsets:
    inverse = tile.layout.right_inverse()
    to_offset = within(layout, inverse).compose(inverse)
    registers, lanes, warps = ([basis[0] for basis in to_offset.of(name)] for name in (REGISTER, LANE, WARP))
    size = byte_width(tile.type)
    bits = _vector_bits(registers, [*lanes, *warps, tile.begin.bits // size], size)
    thread = ctx.threads.image([size * column for column in lanes], [size * column for column in warps])
    thread = xor(ctx.b, thread, tile.begin)
    begin = inverse(**dict(zip(inverse.in_names, tile.origin, strict=True)))[0] if tile.origin else 0
    of_registers = [size * (f2.apply(registers, r) ^ begin) for r in range(1 << len(registers))]
    return _Offsets(thread, of_registers, 1 << bits)


def within(layout: LinearLayout, inverse: LinearLayout) -> LinearLayout:
    """The layout of a part, with the extents of the whole tile."""
    return LinearLayout(layout.bases, tuple((name, inverse.in_size(name)) for name in layout.out_names))


def _vector_bits(registers: list[int], threads: list[int], size: int) -> int:
    """How many of the lowest bits of the offset only the register decides."""
    most, bits = log2(MAX_BYTES // size), 0
    while bits < most and not any(t >> bits & 1 for t in threads) and f2.solve(registers, 1 << bits) is not None:
        bits += 1
    return bits


def _groups(offsets: _Offsets, size: int, owned: list[int]) -> list[list[int]]:
    """Registers that make a vector, in the order of their offsets."""
    groups: dict[int, list[int]] = {}
    for register in sorted(owned, key=lambda r: offsets.registers[r]):
        groups.setdefault(offsets.registers[register] // (size * offsets.vector), []).append(register)
    return list(groups.values())


class Addresses:
    """Addresses at the thread's offset XOR a constant; that is made once for each pattern of bits that it needs."""

    def __init__(self, b: Builder, tile: SharedTile, thread: Index):
        self._b, self._tile, self._thread = b, tile, thread
        self._bases: dict[int, Value] = {}

    def at(self, offset: int) -> Value:
        met = offset & self._thread.bits
        if met not in self._bases:
            self._bases[met] = self._b.gep("i8", self._tile.address, self._thread.at(self._b, met))
        rest = offset ^ met
        return self._b.gep("i8", self._bases[met], const("i32", rest)) if rest else self._bases[met]
