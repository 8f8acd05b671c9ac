"""Loads and stores: masks and values are brought to the pointer's shape and type, then tt.load or tt.store.

    tl.load(p, mask=i < n, other=0)      other converted to the element type, as a tile
    tl.load(p: *int1)                    bytes are loaded and compared with 0; a store writes bytes 0 and 1
    mask=True                            no mask

Whoever reads memory that a mask excludes gets `other`, or anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron import language as tl
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.broadcast import broadcast_operands, broadcast_tensor, common_shape
from deuteron.frontend.semantics.constant import as_tensor
from deuteron.frontend.semantics.convert import convert
from deuteron.frontend.semantics.types import tensor
from deuteron.frontend.values import Tensor, Value, describe
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
    *,
    cache_modifier: str = "",
    eviction_policy: str = "",
    volatile: bool = False,
) -> Tensor:
    check_pointer(ctx, "tl.load", pointer)
    cache = _cache_modifier(ctx, "tl.load", cache_modifier, LOAD_MODIFIERS)
    evict = _eviction_policy(ctx, eviction_policy)
    if other is not None and mask is None:
        raise ctx.error("tl.load got `other` without a mask. Give the mask that says where `other` is taken.")
    mask = checked_mask(ctx, "tl.load", pointer, mask)
    other = _other(ctx, pointer, mask, other)
    operands = [pointer] + [operand for operand in (mask, other) if operand is not None]
    if pointer.shape:
        pointer, *operands = broadcast_operands(ctx, *operands)
        mask = operands[0] if mask is not None else None
        other = operands[1] if other is not None else None
    return _load(ctx, pointer, mask, other, cache, evict, bool(volatile))


def _other(ctx: Context, pointer: Tensor, mask: Tensor | None, other: Value) -> Tensor | None:
    if mask is None or other is None:
        return None
    value = as_tensor(ctx, other, "`other` of tl.load")
    check_scalar_access(ctx, "tl.load", pointer, "`other`", value)
    return convert(ctx, value, stored_pointer(pointer).element_ty)


def _load(
    ctx: Context,
    pointer: Tensor,
    mask: Tensor | None,
    other: Tensor | None,
    cache: CacheModifier,
    evict: EvictionPolicy,
    is_volatile: bool,
) -> Tensor:
    is_bool = pointer.dtype.element_ty == int1
    pointer = convert(ctx, pointer, stored_pointer(pointer))
    op = LoadOp(pointer.handle, _handle(mask), _handle(other), cache, evict, is_volatile)
    value = tensor(ctx, op, pointer.type.with_element_ty(pointer.dtype.element_ty))
    return convert(ctx, value, int1) if is_bool else value


def store(
    ctx: Context,
    pointer: Value,
    value: Value,
    mask: Value = None,
    *,
    cache_modifier: str = "",
    eviction_policy: str = "",
) -> None:
    check_writable(ctx, "tl.store", pointer)
    cache = _cache_modifier(ctx, "tl.store", cache_modifier, STORE_MODIFIERS)
    evict = _eviction_policy(ctx, eviction_policy)
    mask = checked_mask(ctx, "tl.store", pointer, mask)
    value = as_tensor(ctx, value, "The value of tl.store")
    value, mask = to_pointer_shape(ctx, "tl.store", pointer, value, mask)
    value = convert(ctx, value, pointer.dtype.element_ty)
    target = stored_pointer(pointer)
    pointer, value = convert(ctx, pointer, target), convert(ctx, value, target.element_ty)
    ctx.builder.insert(StoreOp(pointer.handle, value.handle, _handle(mask), cache, evict))


def check_pointer(ctx: Context, name: str, pointer: Value) -> None:
    """Raise CompilationError unless it is a pointer or a tile of pointers."""
    if not isinstance(pointer, Tensor) or not pointer.dtype.is_ptr():
        raise ctx.error(f"{name} needs a pointer, got {describe(pointer)}. Add offsets to a pointer argument.")


def check_writable(ctx: Context, name: str, pointer: Value) -> None:
    """Raise CompilationError unless it is a pointer that may be stored through."""
    check_pointer(ctx, name, pointer)
    if pointer.dtype.is_const():
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


def check_scalar_access(ctx: Context, name: str, pointer: Tensor, what: str, operand: Tensor) -> None:
    """Raise CompilationError where a scalar pointer meets a tile."""
    if operand.shape and not pointer.shape:
        raise ctx.error(
            f"{name} through one pointer is of one scalar, but {what} is {operand.type}. "
            "Add offsets such as tl.arange(0, BLOCK) to the pointer."
        )


def to_pointer_shape(
    ctx: Context, name: str, pointer: Tensor, value: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """The value and the mask in the pointer's shape, which must be the largest."""
    check_scalar_access(ctx, name, pointer, "the value", value)
    shapes: Sequence[tuple[int, ...]] = [value.shape, *([mask.shape] if mask else [])]
    shape = common_shape(ctx, pointer.shape, *shapes)
    if shape != pointer.shape:
        raise ctx.error(
            f"{name} through pointers of shape {list(pointer.shape)} got a value or mask of {list(shape)}. "
            "Broadcast the pointer, or reduce the value."
        )
    return broadcast_tensor(ctx, value, shape), broadcast_tensor(ctx, mask, shape) if mask else None


def stored_pointer(pointer: Tensor) -> pointer_type:
    """The type through which memory is accessed: a bool is a byte."""
    type = pointer.dtype
    return pointer_type(int8, type.address_space, type.const) if type.element_ty == int1 else type


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


def _handle(operand: Tensor | None):
    return None if operand is None else operand.handle


RULES = {tl.load: load, tl.store: store}
