"""ttg.private_alloc, private_store, private_load: tiles in local memory, slice after slice, in the order of registers.

%m = "ttg.private_alloc"()           alloca, in the first block
"ttg.private_store"(%x, %m)          each register at a constant place
%s = "ttg.private_load"(%m, %i)      the registers of a slice, from a place that is computed
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import Operation

from deuteron.analysis.access_vectors import MAX_BYTES
from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.elements import bits_type, from_bits, to_bits
from deuteron.backend.gpu.fragment import Fragment
from deuteron.backend.llvm.types import Value, byte_width, const
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.ttg.private import PrivateType
from deuteron.layout.linear import REGISTER
from deuteron.layout.slices import place_in_slice

LOCAL = "ptr addrspace(5)"


@dataclass(frozen=True)
class PrivateTile:
    """Where a tile begins."""

    address: Value


def private_alloc(ctx: Context, op: Operation) -> PrivateTile:
    type = op.result.type
    count = layout_of(type.tile).in_size(REGISTER)
    with ctx.threads.in_entry():
        address = ctx.b.alloca(bits_type(type.tile), count, MAX_BYTES)
        return PrivateTile(ctx.b.addrspacecast(address, LOCAL))


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
    b, element, count = ctx.b, bits_type(type.tile), type.count.data
    size, in_slice = byte_width(element), layout_of(type.tile).in_size(REGISTER) // count
    first, order = memory.address, _order(type) if index is None else range(in_slice)
    if index is not None:
        first = b.gep(element, first, b.mul(index, const("i32", in_slice)))
    step = min(MAX_BYTES // size, in_slice)
    for begin in range(0, len(order), step):
        address = b.gep("i8", first, const("i32", size * begin)) if begin else first
        yield address, list(order[begin : begin + step])


def _order(type: PrivateType) -> list[int]:
    """The registers of the whole tile, slice after slice."""
    layout, axis, count = layout_of(type.tile), type.axis.data, type.count.data
    return sorted(range(layout.in_size(REGISTER)), key=lambda register: place_in_slice(layout, axis, count, register))


RULES: dict[str, Rule] = {
    "ttg.private_alloc": private_alloc,
    "ttg.private_store": private_store,
    "ttg.private_load": private_load,
}
