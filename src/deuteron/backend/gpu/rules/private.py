"""ttg.private_alloc, private_store, private_load, private_view: tiles in local memory, slice after slice, in the order
of registers. Slices along another dimension than that are where a view says.

%m = "ttg.private_alloc"()           alloca, in the first block
"ttg.private_store"(%x, %m)          each register at a constant place
%s = "ttg.private_load"(%m, %i)      the registers of a slice, from a place that is computed
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from xdsl.ir import Operation

from deuteron.analysis.addresses.access_vectors import MAX_BYTES
from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.elements import bits_type, from_bits, to_bits
from deuteron.backend.gpu.fragment import Fragment
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, byte_width, const
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.ttg.private import PrivateType
from deuteron.layout.linear import REGISTER
from deuteron.layout.slices import slice_bits

LOCAL = "ptr addrspace(5)"


@dataclass(frozen=True)
class PrivateTile:
    """Where a tile begins, and which bit of a register's number each bit of its place there is, the lowest first; None:
    it is that of another slice, of a larger tile.
    """

    address: Value
    bits: tuple[int | None, ...]


def private_alloc(ctx: Context, op: Operation) -> PrivateTile:
    type = op.result.type
    layout = layout_of(type.tile)
    sliced = _sliced_bits(type)
    kept = [bit for bit in range(layout.in_bits(REGISTER)) if bit not in sliced]
    with ctx.threads.in_entry():
        address = ctx.b.alloca(bits_type(type.tile), layout.in_size(REGISTER), MAX_BYTES)
        return PrivateTile(ctx.b.addrspacecast(address, LOCAL), (*kept, *sliced))


def private_view(ctx: Context, op: Operation, memory: PrivateTile, index: Value | None = None) -> PrivateTile:
    type = op.src.type
    sliced = _sliced_bits(type) if index is not None else ()
    if not sliced:
        return memory
    begin = ctx.b.gep(bits_type(type.tile), memory.address, _begin(ctx.b, index, memory, sliced))
    kept = [bit for bit in range(layout_of(type.tile).in_bits(REGISTER)) if bit not in sliced]
    return PrivateTile(begin, tuple(kept.index(bit) if bit in kept else None for bit in memory.bits))


def private_store(ctx: Context, op: Operation, tile: Fragment, memory: PrivateTile, index: Value | None = None) -> None:
    bits = [to_bits(ctx.b, value, op.src.type) for value in tile.registers]
    for address, registers in _accesses(ctx, op.dst.type, memory, index):
        ctx.isa.store(ctx.b, [bits[register] for register in registers], address)


def private_load(ctx: Context, op: Operation, memory: PrivateTile, index: Value | None = None) -> Fragment:
    type, found = op.result.type, {}
    for address, registers in _accesses(ctx, op.src.type, memory, index):
        found.update(zip(registers, ctx.isa.load(ctx.b, bits_type(type), address, len(registers)), strict=True))
    return Fragment(layout_of(type), tuple(from_bits(ctx.b, found[register], type) for register in range(len(found))))


def _accesses(
    ctx: Context, type: PrivateType, memory: PrivateTile, index: Value | None
) -> Iterator[tuple[Value, list[int]]]:
    """Addresses, and the registers of the tile, or of a slice, that are there one after the other."""
    b, element = ctx.b, bits_type(type.tile)
    sliced = _sliced_bits(type) if index is not None else ()
    first = b.gep(element, memory.address, _begin(b, index, memory, sliced)) if sliced else memory.address
    kept = [bit for bit in range(layout_of(type.tile).in_bits(REGISTER)) if bit not in sliced]
    # Of the bits of a place those that a slice has, and which of the bits of a register of the slice they are.
    places = [(place, kept.index(bit)) for place, bit in enumerate(memory.bits) if bit in kept]
    size, together = byte_width(element), 1 << _count_first(place == low for low, (place, _) in enumerate(places))
    step = min(MAX_BYTES // size, together)
    for begin in range(0, 1 << len(places), step):
        at = _moved(begin, [place for place, _ in places])
        registers = [_moved(number, [bit for _, bit in places]) for number in range(begin, begin + step)]
        yield b.gep("i8", first, const("i32", size * at)) if at else first, registers


def _begin(b: Builder, index: Value, memory: PrivateTile, sliced: Sequence[int]) -> Value:
    """Where a slice begins, in elements."""
    places = [memory.bits.index(bit) for bit in sliced]
    if places == list(range(places[0], places[0] + len(places))):
        return b.mul(index, const("i32", 1 << places[0]))
    begin = const("i32", 0)
    for bit, place in enumerate(places):
        begin = b.or_(begin, b.shl(b.and_(b.lshr(index, const("i32", bit)), const("i32", 1)), const("i32", place)))
    return begin


def _moved(number: int, bits: Sequence[int]) -> int:
    """A number of which each bit is elsewhere."""
    return sum((number >> bit & 1) << place for bit, place in enumerate(bits))


def _count_first(conditions: Iterable[bool]) -> int:
    """How many hold, before the first that does not."""
    return sum(1 for _ in takewhile(bool, conditions))


def _sliced_bits(type: PrivateType) -> tuple[int, ...]:
    return slice_bits(layout_of(type.tile), type.axis.data, type.count.data)


RULES: dict[str, Rule] = {
    "ttg.private_alloc": private_alloc,
    "ttg.private_view": private_view,
    "ttg.private_store": private_store,
    "ttg.private_load": private_load,
}
