"""Tiles of pointers that a loop advances by one step, carried as one offset instead of a pointer in each register.

    ^(%p: p0, p1, p2, p3)                ^(%offset: i64)
      load %p                     ->       load p0 + %offset, p1 + %offset, ...
      yield %p + splat(64)                 yield %offset + 128

Of neighbours along a dimension in which the pointers are contiguous one is advanced, and the others are computed of it:
an access has room for the distance.

The offset is opaque, so that LLVM's strength reduction keeps it: it would carry pointers, which are moved about, or add
32-bit distances to the first, for which ptxas multiplies (IMAD.WIDE). Both wait for the registers' ports while wgmma
runs: a dot of 4096x4096 with B row-major took 10 % more cycles on an H200.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import scf
from xdsl.ir import SSAValue

from deuteron.analysis.addresses.access_vectors import leaders
from deuteron.backend.gpu.context import Context
from deuteron.backend.gpu.elements import bits_type
from deuteron.backend.gpu.fragment import Fragment, Operand, registers_of
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, bit_width, const
from deuteron.ir.around import is_defined_in
from deuteron.ir.tt.memory import AddPtrOp
from deuteron.ir.types import pointee_of

Steps = Mapping[int, Value]  # in bytes, by the index of what the loop carries


def steps_of_pointers(ctx: Context, loop: scf.ForOp, initial: Sequence[Operand]) -> Steps:
    """For tiles of pointers that every iteration advances by what is known before the loop. Computed there."""
    steps: dict[int, Value] = {}
    for index, (operand, following) in enumerate(zip(initial, loop.body.block.last_op.operands, strict=True)):
        advance = following.owner
        is_advanced = isinstance(advance, AddPtrOp) and advance.ptr is loop.body.block.args[1 + index]
        if is_advanced and isinstance(operand, Fragment) and not is_defined_in(advance.offset, loop):
            offsets = set(registers_of(ctx.values[advance.offset]))
            if len(offsets) == 1:
                size = bit_width(bits_type(pointee_of(advance.ptr.type))) // 8
                steps[index] = _bytes(ctx.b, offsets.pop(), size)
    return steps


def _bytes(b: Builder, count: Value, size: int) -> Value:
    wide = count if bit_width(count.type) == 64 else b.sext(count, "i64")
    return b.mul(wide, const("i64", size))


def as_offsets(initial: Sequence[Operand], steps: Steps) -> list[Operand]:
    """What the loop carries at first."""
    return [const("i64", 0) if index in steps else operand for index, operand in enumerate(initial)]


def as_pointers(
    ctx: Context, loop: scf.ForOp, initial: Sequence[Operand], carried: Sequence[Operand], steps: Steps
) -> list[Operand]:
    """What the loop's body, or what follows the loop, takes for what is carried."""
    values = zip(loop.body.block.args[1:], initial, carried, strict=True)
    return [
        _moved(ctx, argument, first, value) if index in steps else value
        for index, (argument, first, value) in enumerate(values)
    ]


def _moved(ctx: Context, argument: SSAValue, pointers: Fragment, offset: Value) -> Fragment:
    """Those that are not known to be so far from another one."""
    opaque, b = ctx.isa.opaque(ctx.b, offset), ctx.b
    moved: dict[int, Value] = {}
    for register, (leader, distance) in enumerate(leaders(pointers.layout, ctx.info.of(argument))):
        if register == leader:
            moved[register] = b.gep("i8", pointers.registers[register], opaque)
        else:
            moved[register] = b.gep("i8", moved[leader], const("i64", distance))
    return Fragment(pointers.layout, tuple(moved[register] for register in range(len(pointers.registers))))


def advanced(b: Builder, carried: Sequence[Operand], following: Sequence[Operand], steps: Steps) -> list[Operand]:
    """What the next iteration is given."""
    return [b.add(carried[i], steps[i]) if i in steps else value for i, value in enumerate(following)]
