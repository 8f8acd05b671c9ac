"""Block pointers: sizes and strides become int64, offsets int32 (int64 if they are so wide), then tt.make_tensor_ptr.

    tl.make_block_ptr(p, (M, N), (N, 1), (0, n), (64, 32), (1, 0))     a BlockPointer of type pointer<fp16[64, 32]>
    tl.load(block, boundary_check=(0,), padding_option="nan")          tt.load of a tile

An access through a block pointer has no mask: `memory.py` passes it on to here.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from deuteron import language as tl
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.constant import as_tensor, number
from deuteron.frontend.semantics.convert import convert
from deuteron.frontend.semantics.operands import value_in_type
from deuteron.frontend.semantics.shapes import check_shape, is_integer
from deuteron.frontend.semantics.types import ir_type, tensor
from deuteron.frontend.values import BlockPointer, Tensor, Value, describe
from deuteron.ir import types as ir
from deuteron.ir.tt.block_pointer import AdvanceOp, MakeTensorPtrOp
from deuteron.ir.tt.memory import CacheModifier, EvictionPolicy, LoadOp, Padding, StoreOp
from deuteron.language.types import block_type, dtype, int1, int8, int32, int64, pointer_type

_OFFSETS = (int32, int64)
PADDINGS = {"": None, None: None, "zero": Padding.ZERO, "nan": Padding.NAN}


def make_block_ptr(
    ctx: Context, base: Value, shape: Value, strides: Value, offsets: Value, block_shape: Value, order: Value
) -> BlockPointer:
    name = "tl.make_block_ptr"
    if not isinstance(base, Tensor) or not base.dtype.is_ptr() or base.shape:
        raise ctx.error(f"{name} takes the pointer to the first element, got {describe(base)}.")
    if base.dtype.element_ty == int1:
        base = convert(ctx, base, pointer_type(int8, base.dtype.address_space, base.dtype.const))
    extents = check_shape(ctx, block_shape)
    rank, element = len(extents), base.dtype.element_ty
    op = MakeTensorPtrOp(
        base.handle,
        _scalars(ctx, shape, rank, f"the shape of {name}"),
        _scalars(ctx, strides, rank, f"the strides of {name}"),
        _scalars(ctx, offsets, rank, f"the offsets of {name}", _OFFSETS),
        ir.PointerType(TensorType(ir_type(element), extents)),
        _order(ctx, order, rank),
    )
    type = pointer_type(block_type(element, extents), base.dtype.address_space, base.dtype.const)
    return BlockPointer(ctx.builder.value(op), type)


def advance(ctx: Context, base: Value, offsets: Value) -> BlockPointer:
    if not isinstance(base, BlockPointer):
        raise ctx.error(f"tl.advance takes a block pointer, got {describe(base)}. Make one with tl.make_block_ptr.")
    steps = _scalars(ctx, offsets, len(base.block.shape), "the offsets of tl.advance", _OFFSETS)
    return BlockPointer(ctx.builder.value(AdvanceOp(base.handle, steps)), base.type)


def _order(ctx: Context, order: Value, rank: int) -> list[int]:
    dims = list(order) if isinstance(order, (tuple, list)) else [order]
    if not all(map(is_integer, dims)) or sorted(dims) != list(range(rank)):
        raise ctx.error(
            f"The order of tl.make_block_ptr is a permutation of {tuple(range(rank))}, got {describe(order)}. The "
            f"fastest changing dimension comes first: {tuple(reversed(range(rank)))} is row-major."
        )
    return [int(dim) for dim in dims]


def _scalars(ctx: Context, values: Value, rank: int, what: str, types: Sequence[dtype] = (int64,)) -> list[SSAValue]:
    """One integer scalar for each dimension, in the first of the types that holds it."""
    given = values if isinstance(values, (tuple, list)) else (values,)
    if len(given) != rank:
        expected = f"expected {rank} integer{'s' * (rank != 1)}, as the block has"
        raise ctx.error(f"{what[0].upper()}{what[1:]}: {expected}, got {describe(values)}.")
    return [_scalar(ctx, value, what, types).handle for value in given]


def _scalar(ctx: Context, value: Value, what: str, types: Sequence[dtype]) -> Tensor:
    if is_integer(value):
        return number(ctx, value, _first_with(types, value, value))
    value = as_tensor(ctx, value, f"Each of {what}")
    if value.shape or not value.dtype.is_int() or value.dtype.is_bool():
        raise ctx.error(f"Each of {what} is an integer scalar, got {value.type}.")
    return convert(ctx, value, _first_with(types, value.dtype.get_int_min_value(), value.dtype.get_int_max_value()))


def _first_with(types: Sequence[dtype], least: int, most: int) -> dtype:
    """The first type that has these numbers; else the last one."""
    has = (type for type in types if type.get_int_min_value() <= least and most <= type.get_int_max_value())
    return next(has, types[-1])


def load(
    ctx: Context,
    pointer: BlockPointer,
    mask: Value,
    other: Value,
    boundary_check: Value,
    padding_option: Value,
    cache: CacheModifier,
    evict: EvictionPolicy,
    volatile: bool,
) -> Tensor:
    """The block that is pointed to."""
    _check_no_mask(ctx, "tl.load", mask=mask, other=other)
    axes = _checked_axes(ctx, "tl.load", pointer, boundary_check)
    padding = _padding(ctx, padding_option, pointer.block.element_ty)
    op = LoadOp(pointer.handle, None, None, cache, evict, volatile, axes, padding)
    return tensor(ctx, op, pointer.block)


def store(
    ctx: Context,
    pointer: BlockPointer,
    value: Value,
    mask: Value,
    boundary_check: Value,
    cache: CacheModifier,
    evict: EvictionPolicy,
) -> None:
    """Store to the block that is pointed to; a scalar everywhere."""
    _check_no_mask(ctx, "tl.store", mask=mask)
    axes, block = _checked_axes(ctx, "tl.store", pointer, boundary_check), pointer.block
    if isinstance(value, Tensor) and value.shape not in ((), block.shape):
        raise ctx.error(
            f"tl.store through a pointer to a block of {list(block.shape)} got a value of {list(value.shape)}. "
            "Give both the same shape."
        )
    value = value_in_type(ctx, value, block.element_ty, block.shape, "The value of tl.store")
    ctx.builder.insert(StoreOp(pointer.handle, value.handle, None, cache, evict, axes))


def check_no_boundary(ctx: Context, name: str, boundary_check: Value, padding_option: Value = "") -> None:
    """Raise CompilationError where what only block pointers have is asked of other pointers."""
    if boundary_check != () or padding_option:
        given = "boundary_check" if boundary_check != () else "padding_option"
        raise ctx.error(
            f"{name} through plain pointers has no {given}: they do not know where the tensor ends. Use a mask, or "
            "tl.make_block_ptr."
        )


def _check_no_mask(ctx: Context, name: str, **given: Value) -> None:
    for word, value in given.items():
        if value is not None:
            raise ctx.error(
                f"{name} through a block pointer has no `{word}`. Say in boundary_check which dimensions may be out of "
                "bounds."
            )


def _checked_axes(ctx: Context, name: str, pointer: BlockPointer, axes: Value) -> list[int]:
    """The dimensions in which an access is checked, in order."""
    given = list(axes) if isinstance(axes, (tuple, list)) else [axes]
    rank = len(pointer.block.shape)
    for axis in given:
        if not is_integer(axis) or not 0 <= axis < rank or given.count(axis) > 1:
            raise ctx.error(
                f"The boundary_check of {name} names each of the dimensions {tuple(range(rank))} of the block at most "
                f"once, got {describe(axes)}."
            )
    return sorted(int(axis) for axis in given)


def _padding(ctx: Context, option: Value, element: dtype) -> Padding | None:
    if not isinstance(option, str | None) or option not in PADDINGS:
        raise ctx.error(f"tl.load has no padding_option {describe(option)}. Use 'zero' or 'nan', or ''.")
    if PADDINGS[option] == Padding.NAN and not element.is_floating():
        raise ctx.error(f"padding_option 'nan' is for floats, the elements are {element}. Use 'zero'.")
    return PADDINGS[option]


ATTRIBUTES = {
    "type": lambda ctx, pointer: pointer.type,
    "dtype": lambda ctx, pointer: pointer.type,
    "shape": lambda ctx, pointer: (),
}
advance.must_use_result = tl.advance.must_use_result

METHODS = {"advance": advance, "store": tl.store}
RULES = {tl.make_block_ptr: make_block_ptr, tl.advance: advance}
