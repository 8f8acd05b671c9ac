"""Loads and stores: masks and values are brought to the pointer's shape and type, then tt.load or tt.store.

    tl.load(p, mask=i < n, other=0)      other converted to the element type, as a tile
    tl.load(p: *int1)                    bytes are loaded and compared with 0; a store writes bytes 0 and 1
    mask=True                            no mask

Whoever reads memory that a mask excludes gets `other`, or anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from deuteron import language as tl
from deuteron.frontend.context import Context
from deuteron.frontend.semantics import block_pointer
from deuteron.frontend.semantics.broadcast import broadcast_tensor, common_shape
from deuteron.frontend.semantics.constant import as_tensor
from deuteron.frontend.semantics.convert import convert
from deuteron.frontend.semantics.operands import value_in_type
from deuteron.frontend.semantics.types import tensor
from deuteron.frontend.values import BlockPointer, Tensor, Value, describe, left_over_comma
from deuteron.ir.tt.memory import CacheModifier, EvictionPolicy, LoadOp, StoreOp
from deuteron.language.types import int1, int8, pointer_type

LOAD_MODIFIERS = (CacheModifier.CA, CacheModifier.CG, CacheModifier.CS, CacheModifier.CV)
STORE_MODIFIERS = (CacheModifier.WB, CacheModifier.CG, CacheModifier.CS, CacheModifier.WT)
EVICTION_POLICIES = {
    "evict_normal": EvictionPolicy.NORMAL,
    "evict_first": EvictionPolicy.EVICT_FIRST,
    "evict_last": EvictionPolicy.EVICT_LAST,
}


def load(
    ctx: Context,
    pointer: Value,
    mask: Value = None,
    other: Value = None,
    boundary_check: Value = (),
    padding_option: Value = "",
    cache_modifier: str = "",
    eviction_policy: str = "",
    volatile: bool = False,
) -> Tensor:
    cache = _cache_modifier(ctx, "tl.load", cache_modifier, LOAD_MODIFIERS)
    evict = _eviction_policy(ctx, eviction_policy)
    if isinstance(pointer, BlockPointer):
        given = mask, other, boundary_check, padding_option, cache, evict, bool(volatile)
        return block_pointer.load(ctx, pointer, *given)
    check_pointer(ctx, "tl.load", pointer)
    block_pointer.check_no_boundary(ctx, "tl.load", boundary_check, padding_option)
    is_bool = pointer.dtype.element_ty == int1
    if other is not None and mask is None:
        raise ctx.error("tl.load got `other` without a mask. Give the mask that says where `other` is taken.")
    mask = checked_mask(ctx, "tl.load", pointer, mask)
    check_scalar_access(ctx, "tl.load", pointer, "`other`", other)
    shape = common_shape(ctx, *(operand.shape for operand in (pointer, mask, other) if isinstance(operand, Tensor)))
    pointer = byte_pointer(ctx, broadcast_tensor(ctx, pointer, shape))
    element = pointer.dtype.element_ty
    mask = mask and broadcast_tensor(ctx, mask, shape)
    if other is not None:
        other = value_in_type(ctx, other, element, shape, "`other` of tl.load")
    filler = None if mask is None else handle_of(other)
    op = LoadOp(pointer.handle, handle_of(mask), filler, cache, evict, bool(volatile))
    value = tensor(ctx, op, pointer.type.with_element_ty(element))
    return convert(ctx, value, int1) if is_bool else value


def store(
    ctx: Context,
    pointer: Value,
    value: Value,
    mask: Value = None,
    boundary_check: Value = (),
    cache_modifier: str = "",
    eviction_policy: str = "",
) -> None:
    cache = _cache_modifier(ctx, "tl.store", cache_modifier, STORE_MODIFIERS)
    evict = _eviction_policy(ctx, eviction_policy)
    if isinstance(pointer, BlockPointer):
        _check_not_const(ctx, "tl.store", pointer)
        block_pointer.store(ctx, pointer, value, mask, boundary_check, cache, evict)
        return
    check_writable(ctx, "tl.store", pointer)
    block_pointer.check_no_boundary(ctx, "tl.store", boundary_check)
    mask = checked_mask(ctx, "tl.store", pointer, mask)
    value, mask = in_pointer_shape(ctx, "tl.store", pointer, value, mask)
    pointer = byte_pointer(ctx, pointer)
    value = convert(ctx, value, pointer.dtype.element_ty)
    ctx.builder.insert(StoreOp(pointer.handle, value.handle, handle_of(mask), cache, evict))


def check_pointer(ctx: Context, name: str, pointer: Value) -> None:
    """Raise CompilationError unless it is a pointer or a tile of pointers."""
    if isinstance(pointer, BlockPointer):
        raise ctx.error(f"{name} takes no block pointer, got {pointer.type}. Add offsets to a pointer argument.")
    if not isinstance(pointer, Tensor) or not pointer.dtype.is_ptr():
        way_out = left_over_comma(pointer) or " Add offsets to a pointer argument."
        raise ctx.error(f"{name} needs a pointer, got {describe(pointer)}.{way_out}")


def check_writable(ctx: Context, name: str, pointer: Value) -> None:
    """Raise CompilationError unless it is a pointer that may be stored through."""
    check_pointer(ctx, name, pointer)
    _check_not_const(ctx, name, pointer)


def _check_not_const(ctx: Context, name: str, pointer: Tensor | BlockPointer) -> None:
    if pointer.type.scalar.is_const():
        raise ctx.error(f"{name} through {pointer.type}: it points to constant data. Drop `const` from its parameter.")


def checked_mask(ctx: Context, name: str, pointer: Tensor, mask: Value) -> Tensor | None:
    """The mask as int1 in its own shape; None where nothing is masked."""
    if mask is None or mask is True:
        return None
    mask = as_tensor(ctx, mask, f"The mask of {name}")
    if not mask.dtype.is_bool():
        raise ctx.error(f"The mask of {name} is int1, got {mask.type}. Compare, as in `offsets < n`.")
    check_scalar_access(ctx, name, pointer, "the mask", mask)
    return mask


def check_scalar_access(ctx: Context, name: str, pointer: Tensor, what: str, operand: Value) -> None:
    """Raise CompilationError where a scalar pointer meets a tile."""
    if isinstance(operand, Tensor) and operand.shape and not pointer.shape:
        raise ctx.error(
            f"{name} through one pointer is of one scalar, but {what} is {operand.type}. "
            "Add offsets such as tl.arange(0, BLOCK) to the pointer."
        )


def in_pointer_shape(
    ctx: Context, name: str, pointer: Tensor, value: Value, mask: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """The value as the type pointed to and the mask, in the pointer's shape, which must be the largest."""
    check_scalar_access(ctx, name, pointer, "the value", value)
    shape = common_shape(ctx, *(operand.shape for operand in (pointer, value, mask) if isinstance(operand, Tensor)))
    if shape != pointer.shape:
        raise ctx.error(
            f"{name} through pointers of shape {list(pointer.shape)} got a value or mask of {list(shape)}. "
            "Broadcast the pointer, or reduce the value."
        )
    value = value_in_type(ctx, value, pointer.dtype.element_ty, shape, f"The value of {name}")
    return value, mask and broadcast_tensor(ctx, mask, shape)


