"""ttg.convert_layout by the route that the layouts' algebra gives, and tiles in shared memory.

registers    other names for a thread's registers
shuffles     each register of the result from another lane, which may want another register in each lane; where a
             register changes places with a lane, what each of two lanes gives the other, chosen before; where two
             are wanted of each lane, one after the other, by half of the lanes in the other order
shared       stored in a scratch layout, waited, loaded; a large tile in parts
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from xdsl.ir import Attribute, Operation

from deuteron.analysis.shared_memory.scratch import route_of, shared_conversion_of, stays_in_warp
from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.elements import bits_type, from_bits, to_bits
from deuteron.backend.gpu.fragment import Fragment
from deuteron.backend.gpu.shared_tile import SharedTile, load_tile, store_tile
from deuteron.backend.gpu.shuffles import exchange, fetch
from deuteron.backend.gpu.threads import apply_columns
from deuteron.backend.llvm.types import Value, const
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.types import shape_of
from deuteron.layout import f2
from deuteron.layout.conversion import Exchange, RegisterRoute, ShuffleRoute, Turns
from deuteron.layout.linear import LinearLayout


@dataclass(frozen=True)
class SharedMoves:
    """The rules that move tiles through shared memory, by a target's way of loading and storing them there."""

    load: Callable[[Context, SharedTile, LinearLayout], list[Value]] = load_tile
    store: Callable[[Context, SharedTile, LinearLayout, list[Value]], None] = store_tile

    @property
    def rules(self) -> dict[str, Rule]:
        return {
            "ttg.convert_layout": self.convert_layout,
            "ttg.local_alloc": self.local_alloc,
            "ttg.local_store": self.local_store,
            "ttg.local_load": self.local_load,
        }

    def convert_layout(self, ctx: Context, op: Operation, tile: Fragment) -> Fragment:
        route, layout = route_of(op), layout_of(op.result.type)
        if isinstance(route, RegisterRoute):
            return Fragment(layout, tuple(tile.registers[source] for source in route.sources))
        bits = [to_bits(ctx.b, value, op.src.type) for value in tile.registers]
        moved = _shuffle(ctx, route, bits) if isinstance(route, ShuffleRoute) else self._through_shared(ctx, op, bits)
        return _fragment(ctx, op.result.type, moved)

    def local_alloc(self, ctx: Context, op: Operation, tile: Fragment | None = None) -> SharedTile:
        held = op.result.type.tile
        allocated = SharedTile(ctx.shared_pointer(op), layout_of(op.result.type), bits_type(held))
        if tile is not None:
            self.store(ctx, allocated, tile.layout, [to_bits(ctx.b, value, held) for value in tile.registers])
        return allocated

    def local_store(self, ctx: Context, op: Operation, tile: Fragment, shared: SharedTile) -> None:
        self.store(ctx, shared, tile.layout, [to_bits(ctx.b, value, op.src.type) for value in tile.registers])

    def local_load(self, ctx: Context, op: Operation, shared: SharedTile) -> Fragment:
        return _fragment(ctx, op.result.type, self.load(ctx, shared, layout_of(op.result.type)))

    def _through_shared(self, ctx: Context, op: Operation, bits: list[Value]) -> list[Value]:
        plan = shared_conversion_of(op)
        scratch = SharedTile(ctx.shared_pointer(op), plan.scratch, bits_type(op.src.type))
        wait = ctx.warp_barrier if stays_in_warp(op) else ctx.barrier
        results: dict[int, Value] = {}
        for part in range(plan.num_parts):
            if part:
                wait()
            self.store(ctx, scratch, plan.src, [bits[register] for register in plan.src_registers(part)])
            wait()
            results.update(zip(plan.dst_registers(part), self.load(ctx, scratch, plan.dst), strict=True))
        return [results[register] for register in range(len(results))]


def _fragment(ctx: Context, type: Attribute, bits: list[Value]) -> Fragment:
    return Fragment(layout_of(type), tuple(from_bits(ctx.b, value, type) for value in bits))


def _shuffle(ctx: Context, route: ShuffleRoute, bits: list[Value]) -> list[Value]:
    if route.exchange:
        return _exchange(ctx, route, route.exchange, bits)
    return _take_turns(ctx, route, route.turns, bits) if route.turns else _fetch(ctx, route, bits)


def _exchange(ctx: Context, route: ShuffleRoute, swap: Exchange, bits: list[Value]) -> list[Value]:
    """Of two registers of the result each lane has one, and gives what is the other lane's for the other."""
    b = ctx.b
    has_bit = b.icmp("ne", b.and_(ctx.threads.lane, const("i32", swap.lane)), const("i32", 0))
    sources, lanes = zip(*route.register_bits, strict=True)
    registers = range(1 << len(sources))
    wanted = [bits[f2.apply(sources, register)] for register in registers]
    with_bit = [bits[f2.apply(sources, register) ^ swap.register] for register in registers]
    kept_without = [register for register in registers if not f2.apply(lanes, register)]
    given = [b.select(has_bit, wanted[first ^ swap.pair], with_bit[first]) for first in kept_without]
    results: list[Value | None] = [None] * len(registers)
    for first, taken in zip(kept_without, exchange(b, ctx.isa, given, swap.lane), strict=True):
        second = first ^ swap.pair
        results[first] = b.select(has_bit, taken, wanted[first])
        results[second] = b.select(has_bit, with_bit[second], taken)
    return results


