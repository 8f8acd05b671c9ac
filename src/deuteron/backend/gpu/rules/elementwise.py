"""Rules for ops on each element alone: an emitter on scalars becomes a rule for tiles and scalars.

plain(Builder.add)              (ctx, op, x, y) -> for each register  b.add(x, y)
each_vector(b, emit, x)         for each four registers  emit(their vector), which may branch once for all

Registers with equal operands, as broadcasts make them, are computed once.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation

from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.fragment import Fragment, Operand, registers_of, with_registers
from deuteron.backend.gpu.words import join, split
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value

Emit = Callable[..., Value]

VECTOR = 4


def each(emit: Callable[..., Value], *operands: Operand) -> Operand:
    """Apply an emitter to the registers of tiles; a scalar among them goes to all."""
    tiles = [operand for operand in operands if isinstance(operand, Fragment)]
    if not tiles:
        return emit(*operands)
    count = len(tiles[0].registers)
    columns = [o.registers if isinstance(o, Fragment) else (o,) * count for o in operands]
    made: dict[tuple[Value, ...], Value] = {}
    for values in zip(*columns, strict=True):
        if values not in made:
            made[values] = emit(*values)
    return with_registers(tiles[0], (made[values] for values in zip(*columns, strict=True)))


def each_vector(b: Builder, emit: Callable[[Value], Value], x: Operand) -> Operand:
    """Apply an emitter on vectors, and on scalars, to the registers of a tile, or to a scalar."""
    registers = registers_of(x)
    distinct = list(dict.fromkeys(registers))
    made: dict[Value, Value] = {}
    for start in range(0, len(distinct), VECTOR):
        together = distinct[start : start + VECTOR]
        made.update(zip(together, split(b, emit(join(b, together)), len(together)), strict=True))
    return with_registers(x, (made[value] for value in registers))


def plain(emit: Emit) -> Rule:
    """A rule from `emit(builder, *values)`."""

    def rule(ctx: Context, op: Operation, *operands: Operand) -> Operand:
        return each(lambda *values: emit(ctx.b, *values), *operands)

    return rule


def intrinsic(name: str) -> Rule:
    """A rule for an intrinsic of LLVM that is overloaded on the type of its operands."""
    return plain(lambda b, *values: b.intrinsic(name, values[0].type, *values))
