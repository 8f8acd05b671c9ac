"""tt.atomic_rmw, _cas, _load, _store: each element by one thread of those that hold it; how, the target knows.

Where other threads hold the element as well, they get the result by shared memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation

from deuteron.analysis.shared_memory.scratch import shares_result
from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.elements import bits_type, from_bits, register_type
from deuteron.backend.gpu.fragment import Fragment, Operand, positions, registers_of, with_registers
from deuteron.backend.gpu.rules.memory import both, vectors
from deuteron.backend.gpu.shared_tile import SharedTile, load_tile, store_tile
from deuteron.backend.gpu.threads import owned_registers
from deuteron.backend.llvm.types import Value, const
from deuteron.layout.linear import LinearLayout
from deuteron.layout.shared import row_major

# Of registers whose elements are neighbours, where this thread is the one; gives the old bits.
Update = Callable[[list[int], Value | None], Sequence[Value]]


def atomic_rmw(ctx: Context, op: Operation, pointer: Operand, value: Operand, mask: Operand | None = None) -> Operand:
    pointers, values = registers_of(pointer), registers_of(value)
    masks = registers_of(mask) if mask is not None else None

    def update(group: list[int], owner: Value | None) -> Sequence[Value]:
        guard = both(ctx, owner, masks[group[0]] if masks else None)
        return ctx.isa.atomic_rmw(ctx.b, op, pointers[group[0]], [values[register] for register in group], guard)

    return _each_once(ctx, op, pointer, update, ctx.isa.atomic_width(op))


def atomic_cas(ctx: Context, op: Operation, pointer: Operand, compare: Operand, value: Operand) -> Operand:
    pointers, expected, values = (registers_of(operand) for operand in (pointer, compare, value))

    def update(group: list[int], owner: Value | None) -> Sequence[Value]:
        (register,) = group
        return [ctx.isa.atomic_cas(ctx.b, op, pointers[register], expected[register], values[register], owner)]

    return _each_once(ctx, op, pointer, update)


def atomic_load(ctx: Context, op: Operation, pointer: Operand, mask: Operand | None = None) -> Operand:
    """One thread loads each element: others might see another value."""
    pointers, masks = registers_of(pointer), registers_of(mask) if mask is not None else None

    def load(group: list[int], owner: Value | None) -> Sequence[Value]:
        (register,) = group
        guard = both(ctx, owner, masks[register] if masks else None)
        return [ctx.isa.atomic_load(ctx.b, op, pointers[register], guard)]

    return _each_once(ctx, op, pointer, load)


def atomic_store(ctx: Context, op: Operation, pointer: Operand, value: Operand, mask: Operand | None = None) -> None:
    pointers, values = registers_of(pointer), registers_of(value)
    masks = registers_of(mask) if mask is not None else None
    layout = pointer.layout if isinstance(pointer, Fragment) else None
    owner = ctx.threads.owner(layout)
    for register in owned_registers(layout) if layout else [0]:
        guard = both(ctx, owner, masks[register] if masks else None)
        ctx.isa.atomic_store(ctx.b, op, pointers[register], values[register], guard)


def fence(ctx: Context, op: Operation) -> None:
    ctx.isa.fence(ctx.b, op)


def global_timer(ctx: Context, op: Operation) -> Value:
    """By one thread: all are to go the same way."""
    time = ctx.isa.global_timer(ctx.b)
    return _shared_scalar(ctx, op, time, ctx.threads.owner(None)) if op.result.uses else time


def _each_once(ctx: Context, op: Operation, pointer: Operand, update: Update, width: int = 1) -> Operand:
    """Update each element once, up to `width` neighbours together, and let every thread that holds it know what was."""
    layout = pointer.layout if isinstance(pointer, Fragment) else None
    owner = ctx.threads.owner(layout)
    owned = set(owned_registers(layout) if layout else [0])
    groups = _neighbours(ctx, op, pointer, width) if width > 1 else [[register] for register in sorted(owned)]
    old: dict[int, Value] = {}
    for group in groups:
        if group[0] in owned:
            old.update(zip(group, update(group, owner), strict=True))
    if not op.result.uses:
        return with_registers(pointer, [const(register_type(op.result.type), 0)] * len(registers_of(pointer)))
    bits = [_shared_scalar(ctx, op, old[0], owner)] if layout is None else _all_registers(ctx, op, layout, old)
    return with_registers(pointer, [from_bits(ctx.b, value, op.result.type) for value in bits])


def _neighbours(ctx: Context, op: Operation, pointer: Operand, width: int) -> list[list[int]]:
    """Registers with neighbouring, aligned addresses and one mask."""
    groups = vectors(ctx, pointer, op.ptr, op.mask)
    return [group[begin : begin + width] for group in groups for begin in range(0, len(group), width)]


def _shared_scalar(ctx: Context, op: Operation, old: Value, owner: Value | None) -> Value:
    address = ctx.shared_pointer(op)
    ctx.isa.store(ctx.b, [old], address, owner)
    ctx.barrier()
    return ctx.isa.load(ctx.b, old.type, address, 1)[0]


def _all_registers(ctx: Context, op: Operation, layout: LinearLayout, old: dict[int, Value]) -> list[Value]:
    places = positions(layout)
    known = {places[register]: value for register, value in old.items()}
    bits = [known[place] for place in places]
    if not shares_result(op):
        return bits
    tile = SharedTile(ctx.shared_pointer(op), row_major(layout.shape), bits_type(op.result.type))
    store_tile(ctx, tile, layout, bits)
    ctx.barrier()
    return load_tile(ctx, tile, layout)


RULES: dict[str, Rule] = {
    "tt.atomic_rmw": atomic_rmw,
    "tt.atomic_cas": atomic_cas,
    "tt.atomic_load": atomic_load,
    "tt.atomic_store": atomic_store,
    "tt.global_timer": global_timer,
    "ttg.fence": fence,
}
