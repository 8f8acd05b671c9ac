"""Rules for ops on each element alone: an emitter on scalars becomes a rule for tiles and scalars.

plain(Builder.add)              (ctx, op, x, y) -> for each register  b.add(x, y)

Registers with equal operands, as broadcasts make them, are computed once.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation

from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.fragment import Fragment, Operand, with_registers
from deuteron.backend.llvm.types import Value

Emit = Callable[..., Value]


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


def plain(emit: Emit) -> Rule:
    """A rule from `emit(builder, *values)`."""

    def rule(ctx: Context, op: Operation, *operands: Operand) -> Operand:
        return each(lambda *values: emit(ctx.b, *values), *operands)

    return rule


def intrinsic(name: str) -> Rule:
    """A rule for an intrinsic of LLVM that is overloaded on the type of its operands."""
    return plain(lambda b, *values: b.intrinsic(name, values[0].type, *values))
