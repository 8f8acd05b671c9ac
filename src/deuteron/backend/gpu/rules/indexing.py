"""tt.gather: by shuffles where a warp has what it takes, else through shared memory. tt.histogram: in shared memory.

exchange     of pairs: other registers of the thread, or of the lane with another bit, by shuffles or, where those
             would be too many, through shared memory; or of the thread in another warp
gather       each index is reduced to its lowest bits, as many as the axis has: nothing outside of the tile is read
histogram    bins of 0, all wait; each element is added once, by one of the threads that hold it; all wait, and read
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from deuteron.analysis.addresses.access_vectors import MAX_BYTES
from deuteron.analysis.shared_memory.scratch import (
    exchange_route_of,
    exchanges_in_shared,
    gather_route_of,
    stays_in_warp,
)
from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.elements import bits_type, from_bits, to_bits
from deuteron.backend.gpu.fragment import Fragment
from deuteron.backend.gpu.rules.memory import both
from deuteron.backend.gpu.shared_tile import SharedTile, load_tile, store_tile
from deuteron.backend.gpu.shuffles import exchange, fetch
from deuteron.backend.gpu.threads import Index, apply_columns, owned_registers, xor
from deuteron.backend.llvm.types import Value, bit_width, const
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.types import byte_width_of, shape_of
from deuteron.layout import f2
from deuteron.layout.gather import Entry, ExchangeRoute, GatherRoute
from deuteron.layout.linear import LANE, REGISTER, WARP, LinearLayout, log2
from deuteron.layout.shared import row_major

ONE, ZERO = const("i32", 1), const("i32", 0)


def gather(ctx: Context, op: Operation, src: Fragment, indices: Fragment) -> Fragment:
    exchange_route = exchange_route_of(op)
    if exchange_route is not None:
        return _exchanged(ctx, op, exchange_route, src)
    extent = src.layout.shape[op.axis.value.data]
    found = [_below(ctx, index, extent) for index in indices.registers]
    bits = [to_bits(ctx.b, value, op.src.type) for value in src.registers]
    route = gather_route_of(op)
    if route is None:
        elements = _through_shared(ctx, op, src.layout, bits, indices.layout, found)
    else:
        elements = [_shuffled(ctx, route, bits, register, index) for register, index in enumerate(found)]
    return Fragment(indices.layout, tuple(from_bits(ctx.b, value, op.src.type) for value in elements))


def _exchanged(ctx: Context, op: Operation, route: ExchangeRoute, src: Fragment) -> Fragment:
    """Each register is the one, in the partner's thread, whose number is its own XOR the route's."""
    partners = [src.registers[number ^ route.register] for number in range(len(src.registers))]
    if not route.lane and not route.warp:
        return Fragment(src.layout, tuple(partners))
    bits = [to_bits(ctx.b, value, op.src.type) for value in partners]
    if exchanges_in_shared(op, route):
        moved = _from_thread(ctx, op, route, bits)
    else:
        moved = exchange(ctx.b, ctx.isa, bits, route.lane)
    return Fragment(src.layout, tuple(from_bits(ctx.b, value, op.src.type) for value in moved))


def _from_thread(ctx: Context, op: Operation, route: ExchangeRoute, bits: Sequence[Value]) -> list[Value]:
    """Each thread stores its registers and loads those of its partner: neighbours, so that no banks conflict."""
    b, base, size = ctx.b, ctx.shared_pointer(op), byte_width_of(op.src.type)
    vector = min(len(bits), MAX_BYTES // size)
    other = b.xor(ctx.threads.index, const("i32", route.warp << log2(ctx.threads.warp_size) | route.lane))
    own, partner = (
        b.gep("i8", base, b.mul(thread, const("i32", vector * size))) for thread in (ctx.threads.index, other)
    )
    begins = range(0, len(bits), vector)

    def part(address: Value, begin: int) -> Value:
        return b.gep("i8", address, const("i32", begin * size * ctx.threads.count))

    for begin in begins:
        ctx.isa.store(b, list(bits[begin : begin + vector]), part(own, begin))
    wait = ctx.warp_barrier if stays_in_warp(op) else ctx.barrier
    wait()
    type = bits_type(op.src.type)
    return [value for begin in begins for value in ctx.isa.load(b, type, part(partner, begin), vector)]


def _below(ctx: Context, index: Value, extent: int) -> Value:
    """The lowest bits of an index, as an i32."""
    return ctx.b.and_(ctx.b.trunc(_wide(ctx, index), "i32"), const("i32", extent - 1))


def _wide(ctx: Context, value: Value) -> Value:
    """An integer in at least 32 bits."""
    return ctx.b.zext(value, "i32") if bit_width(value.type) < 32 else value


def _shuffled(ctx: Context, route: GatherRoute, bits: Sequence[Value], register: int, index: Value) -> Value:
    """The element for one register of the index, out of every source register that it may be in."""
    b, lane_bits, sources = ctx.b, log2(ctx.threads.warp_size), route.sources(register)
    if len(sources) == 1 and not sources[0].moves:
        return bits[sources[0].register]

    def packed(entries: Sequence[Entry]) -> list[int]:
        return [source << lane_bits | lane for source, lane in entries]

    own = f2.apply(packed(route.register_bits), register)
    thread = ctx.threads.image(packed(route.lane_bits), packed(route.warp_bits))
    place = xor(b, thread, apply_columns(b, index, packed(route.axis_bits))).at(b, own)
    lane, source = b.and_(place, const("i32", (1 << lane_bits) - 1)), b.lshr(place, const("i32", lane_bits))
    result = None
    for candidate, moves in sources:
        (found,) = fetch(b, ctx.isa, [bits[candidate]], lane) if moves else [bits[candidate]]
        result = found if result is None else b.select(b.icmp("eq", source, const("i32", candidate)), found, result)
    return result


def _through_shared(
    ctx: Context, op: Operation, src: LinearLayout, bits: Sequence[Value], layout: LinearLayout, found: list[Value]
) -> list[Value]:
    axis, size, b = op.axis.value.data, byte_width_of(op.src.type), ctx.b
    tile = SharedTile(ctx.shared_pointer(op), row_major(src.shape), bits_type(op.src.type))
    store_tile(ctx, tile, src, bits)
    ctx.barrier()
    stride = size
    for extent in src.shape[axis + 1 :]:
        stride *= extent

    def columns(name: str) -> list[int]:
        """In bytes, without the part along the axis."""
        kept = (tuple(0 if a == axis else entry for a, entry in enumerate(basis)) for basis in layout.of(name))
        return [size * src.flatten_basis(basis) for basis in kept]

    thread, registers = ctx.threads.image(columns(LANE), columns(WARP)), columns(REGISTER)
    elements = []
    for register, index in enumerate(found):
        along = Index(b.mul(index, const("i32", stride)), stride * (src.shape[axis] - 1))
        offset = xor(b, thread, along).at(b, f2.apply(registers, register))
        elements += ctx.isa.load(b, tile.type, b.gep("i8", tile.address, offset), 1)
    return elements


def histogram(ctx: Context, op: Operation, src: Fragment, mask: Fragment | None = None) -> Fragment:
    b, layout = ctx.b, layout_of(op.result.type)
    (num_bins,) = shape_of(op.result.type)
    bins = SharedTile(ctx.shared_pointer(op), row_major((num_bins,)), "i32")
    store_tile(ctx, bins, layout, [ZERO] * layout.in_size(REGISTER))
    ctx.barrier()
    owner = ctx.threads.owner(src.layout)
    for register in owned_registers(src.layout):
        value = _wide(ctx, src.registers[register])
        counted = both(ctx, owner, b.icmp("ult", value, const(value.type, num_bins)))
        counted = both(ctx, counted, mask.registers[register] if mask else None)
        address = b.gep("i32", bins.address, b.trunc(value, "i32"))
        with b.if_(counted, "counted"):
            b.atomicrmw("add", address, ONE)
    ctx.barrier()
    return Fragment(layout, tuple(load_tile(ctx, bins, layout)))


RULES: dict[str, Rule] = {"tt.gather": gather, "tt.histogram": histogram}
