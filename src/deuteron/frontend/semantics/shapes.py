"""Checks of what kernels give as shapes, dimensions and axes.

    (64, 32)   [64, 32]   64, 32          a shape: powers of two known at compile time, at most 2^20 elements
    0   -1                                an axis: negative counts from the end

What passes is returned as plain ints.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from deuteron.frontend.context import Context
from deuteron.frontend.values import Value, describe, is_runtime
from deuteron.language import TRITON_MAX_TENSOR_NUMEL
from deuteron.language.types import dtype


def check_shape(ctx: Context, shape: Value) -> tuple[int, ...]:
    """The extents as ints, True as 1; raises CompilationError unless a tile can have them."""
    extents = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    for extent in extents:
        if is_runtime(extent):
            raise ctx.error(
                f"The shape {describe(extents)} is not known at compile time: {describe(extent)}. "
                + (ctx.how_to_know(extent) or "Take extents from constexpr parameters.")
            )
        if not isinstance(extent, int):
            raise ctx.error(
                f"The extents of a shape are integers, got {describe(extent)} in {describe(extents)}.{whole(extent)}"
            )
        if extent < 1:
            raise ctx.error(
                f"The extents of a shape are 1 or more, got {extent} in {list(extents)}. None is found out from the "
                "others."
            )
        if extent & (extent - 1):
            raise ctx.error(
                f"Expected powers of two, got {extent} in the shape {list(extents)}. "
                f"Use {next_power_of_two(extent)} and mask the tail."
            )
    if math.prod(extents) > TRITON_MAX_TENSOR_NUMEL:
        raise ctx.error(
            f"A tile has at most {TRITON_MAX_TENSOR_NUMEL} elements, got {math.prod(extents)} in the shape "
            f"{list(extents)}. Loop over smaller tiles."
        )
    return tuple(int(extent) for extent in extents)


def whole(value: Value) -> str:
    """How a number that is no integer becomes one, and what takes a type in the place of a shape."""
    if isinstance(value, dtype):
        return " A type comes after the shape. To reinterpret bits, use x.to(dtype, bitcast=True)."
    return " Divide with // for a whole number." if isinstance(value, float) else ""


def next_power_of_two(extent: int) -> int:
    return 1 << max(extent - 1, 0).bit_length()


def is_integer(value: Value) -> bool:
    """Whether it is an integer that is known at compile time."""
    return isinstance(value, int) and not isinstance(value, bool)


def unpacked(dims: Sequence[Value]) -> tuple[Value, ...]:
    """The arguments of `f(x, 1, 0)` or `f(x, (1, 0))`."""
    if len(dims) == 1 and isinstance(dims[0], (tuple, list)):
        return tuple(dims[0])
    return tuple(dims)


def check_axis(ctx: Context, axis: Value, rank: int, what: str) -> int:
    """The axis counted from the front; raises CompilationError unless it is one of `rank` dimensions."""
    if not is_integer(axis):
        raise ctx.error(f"The axis of {what} is an integer known at compile time, got {describe(axis)}.")
    if not -rank <= axis < rank:
        raise ctx.error(f"{what} has no axis {axis}: it has {rank} dimension{'s' * (rank != 1)}.")
    return axis % rank
