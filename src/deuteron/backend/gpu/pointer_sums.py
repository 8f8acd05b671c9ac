"""Tiles of pointers as one scalar pointer and what is added to it, so that a loop computes them where it needs them.

    p = a + row * stride + column        a, row * stride (32 in each thread), column (1)

Of 32 rows a loop that advances the pointers holds 64 registers, and one that adds them up 32: ptxas makes an address of
the scalar pointer and an offset by one instruction. The offsets are opaque, so that LLVM takes them for no others' and
keeps them in 32 bits; what a thread adds to all its pointers goes to the scalar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from deuteron.backend.gpu.context import Context
from deuteron.backend.gpu.elements import bits_type
from deuteron.backend.gpu.fragment import Fragment
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, bit_width, const
from deuteron.ir.tt.memory import AddPtrOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, SplatOp
from deuteron.ir.types import pointee_of

OFFSET_BITS = 32


@dataclass(frozen=True)
class Offsets:
    """What is added to some pointers of a thread, by their registers, to what has so many bytes."""

    values: Mapping[int, Value]
    size: int

    @property
    def num_different(self) -> int:
        return len(set(self.values.values()))


@dataclass(frozen=True)
class PointerSum:
    """A scalar pointer, and the offsets that are added to it."""

    base: Value
    offsets: tuple[Offsets, ...]
    registers: tuple[int, ...]

    @staticmethod
    def of(ctx: Context, pointers: SSAValue, registers: Sequence[int]) -> PointerSum | None:
        """Of the pointers in some registers; None where they are of anything else, or of wider offsets."""
        views: list[Operation] = []
        offsets: list[Offsets] = []
        while not isinstance(op := pointers.owner, SplatOp):
            if isinstance(op, AddPtrOp):
                tile = _seen_through(ctx, views, ctx.values[op.offset])
                values = {register: tile.registers[register] for register in registers}
                offsets.append(Offsets(values, bit_width(bits_type(pointee_of(op.result.type))) // 8))
                pointers = op.ptr
            elif isinstance(op, BroadcastOp | ExpandDimsOp):
                views.append(op)
                pointers = op.src
            else:
                return None
        different = [value for one in offsets if one.num_different > 1 for value in one.values.values()]
        if any(bit_width(value.type) != OFFSET_BITS for value in different):
            return None
        return PointerSum(ctx.values[op.src], tuple(offsets), tuple(registers))

    def pointers(self, ctx: Context, moved: Value) -> dict[int, Value]:
        """Those, moved on by so many bytes; what differs least is added first, and what does not to the scalar."""
        b = ctx.b
        equal = [one for one in self.offsets if one.num_different == 1]
        different = sorted((one for one in self.offsets if one not in equal), key=lambda one: one.num_different)
        for one in equal:
            moved = b.add(moved, in_bytes(b, one.values[self.registers[0]], one.size))
        found = dict.fromkeys(self.registers, b.gep("i8", self.base, ctx.isa.opaque(b, moved)))
        for one in different:
            _add(ctx, found, one)
        return found


def in_bytes(b: Builder, count: Value, size: int) -> Value:
    wide = count if bit_width(count.type) == 64 else b.sext(count, "i64")
    return b.mul(wide, const("i64", size))


def _seen_through(ctx: Context, views: Sequence[Operation], tile: Fragment) -> Fragment:
    for view in reversed(views):
        tile = ctx.rules[view.name](ctx, view, tile)
    return tile


def _add(ctx: Context, pointers: dict[int, Value], offsets: Offsets) -> None:
    opaque: dict[Value, Value] = {}
    sums: dict[tuple[Value, Value], Value] = {}
    for register, offset in offsets.values.items():
        pointer = pointers[register]
        if offset not in opaque:
            opaque[offset] = offset if offset.is_constant else ctx.isa.opaque(ctx.b, offset)
        if (pointer, offset) not in sums:
            sums[pointer, offset] = ctx.b.gep(f"i{8 * offsets.size}", pointer, opaque[offset])
        pointers[register] = sums[pointer, offset]
