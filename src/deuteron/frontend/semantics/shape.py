"""Shapes: tt.reshape, tt.trans, tt.broadcast, tt.expand_dims, tt.join, tt.split, tt.cat; indexing with None and `:`.

    x[:, None]                 tt.expand_dims axis = 1
    tl.trans(x)                tt.trans order = [1, 0]
    tl.join(a, b) of scalars   both as tiles of one element, joined, reshaped to [2]

Constant shapes are checked here, once; the ops only assert them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

from deuteron import language as tl
from deuteron.errors import counted
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.broadcast import broadcast_operands, broadcast_tensor, insert_dimension
from deuteron.frontend.semantics.constant import as_tensor
from deuteron.frontend.semantics.shapes import check_axis, check_shape, is_integer, unpacked
from deuteron.frontend.semantics.types import tensor, type_of
from deuteron.frontend.values import Tensor, Value, describe
from deuteron.ir.tt.shape import CatOp, JoinOp, ReshapeOp, SplitOp, TransOp, UnsplatOp


def broadcast(ctx: Context, input: Value, other: Value) -> tuple[Tensor, Tensor]:
    x, y = as_tensor(ctx, input, "What is broadcast"), as_tensor(ctx, other, "What is broadcast")
    return tuple(broadcast_operands(ctx, x, y))


def broadcast_to(ctx: Context, input: Value, *shape: Value) -> Tensor:
    x = as_tensor(ctx, input, "What is broadcast")
    wanted = check_shape(ctx, unpacked(shape))
    fits = len(x.shape) == len(wanted) and all(e in (1, w) for e, w in zip(x.shape, wanted, strict=True))
    if x.shape and not fits:
        raise ctx.error(
            f"Cannot broadcast {list(x.shape)} to {list(wanted)}. The rank must be the same and each extent equal "
            "or 1; insert dimensions with x[:, None] or x[None, :]."
        )
    return broadcast_tensor(ctx, x, wanted)


def trans(ctx: Context, input: Tensor, *dims: Value) -> Tensor:
    rank = len(_tile(ctx, "tl.trans", input).shape)
    if dims:
        return permute(ctx, input, *dims)
    if rank < 2:
        raise ctx.error(f"tl.trans swaps the last two dimensions, got {input.type}. Insert one with x[:, None].")
    return permute(ctx, input, *range(rank - 2), rank - 1, rank - 2)


def permute(ctx: Context, input: Tensor, *dims: Value) -> Tensor:
    shape = _tile(ctx, "tl.permute", input).shape
    order = unpacked(dims)
    if not all(is_integer(axis) for axis in order) or sorted(order) != list(range(len(shape))):
        raise ctx.error(
            f"The dims of a permutation of {input.type} are 0 to {len(shape) - 1} in some order, got {describe(order)}."
        )
    return tensor(ctx, TransOp(input.handle, order), type_of(input.dtype, [shape[axis] for axis in order]))


def reshape(ctx: Context, input: Value, *shape: Value, can_reorder: bool = False) -> Tensor:
    x = as_tensor(ctx, input, "What is reshaped")
    wanted = check_shape(ctx, unpacked(shape))
    if math.prod(x.shape) != math.prod(wanted):
        has = counted(math.prod(x.shape), "element")
        raise ctx.error(
            f"Cannot reshape {list(x.shape)} with {has} to {list(wanted)} with {math.prod(wanted)}. "
            "The number of elements stays."
        )
    if x.shape == wanted:
        return x
    if not wanted:
        return item(ctx, x)
    if not x.shape:
        return broadcast_tensor(ctx, x, wanted)
    return tensor(ctx, ReshapeOp(x.handle, wanted, bool(can_reorder)), type_of(x.dtype, wanted))


def view(ctx: Context, input: Value, *shape: Value) -> Tensor:
    return reshape(ctx, input, *shape, can_reorder=True)


def item(ctx: Context, input: Value) -> Tensor:
    x = as_tensor(ctx, input, "The argument of tl.item")
    if math.prod(x.shape) != 1:
        raise ctx.error(f"Only a tile of one element is a scalar, got {x.type}. Reduce it, as with tl.sum(x).")
    return tensor(ctx, UnsplatOp(x.handle), x.dtype) if x.shape else x


def expand_dims(ctx: Context, input: Value, axis: int | Sequence[int]) -> Tensor:
    x = as_tensor(ctx, input, "The argument of tl.expand_dims")
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    rank = len(x.shape) + len(axes)
    positions = sorted(check_axis(ctx, axis, rank, "the result of tl.expand_dims") for axis in axes)
    if len(set(positions)) != len(positions):
        raise ctx.error(f"tl.expand_dims got one axis twice: {describe(axes)} of a result of {rank} dimensions.")
    for position in positions:
        x = insert_dimension(ctx, x, position)
    return x


def getitem(ctx: Context, x: Tensor, index: Value) -> Tensor:
    items = _without_ellipsis(ctx, x, index if isinstance(index, tuple) else (index,))
    if not x.shape:
        items = [item for item in items if item != slice(None)]  # of a scalar all of it, as in Triton
    if sum(item is not None for item in items) > len(x.shape):
        way_out = "Use None to insert one." if x.shape else "A number has no items: pass a tuple."
        raise ctx.error(f"{x.type} has {counted(len(x.shape), 'dimension')}, indexed with {len(items)}. {way_out}")
    for axis, item in enumerate(items):
        if item is None:
            x = insert_dimension(ctx, x, axis)
        elif item != slice(None):
            raise ctx.error(
                f"A tile is indexed with None and : only, got {_index_text(item)}. {_instead_of_index(item)}"
            )
    return x


def _instead_of_index(item: Value) -> str:
    if isinstance(item, Tensor) and item.shape and item.dtype.is_int() and not item.dtype.is_bool():
        return "Take elements at the places in a tile with tl.gather(x, index, axis), or load them through a pointer."
    if item == slice(None, None, -1):
        return "Turn an axis round with tl.flip(x, axis)."
    return "Select elements with a mask and tl.sum, or load them through a pointer."


def _without_ellipsis(ctx: Context, x: Tensor, items: Sequence[Value]) -> Sequence[Value]:
    """`...` stands for as many `:` as are missing."""
    places = [place for place, item in enumerate(items) if item is Ellipsis]
    if not places:
        return items
    if len(places) > 1:
        raise ctx.error("An index has one '...' at most.")
    missing = len(x.shape) - sum(item is not None for item in items) + 1
    return (*items[: places[0]], *[slice(None)] * missing, *items[places[0] + 1 :])


def _index_text(item: Value) -> str:
    if not isinstance(item, slice):
        return describe(item)
    parts = [item.start, item.stop, *([item.step] if item.step is not None else [])]
    return ":".join("" if part is None else describe(part) for part in parts)


def join(ctx: Context, a: Value, b: Value) -> Tensor:
    a, b = as_tensor(ctx, a, "An argument of tl.join"), as_tensor(ctx, b, "An argument of tl.join")
    _check_same_dtype(ctx, "tl.join", a, b)
    a, b = broadcast_operands(ctx, a, b)
    if not a.shape:
        pair = join(ctx, insert_dimension(ctx, a, 0), insert_dimension(ctx, b, 0))
        return reshape(ctx, pair, 2)
    return tensor(ctx, JoinOp(a.handle, b.handle), type_of(a.dtype, (*a.shape, 2)))


def split(ctx: Context, a: Tensor) -> tuple[Tensor, Tensor]:
    if not isinstance(a, Tensor) or a.shape[-1:] != (2,):
        raise ctx.error(f"tl.split needs a last dimension of extent 2, got {describe(a)}. Reshape it first.")
    if len(a.shape) == 1:
        low, high = split(ctx, insert_dimension(ctx, a, 0))
        return item(ctx, low), item(ctx, high)
    halves = ctx.builder.insert(SplitOp(a.handle)).results
    low, high = (Tensor(half, type_of(a.dtype, a.shape[:-1])) for half in halves)
    return low, high


def cat(ctx: Context, input: Tensor, other: Tensor, can_reorder: bool = False, dim: int = 0) -> Tensor:
    _tile(ctx, "tl.cat", input)
    _tile(ctx, "tl.cat", other)
    _check_same_dtype(ctx, "tl.cat", input, other)
    if input.shape != other.shape:
        raise ctx.error(f"tl.cat needs tiles of one shape, got {input.type} and {other.type}.")
    rank = len(input.shape)
    axis = check_axis(ctx, dim, rank, "tl.cat")
    if can_reorder and rank == 1:
        return tensor(ctx, CatOp(input.handle, other.handle), type_of(input.dtype, (2 * input.shape[0],)))
    order = list(range(rank))
    order.insert(axis, rank)
    joined = permute(ctx, join(ctx, input, other), *order)
    return reshape(ctx, joined, *(extent * (2 if i == axis else 1) for i, extent in enumerate(input.shape)))


def _tile(ctx: Context, name: str, x: Value) -> Tensor:
    if not isinstance(x, Tensor) or not x.shape:
        raise ctx.error(f"{name} takes tiles, got {describe(x)}. Make one of a scalar with tl.full or x[None].")
    return x


def _check_same_dtype(ctx: Context, name: str, a: Tensor, b: Tensor) -> None:
    if a.dtype != b.dtype:
        raise ctx.error(f"{name} needs operands of one type, got {a.type} and {b.type}. Convert one with .to().")


RULES = {
    operator.getitem: getitem,
    tl.broadcast: broadcast,
    tl.broadcast_to: broadcast_to,
    tl.trans: trans,
    tl.permute: permute,
    tl.reshape: reshape,
    tl.view: view,
    tl.item: item,
    tl.expand_dims: expand_dims,
    tl.join: join,
    tl.split: split,
    tl.cat: cat,
}