def byte_pointer(ctx: Context, pointer: Tensor) -> Tensor:
    """The pointer through which memory is accessed: a bool is a byte."""
    type = pointer.dtype
    if type.element_ty != int1:
        return pointer
    return convert(ctx, pointer, pointer_type(int8, type.address_space, type.const))


def _cache_modifier(ctx: Context, name: str, modifier: str | None, accepted: Sequence[CacheModifier]) -> CacheModifier:
    if not modifier:
        return CacheModifier.NONE
    by_name = {f".{modifier.name.lower()}": modifier for modifier in accepted}
    if modifier not in by_name:
        raise ctx.error(f"{name} has no cache_modifier {describe(modifier)}. Use one of {', '.join(by_name)}, or ''.")
    return by_name[modifier]


def _eviction_policy(ctx: Context, policy: str | None) -> EvictionPolicy:
    if not policy:
        return EvictionPolicy.NORMAL
    if policy not in EVICTION_POLICIES:
        raise ctx.error(f"No eviction_policy {describe(policy)}. Use one of {', '.join(EVICTION_POLICIES)}, or ''.")
    return EVICTION_POLICIES[policy]


def handle_of(operand: Tensor | None) -> SSAValue | None:
    return None if operand is None else operand.handle


RULES = {tl.load: load, tl.store: store}
