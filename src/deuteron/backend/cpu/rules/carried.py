"""What loops carry: scalars, and of tiles that only advance (`plan/inductions.py`) what they have advanced by.

for k in range(n):              i = phi [0], [i + 1]; total = phi [0], [total + step]
    x += step                   x is its initial elements, plus the total
    i += 1
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from deuteron.backend.cpu.context import Context
from deuteron.backend.cpu.fragment import Uniform
from deuteron.backend.llvm.types import Value
from deuteron.ir.types import byte_width_of, is_pointer, is_tile


def scalars(values: Sequence[SSAValue]) -> list[SSAValue]:
    return [value for value in values if not is_tile(value.type)]


def advancing(ctx: Context, arguments: Sequence[SSAValue]) -> list[SSAValue]:
    """The inductions that something is added to."""
    inductions = ctx.plan.storage.inductions
    return [argument for argument in arguments if argument in inductions and inductions[argument].steps]


def bind_carried(ctx: Context, values: Sequence[SSAValue], tiles: list[SSAValue], carried: Sequence[Value]) -> None:
    """Bind the scalars, then the totals of the inductions."""
    named = scalars(values)
    for scalar, value in zip(named, carried[: len(named)], strict=True):
        ctx.bind(scalar, value)
    for tile, total in zip(tiles, carried[len(named) :], strict=True):
        ctx.totals[tile] = Uniform(total, ctx.emitter.depth)


def total_type(argument: SSAValue) -> str:
    """Of pointers the number of elements that they have advanced by."""
    return "i64" if is_pointer(argument.type) else f"i{8 * byte_width_of(argument.type)}"


def advanced(ctx: Context, argument: SSAValue) -> Value:
    """What an induction has advanced by after this iteration."""
    ctx.nest_state.tiles.clear()
    total = ctx.totals[argument].value
    for step in ctx.plan.storage.inductions[argument].steps:
        index = (None,) * len(step.type.get_shape()) if is_tile(step.type) else ()
        value = ctx.evaluate(step, index).value
        b = ctx.emitter.innermost()
        total = b.add(total, b.sext(value, total.type))
    return total
