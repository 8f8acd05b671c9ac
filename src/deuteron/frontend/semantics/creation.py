"""Tiles out of nothing: tt.make_range for arange, constants for full and zeros (a splat of a runtime scalar)."""

from __future__ import annotations

from collections.abc import Sequence

from deuteron import language as tl
from deuteron.frontend.advice import type_named
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.broadcast import splat
from deuteron.frontend.semantics.constant import number
from deuteron.frontend.semantics.convert import convert
from deuteron.frontend.semantics.shapes import check_shape, next_power_of_two, whole
from deuteron.frontend.semantics.types import tensor, type_of
from deuteron.frontend.values import Tensor, Value, describe, is_number, is_runtime
from deuteron.ir.tt.shape import MakeRangeOp
from deuteron.language.types import dtype as DType
from deuteron.language.types import int32


def arange(ctx: Context, start: int, end: int) -> Tensor:
    """True is 1, as in Python."""
    for name, bound in (("start", start), ("end", end)):
        if not isinstance(bound, int):
            raise ctx.error(
                f"The {name} of tl.arange is an integer known at compile time, got {describe(bound)}."
                f"{whole(bound) or _way_out(ctx, name, bound)}"
            )
        if not int32.get_int_min_value() <= bound <= int32.get_int_max_value():
            raise ctx.error(f"The {name} of tl.arange fits in int32, got {bound}. Add what is beyond afterwards.")
    start, end = int(start), int(end)
    extent = end - start
    if extent <= 0:
        raise ctx.error(f"tl.arange({start}, {end}) is empty. The end must be greater than the start.")
    if extent & (extent - 1):
        raise ctx.error(
            f"Expected a power of two, got {extent} elements in tl.arange({start}, {end}). "
            f"Pad it to {next_power_of_two(extent)} and mask the tail."
        )
    check_shape(ctx, (extent,))
    return tensor(ctx, MakeRangeOp(start, end), type_of(int32, (extent,)))


def _way_out(ctx: Context, name: str, bound: Value) -> str:
    if not is_runtime(bound):
        return ""
    offset = "Add a runtime offset to the range, as in `start + tl.arange(0, BLOCK)`."
    mask = "Take a constexpr that is large enough, and mask, as in `tl.arange(0, BLOCK) < end`."
    return f" {ctx.how_to_know(bound) or (offset if name == 'start' else mask)}"


def full(ctx: Context, shape: Sequence[int], value: Value, dtype: DType) -> Tensor:
    extents = check_shape(ctx, shape)
    if not isinstance(dtype, DType) or dtype.is_ptr() or dtype.is_block() or dtype.is_void():
        way_out = f" {type_named(dtype)}" if isinstance(dtype, str | type) else ""
        raise ctx.error(f"The dtype of a tile is a type such as tl.float32, got {describe(dtype)}.{way_out}")
    if is_number(value):
        return number(ctx, value, dtype, extents)
    if not isinstance(value, Tensor) or value.shape:
        raise ctx.error(
            f"The value of tl.full is a number or a scalar, got {describe(value)}. Use tl.broadcast_to for a tile."
        )
    return splat(ctx, convert(ctx, value, dtype), extents) if extents else convert(ctx, value, dtype)


def zeros(ctx: Context, shape: Sequence[int], dtype: DType) -> Tensor:
    return full(ctx, shape, 0, dtype)


RULES = {tl.arange: arange, tl.full: full, tl.zeros: zeros}
