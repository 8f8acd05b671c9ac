"""Bringing operands to one shape, as NumPy does; tile IR has every step of it as an op.

    scalar with tile             tt.splat
    [32] with [64, 32]           tt.expand_dims, tt.broadcast
    [64, 1] with [1, 32]         tt.broadcast both

A constant becomes a constant of the larger shape instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron.frontend.context import Context
from deuteron.frontend.semantics.types import ir_type, tensor, type_of
from deuteron.frontend.values import Tensor
from deuteron.ir.arith import constant_value
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, SplatOp
from deuteron.ir.types import is_pointer


def broadcast_operands(ctx: Context, *operands: Tensor) -> list[Tensor]:
    """All operands in their common shape."""
    shape = common_shape(ctx, *(operand.shape for operand in operands))
    return [broadcast_tensor(ctx, operand, shape) for operand in operands]


def common_shape(ctx: Context, *shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that all shapes broadcast to; missing leading dimensions count as 1."""
    rank = max(len(shape) for shape in shapes)
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    result = tuple(max(extents) for extents in zip(*padded, strict=True))
    for shape in padded:
        for axis, (extent, wanted) in enumerate(zip(shape, result, strict=True)):
            if extent not in (1, wanted):
                raise ctx.error(_mismatch(shapes, axis, extent, wanted))
    return result


def _mismatch(shapes: Sequence[Sequence[int]], axis: int, extent: int, wanted: int) -> str:
    shown = " and ".join(str(list(shape)) for shape in shapes if shape)
    return (
        f"Shapes {shown} do not go together: {extent} and {wanted} at dimension {axis}. "
        "Extents must be equal or 1; insert dimensions with x[:, None] or x[None, :]."
    )


def broadcast_tensor(ctx: Context, x: Tensor, shape: Sequence[int]) -> Tensor:
    """`x` in a shape that it is known to broadcast to."""
    if x.shape == tuple(shape):
        return x
    if not x.shape:
        return splat(ctx, x, shape)
    for _ in range(len(shape) - len(x.shape)):
        x = insert_dimension(ctx, x, 0)
    return x if x.shape == tuple(shape) else tensor(ctx, BroadcastOp(x.handle, shape), type_of(x.dtype, shape))


def splat(ctx: Context, x: Tensor, shape: Sequence[int]) -> Tensor:
    """A tile of one scalar; a constant one where the scalar is constant."""
    type = type_of(x.dtype, shape)
    value = None if is_pointer(x.handle.type) else constant_value(x.handle)
    if value is None or value != value:
        return tensor(ctx, SplatOp(x.handle, shape), type)
    return Tensor(ctx.builder.constant(value, ir_type(type)), type)


def insert_dimension(ctx: Context, x: Tensor, axis: int) -> Tensor:
    """`x` with a dimension of extent 1 at `axis` of the result."""
    if not x.shape:
        return splat(ctx, x, (1,))
    shape = (*x.shape[:axis], 1, *x.shape[axis:])
    return tensor(ctx, ExpandDimsOp(x.handle, axis), type_of(x.dtype, shape))
