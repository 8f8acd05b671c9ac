"""Ops that make and reshape tiles: their layouts are such that each thread has what it needs in its own registers.

%e = "tt.expand_dims"(%i)        the same registers
%b = "tt.broadcast"(%e)          each register of the result is one of the source's
%r = "tt.make_range"()           the coordinate: thread part | register part
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Attribute, Operation

from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.fragment import Fragment, Operand, positions, register_at
from deuteron.backend.llvm.types import Value, const
from deuteron.errors import InternalError
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.types import is_tile
from deuteron.layout.linear import REGISTER, LinearLayout


def make_range(ctx: Context, op: Operation) -> Fragment:
    layout, start, b = layout_of(op.result.type), op.start.value.data, ctx.b
    thread = ctx.threads.coordinates(layout)[0]
    indices = [thread.at(b, position[0]) for position in positions(layout)]
    if start:
        indices = [b.add(index, const("i32", start), "nsw") for index in indices]
    return Fragment(layout, tuple(indices))


def splat(ctx: Context, op: Operation, scalar: Value) -> Fragment:
    layout = layout_of(op.result.type)
    return Fragment(layout, (scalar,) * layout.in_size(REGISTER))


def unsplat(ctx: Context, op: Operation, tile: Fragment) -> Value:
    return tile.registers[0]


def same_registers(ctx: Context, op: Operation, tile: Fragment) -> Operand:
    """The layout of the operand is made such that register i of it is register i of the result."""
    return Fragment(layout_of(op.results[0].type), tile.registers)


def broadcast(ctx: Context, op: Operation, tile: Fragment) -> Fragment:
    shape = tile.layout.shape

    def source(position: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(p if extent > 1 else 0 for p, extent in zip(position, shape, strict=True))

    return pick(op.result.type, lambda position: (tile, source(position)))


def join(ctx: Context, op: Operation, lhs: Fragment, rhs: Fragment) -> Fragment:
    return pick(op.result.type, lambda position: (rhs if position[-1] else lhs, position[:-1]))


def split(ctx: Context, op: Operation, tile: Fragment) -> list[Operand]:
    """One half has what the tile has at 0 in the last dimension, the other what it has at 1."""
    known = register_at(tile.layout)
    if not is_tile(op.lhs.type):
        return [tile.registers[known[(half,)]] for half in range(2)]
    return [pick(r.type, lambda p, half=half: (tile, (*p, half))) for half, r in enumerate((op.lhs, op.rhs))]


def cat(ctx: Context, op: Operation, lhs: Fragment, rhs: Fragment) -> Fragment:
    extent = lhs.layout.shape[0]
    return pick(op.result.type, lambda position: (rhs if position[0] >= extent else lhs, (position[0] % extent,)))


def pick(type: Attribute, source: Callable[[tuple[int, ...]], tuple[Fragment, tuple[int, ...]]]) -> Fragment:
    """A tile of which the register at each position is one, of some tile, at another position."""
    layout = layout_of(type)
    known: dict[LinearLayout, dict[tuple[int, ...], int]] = {}
    registers = []
    for position in positions(layout):
        tile, place = source(position)
        if tile.layout not in known:
            known[tile.layout] = register_at(tile.layout)
        found = known[tile.layout]
        if place not in found:
            raise InternalError(f"no register of a thread has the element that is at {position} of the result")
        registers.append(tile.registers[found[place]])
    return Fragment(layout, tuple(registers))


RULES: dict[str, Rule] = {
    "tt.make_range": make_range,
    "tt.splat": splat,
    "tt.unsplat": unsplat,
    "tt.expand_dims": same_registers,
    "tt.reshape": same_registers,
    "tt.trans": same_registers,
    "tt.broadcast": broadcast,
    "tt.join": join,
    "tt.split": split,
    "tt.cat": cat,
}
