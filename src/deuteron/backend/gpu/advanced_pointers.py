"""Tiles of pointers that a loop advances by one step, carried as one offset instead of a pointer in each register.

    ^(%p: p0, p1, p2, p3)                ^(%offset: i64)
      load %p                     ->       load p0 + %offset, p1 + %offset, ...
      yield %p + splat(64)                 yield %offset + 128

Of neighbours along a dimension in which the pointers are contiguous one is advanced, and the others are computed of it:
an access has room for the distance.

Where they fill more than half of the registers, with tiles and loads, a loop keeps what pointers are computed of
(pointer_sums.py); where all loads are copies, beside which dots run on, more than ROOM.

The offset is opaque, so that LLVM's strength reduction keeps it: it would carry pointers, which are moved about, or add
32-bit distances to the first, for which ptxas multiplies (IMAD.WIDE). Both wait for the registers' ports while wgmma
runs: a dot of 4096x4096 with B row-major took 10 % more cycles on an H200.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import SSAValue

from deuteron.analysis.addresses.access_vectors import leaders
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.analysis.loop_registers import ROOM, distinct_addresses, registers_held, registers_under_way
from deuteron.backend.gpu.context import Context
from deuteron.backend.gpu.elements import bits_type
from deuteron.backend.gpu.fragment import Fragment, Operand, registers_of
from deuteron.backend.gpu.pointer_sums import PointerSum, in_bytes
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, bit_width, const
from deuteron.ir.around import is_defined_in
from deuteron.ir.tt.memory import AddPtrOp, LoadOp
from deuteron.ir.types import pointee_of

# Of the registers, beyond which fewer CTAs have room at once: products of odd sizes in 64x64 have 1.2 to 1.5 of the
# speed so, and one CTA alone 0.97 to 1.01.
MOST_FILLED = 1 / 2
# Fewer addresses of a thread are not worth it.
FEW, POINTER_WORDS = 12, 2


@dataclass(frozen=True)
class Advance:
    """What an iteration adds to a tile of pointers, in bytes, and what they are computed of, if that is kept."""

    step: Value
    kept: PointerSum | None = None


Advances = Mapping[int, Advance]  # by the index of what the loop carries


def advances_of(ctx: Context, loop: scf.ForOp, initial: Sequence[Operand]) -> Advances:
    """Of tiles of pointers that every iteration advances by what is known before the loop. Computed there."""
    advances: dict[int, Advance] = {}
    for index, (operand, following) in enumerate(zip(initial, loop.body.block.last_op.operands, strict=True)):
        advance = following.owner
        is_advanced = isinstance(advance, AddPtrOp) and advance.ptr is loop.body.block.args[1 + index]
        if is_advanced and isinstance(operand, Fragment) and not is_defined_in(advance.offset, loop):
            offsets = set(registers_of(ctx.values[advance.offset]))
            if len(offsets) == 1:
                size = bit_width(bits_type(pointee_of(advance.ptr.type))) // 8
                advances[index] = Advance(in_bytes(ctx.b, offsets.pop(), size))
    return _with_sums(ctx, loop, advances) if _fill_registers(ctx, loop, advances) else advances


def _with_sums(ctx: Context, loop: scf.ForOp, advances: Advances) -> Advances:
    found: dict[int, Advance] = {}
    for index, one in advances.items():
        registers = _firsts(ctx, loop.body.block.args[1 + index])
        found[index] = Advance(one.step, PointerSum.of(ctx, loop.iter_args[index], registers))
    return found


def _fill_registers(ctx: Context, loop: scf.ForOp, advances: Advances) -> bool:
    """Whether pointers fill many registers, with the tiles of a loop and what it loads."""
    addresses = sum(len(_firsts(ctx, loop.body.block.args[1 + index])) for index in advances)
    if addresses < FEW:
        return False
    loaded = [op.result for op in loop.body.block.ops if isinstance(op, LoadOp)]
    held = registers_held(loop, TilePolynomials(), loaded) + sum(registers_under_way(each.type) for each in loaded)
    most = (MOST_FILLED if loaded else ROOM) * ctx.config.registers_per_thread
    return held + POINTER_WORDS * addresses > most


def _firsts(ctx: Context, argument: SSAValue) -> list[int]:
    return distinct_addresses(argument, ctx.info.of(argument))


def as_offsets(initial: Sequence[Operand], advances: Advances) -> list[Operand]:
    """What the loop carries at first."""
    return [const("i64", 0) if index in advances else operand for index, operand in enumerate(initial)]


def as_pointers(
    ctx: Context, loop: scf.ForOp, initial: Sequence[Operand], carried: Sequence[Operand], advances: Advances
) -> list[Operand]:
    """What the loop's body, or what follows the loop, takes for what is carried."""
    values = zip(loop.body.block.args[1:], initial, carried, strict=True)
    return [
        _moved(ctx, argument, first, value, advances[index].kept) if index in advances else value
        for index, (argument, first, value) in enumerate(values)
    ]


def _moved(ctx: Context, argument: SSAValue, pointers: Fragment, offset: Value, kept: PointerSum | None) -> Fragment:
    """Those that are not known to be so far from another one."""
    known = leaders(pointers.layout, ctx.info.of(argument))
    if kept is not None:
        moved = kept.pointers(ctx, offset)
    else:
        opaque = ctx.isa.opaque(ctx.b, offset)
        moved = {first: ctx.b.gep("i8", pointers.registers[first], opaque) for first in _firsts(ctx, argument)}
    return Fragment(pointers.layout, tuple(_beyond(ctx.b, moved[leader], distance) for leader, distance in known))


def _beyond(b: Builder, pointer: Value, distance: int) -> Value:
    return b.gep("i8", pointer, const("i64", distance)) if distance else pointer


def advanced(b: Builder, carried: Sequence[Operand], following: Sequence[Operand], advances: Advances) -> list[Operand]:
    """What the next iteration is given."""
    return [b.add(carried[i], advances[i].step) if i in advances else value for i, value in enumerate(following)]