def _take_turns(ctx: Context, route: ShuffleRoute, turns: Turns, bits: list[Value]) -> list[Value]:
    """Of two registers of the result each lane fetches one after the other; those that choose begin with the second."""
    b = ctx.b
    sources, lanes = zip(*route.register_bits, strict=True)
    chooses, gives_chosen = (_has_odd(ctx, mask, len(turns.lanes)) for mask in (turns.choosing, turns.asked))
    lane = apply_columns(b, ctx.threads.lane, turns.lanes)
    first_of_pairs = [register for register in range(1 << len(sources)) if not register & turns.pair]
    fetched: list[dict[int, Value]] = []
    for turn in (0, turns.pair):
        wanted: dict[int, list[int]] = {}
        for register in first_of_pairs:
            wanted.setdefault(f2.apply(lanes, register ^ turn), []).append(register)
        fetched.append({})
        for lane_part, registers in wanted.items():
            usual = [bits[f2.apply(sources, register ^ turn)] for register in registers]
            chosen = [bits[f2.apply(sources, register ^ turn ^ turns.pair) ^ turns.register] for register in registers]
            if f2.is_odd(lane_part & turns.asked):
                usual, chosen = chosen, usual
            given = [b.select(gives_chosen, one, other) for one, other in zip(chosen, usual, strict=True)]
            fetched[-1].update(zip(registers, fetch(b, ctx.isa, given, lane.at(b, lane_part)), strict=True))
    results: list[Value | None] = [None] * (1 << len(sources))
    for register in first_of_pairs:
        first, second = (taken[register] for taken in fetched)
        results[register] = b.select(chooses, second, first)
        results[register ^ turns.pair] = b.select(chooses, first, second)
    return results


def _has_odd(ctx: Context, mask: int, num_bits: int) -> Value:
    """Whether the number of a lane, of so many bits, has an odd number of those of a mask."""
    columns = [mask >> bit & 1 for bit in range(num_bits)]
    return ctx.b.icmp("ne", apply_columns(ctx.b, ctx.threads.lane, columns).value, const("i32", 0))


def _fetch(ctx: Context, route: ShuffleRoute, bits: list[Value]) -> list[Value]:
    """Results whose source is the same lane travel together. A source register that the lane decides is chosen after
    the shuffle, from all those that some lane wants, if no other lane offers it.
    """
    bits = _offered(ctx, route, bits)
    b = ctx.b
    lane = apply_columns(b, ctx.threads.lane, [source for _, source in route.lane_bits])
    choice = apply_columns(b, ctx.threads.lane, [register for register, _ in route.lane_bits])
    choices = sorted({f2.apply(_basis(route), index) for index in range(1 << len(_basis(route)))})
    wanted: dict[int, list[int]] = {}
    for register in range(1 << len(route.register_bits)):
        wanted.setdefault(f2.apply([source for _, source in route.register_bits], register), []).append(register)
    results: list[Value | None] = [None] * (1 << len(route.register_bits))
    for lane_part, registers in wanted.items():
        firsts = [f2.apply([source for source, _ in route.register_bits], register) for register in registers]
        address = lane.at(b, lane_part)
        for index, candidate in enumerate(choices):
            moved = fetch(b, ctx.isa, [bits[first ^ candidate] for first in firsts], address)
            is_wanted = b.icmp("eq", choice.value, const("i32", candidate)) if index else None
            for register, value in zip(registers, moved, strict=True):
                results[register] = b.select(is_wanted, value, results[register]) if is_wanted else value
    return results


def _offered(ctx: Context, route: ShuffleRoute, bits: list[Value]) -> list[Value]:
    """What each lane has for others in the place of each of its registers."""
    for register_mask, lane_bit in route.offers:
        is_other = ctx.b.icmp("ne", ctx.b.and_(ctx.threads.lane, const("i32", lane_bit)), const("i32", 0))
        bits = [ctx.b.select(is_other, bits[index ^ register_mask], bits[index]) for index in range(len(bits))]
    return bits


def _basis(route: ShuffleRoute) -> list[int]:
    return f2.independent([register for register, _ in route.lane_bits])


def memdesc_trans(ctx: Context, op: Operation, shared: SharedTile) -> SharedTile:
    origin = tuple(shared.origin[axis] for axis in op.order.get_values()) if shared.origin else None
    return replace(shared, layout=layout_of(op.result.type), origin=origin)


def memdesc_subslice(ctx: Context, op: Operation, shared: SharedTile) -> SharedTile:
    begin = shared.origin or (0,) * len(shared.layout.shape)
    return replace(shared, origin=tuple(a + b for a, b in zip(begin, op.offsets.get_values(), strict=True)))


def memdesc_slice(ctx: Context, op: Operation, shared: SharedTile, index: Value) -> SharedTile:
    axis = op.axis.value.data
    size = shape_of(op.result.type.tile)[axis]
    return shared.part(ctx.b, axis, ctx.b.mul(index, const("i32", size)), size)


def local_dealloc(ctx: Context, op: Operation, shared: SharedTile) -> None:
    """Where memory is free is known from the uses."""


RULES: dict[str, Rule] = {
    **SharedMoves().rules,
    "ttg.memdesc_trans": memdesc_trans,
    "ttg.memdesc_subslice": memdesc_subslice,
    "ttg.memdesc_slice": memdesc_slice,
    "ttg.local_dealloc": local_dealloc,
}
