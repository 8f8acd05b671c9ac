"""Gather and histogram: tt.gather, tt.histogram.

Indices and what is counted become int32 or int64 first, by their signedness, so that the ops need not know it.
"""

from __future__ import annotations

from deuteron import language as tl
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.broadcast import broadcast_tensor, common_shape
from deuteron.frontend.semantics.constant import as_tensor
from deuteron.frontend.semantics.convert import convert
from deuteron.frontend.semantics.shapes import check_axis, check_shape
from deuteron.frontend.semantics.types import tensor, type_of
from deuteron.frontend.values import Tensor, Value, describe
from deuteron.ir.tt.indexing import GatherOp, HistogramOp
from deuteron.language.types import int32, int64


def gather(ctx: Context, src: Value, index: Value, axis: int) -> Tensor:
    for name, operand in (("source", src), ("index", index)):
        if not isinstance(operand, Tensor) or not operand.shape:
            raise ctx.error(f"The {name} of tl.gather is a tile, got {describe(operand)}. Load scalars by a pointer.")
    if not index.dtype.is_int():
        raise ctx.error(f"The index of tl.gather is a tile of integers, got {index.type}. Convert it to tl.int32.")
    if len(index.shape) != len(src.shape):
        raise ctx.error(
            f"The source and the index of tl.gather have one rank, got {src.type} and {index.type}. "
            "Insert dimensions with x[:, None] and repeat them with tl.broadcast_to."
        )
    position = check_axis(ctx, axis, len(src.shape), src.type.name)
    for other, (extent, wanted) in enumerate(zip(index.shape, src.shape, strict=True)):
        if other != position and extent != wanted:
            raise ctx.error(
                f"The index of tl.gather along axis {position} has the source's other extents, "
                f"got {list(index.shape)} for {list(src.shape)}. Broadcast it along axis {other}."
            )
    op = GatherOp(src.handle, _wide(ctx, index).handle, position)
    return tensor(ctx, op, type_of(src.dtype, index.shape))


def histogram(ctx: Context, input: Value, num_bins: int, mask: Value = None) -> Tensor:
    if not isinstance(input, Tensor) or len(input.shape) != 1:
        raise ctx.error(f"tl.histogram counts in a tile of one dimension, got {describe(input)}. Use tl.ravel.")
    if not input.dtype.is_int():
        raise ctx.error(f"tl.histogram counts integers, got {input.type}. Convert them to tl.int32.")
    (count,) = check_shape(ctx, num_bins)
    handle = None if mask is None else _mask(ctx, mask, input).handle
    return tensor(ctx, HistogramOp(_wide(ctx, input).handle, count, handle), type_of(int32, (count,)))


def _mask(ctx: Context, mask: Value, input: Tensor) -> Tensor:
    mask = as_tensor(ctx, mask, "The mask of tl.histogram")
    if not mask.dtype.is_bool():
        raise ctx.error(f"The mask of tl.histogram is bool, got {mask.type}. Compare it with something.")
    if common_shape(ctx, mask.shape, input.shape) != input.shape:
        raise ctx.error(f"The mask of tl.histogram has the shape of {input.type}, got {mask.type}.")
    return broadcast_tensor(ctx, mask, input.shape)


def _wide(ctx: Context, x: Tensor) -> Tensor:
    """Of at least 32 bits, and signed: what is a large uint32 is one as an int64, too."""
    if x.dtype.is_int_unsigned() and x.dtype.int_bitwidth == 32:
        return convert(ctx, x, int64)
    return x if x.dtype.int_bitwidth >= 32 else convert(ctx, x, int32)


RULES = {tl.gather: gather, tl.histogram: histogram}
