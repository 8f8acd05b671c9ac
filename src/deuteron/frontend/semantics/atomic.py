"""Atomics: tt.atomic_rmw of a kind that the element type decides, tt.atomic_cas, tt.atomic_load, tt.atomic_store.
Polls are loops of tt.atomic_load (ir/polls.py).

atomic_add     fadd of floats, add of integers
atomic_max     max of signed integers, umax of unsigned ones
atomic_max of floats    by their bits: values with the sign bit clear as signed integers with max, those with it
                        set as unsigned integers with umin, under complementary masks
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from deuteron import language as tl
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.bitwise import and_, invert, rshift
from deuteron.frontend.semantics.broadcast import broadcast_operands
from deuteron.frontend.semantics.constant import as_tensor
from deuteron.frontend.semantics.convert import convert, convert_bits
from deuteron.frontend.semantics.memory import (
    byte_pointer,
    check_pointer,
    check_writable,
    checked_mask,
    handle_of,
    in_pointer_shape,
)
from deuteron.frontend.semantics.select import where
from deuteron.frontend.semantics.types import tensor
from deuteron.frontend.values import Tensor, Value, describe, is_number
from deuteron.ir.polls import poll
from deuteron.ir.tt.atomic import (
    AtomicCASOp,
    AtomicKind,
    AtomicLoadOp,
    AtomicRMWOp,
    AtomicStoreOp,
    MemoryScope,
    MemorySemantic,
)
from deuteron.language.types import dtype, get_int_dtype, int1, pointer_type, uint64

SEMANTICS = {
    "acquire": MemorySemantic.ACQUIRE,
    "release": MemorySemantic.RELEASE,
    "acq_rel": MemorySemantic.ACQUIRE_RELEASE,
    "relaxed": MemorySemantic.RELAXED,
}
LOAD_SEMANTICS = {name: SEMANTICS[name] for name in ("acquire", "relaxed")}
STORE_SEMANTICS = {name: SEMANTICS[name] for name in ("release", "relaxed")}
SCOPES = {"gpu": MemoryScope.GPU, "cta": MemoryScope.CTA, "sys": MemoryScope.SYSTEM}


@dataclass(frozen=True)
class Access:
    """An atomic access, checked: value and mask have the pointer's shape, the value its element type."""

    pointer: Tensor
    value: Tensor
    mask: Tensor | None
    sem: MemorySemantic
    scope: MemoryScope


def atomic_add(
    ctx: Context, pointer: Value, val: Value, mask: Value = None, sem: str | None = None, scope: str | None = None
) -> Tensor:
    access = _access(ctx, "tl.atomic_add", pointer, val, mask, sem, scope)
    element = access.value.dtype
    _check_element(ctx, "tl.atomic_add", element, element.is_standard_floating() or _is_wide_integer(element))
    return _read_modify_write(ctx, AtomicKind.FADD if element.is_floating() else AtomicKind.ADD, access)


def atomic_max(
    ctx: Context, pointer: Value, val: Value, mask: Value = None, sem: str | None = None, scope: str | None = None
) -> Tensor:
    access = _access(ctx, "tl.atomic_max", pointer, val, mask, sem, scope)
    return _extremum(ctx, "tl.atomic_max", access, AtomicKind.MAX, AtomicKind.UMAX, AtomicKind.UMIN)


def atomic_min(
    ctx: Context, pointer: Value, val: Value, mask: Value = None, sem: str | None = None, scope: str | None = None
) -> Tensor:
    access = _access(ctx, "tl.atomic_min", pointer, val, mask, sem, scope)
    return _extremum(ctx, "tl.atomic_min", access, AtomicKind.MIN, AtomicKind.UMIN, AtomicKind.UMAX)


def atomic_and(
    ctx: Context, pointer: Value, val: Value, mask: Value = None, sem: str | None = None, scope: str | None = None
) -> Tensor:
    return _bitwise(ctx, "tl.atomic_and", AtomicKind.AND, _access(ctx, "tl.atomic_and", pointer, val, mask, sem, scope))


def atomic_or(
    ctx: Context, pointer: Value, val: Value, mask: Value = None, sem: str | None = None, scope: str | None = None
) -> Tensor:
    return _bitwise(ctx, "tl.atomic_or", AtomicKind.OR, _access(ctx, "tl.atomic_or", pointer, val, mask, sem, scope))


def atomic_xor(
    ctx: Context, pointer: Value, val: Value, mask: Value = None, sem: str | None = None, scope: str | None = None
) -> Tensor:
    return _bitwise(ctx, "tl.atomic_xor", AtomicKind.XOR, _access(ctx, "tl.atomic_xor", pointer, val, mask, sem, scope))


def atomic_xchg(
    ctx: Context, pointer: Value, val: Value, mask: Value = None, sem: str | None = None, scope: str | None = None
) -> Tensor:
    access = _access(ctx, "tl.atomic_xchg", pointer, val, mask, sem, scope)
    _check_element(ctx, "tl.atomic_xchg", access.value.dtype, access.value.dtype.primitive_bitwidth in (32, 64))
    return _read_modify_write(ctx, AtomicKind.XCHG, access)


def atomic_cas(
    ctx: Context, pointer: Value, cmp: Value, val: Value, sem: str | None = None, scope: str | None = None
) -> Tensor:
    access = _access(ctx, "tl.atomic_cas", pointer, val, None, sem, scope)
    expected = _access(ctx, "tl.atomic_cas", pointer, cmp, None, sem, scope).value
    _check_element(ctx, "tl.atomic_cas", access.value.dtype, access.value.dtype.primitive_bitwidth in (16, 32, 64))
    op = AtomicCASOp(access.pointer.handle, expected.handle, access.value.handle, access.sem, access.scope)
    return tensor(ctx, op, access.value.type)


def atomic_load(
    ctx: Context, pointer: Value, mask: Value = None, sem: str | None = None, scope: str | None = None
) -> Tensor:
    check_pointer(ctx, "tl.atomic_load", pointer)
    element = pointer.dtype.element_ty
    _check_number(ctx, "tl.atomic_load", element)
    mask = checked_mask(ctx, "tl.atomic_load", pointer, mask)
    pointer = byte_pointer(ctx, pointer)
    if mask is not None:
        pointer, mask = broadcast_operands(ctx, pointer, mask)
    semantic = _named(ctx, "sem", sem or "acquire", LOAD_SEMANTICS)
    op = AtomicLoadOp(pointer.handle, handle_of(mask), semantic, _named(ctx, "scope", scope or "gpu", SCOPES))
    return convert(ctx, tensor(ctx, op, pointer.type.with_element_ty(pointer.dtype.element_ty)), element)


def atomic_store(
    ctx: Context, pointer: Value, val: Value, mask: Value = None, sem: str | None = None, scope: str | None = None
) -> None:
    check_writable(ctx, "tl.atomic_store", pointer)
    _check_number(ctx, "tl.atomic_store", pointer.dtype.element_ty)
    mask = checked_mask(ctx, "tl.atomic_store", pointer, mask)
    value, mask = in_pointer_shape(ctx, "tl.atomic_store", pointer, val, mask)
    pointer = byte_pointer(ctx, pointer)
    value = convert(ctx, value, pointer.dtype.element_ty)
    semantic = _named(ctx, "sem", sem or "release", STORE_SEMANTICS)
    scope = _named(ctx, "scope", scope or "gpu", SCOPES)
    ctx.builder.insert(AtomicStoreOp(pointer.handle, value.handle, handle_of(mask), semantic, scope))


def atomic_poll(
    ctx: Context,
    pointer: Value,
    expected_value: Value,
    sem: str | None = None,
    scope: str | None = None,
    timeout_ns: Value = None,
) -> Tensor:
    check_pointer(ctx, "tl.atomic_poll", pointer)
    element = pointer.dtype.element_ty
    if not element.is_int() or element.int_bitwidth not in (16, 32, 64):
        raise ctx.error(f"tl.atomic_poll takes pointers to integers of 16 to 64 bits, got a pointer to {element}.")
    expected, _ = in_pointer_shape(ctx, "tl.atomic_poll", pointer, expected_value, None)
    timeout = None if timeout_ns is None else _timeout(ctx, timeout_ns).handle
    semantic = _named(ctx, "sem", sem or "acquire", LOAD_SEMANTICS)
    order = semantic, _named(ctx, "scope", scope or "gpu", SCOPES)
    matched = poll(ctx.builder, pointer.handle, expected.handle, timeout, *order)
    return Tensor(matched, pointer.type.with_element_ty(int1))


def _timeout(ctx: Context, timeout_ns: Value) -> Tensor:
    timeout = as_tensor(ctx, timeout_ns, "timeout_ns of tl.atomic_poll")
    if timeout.shape or not timeout.dtype.is_int() or (is_number(timeout_ns) and timeout_ns < 0):
        raise ctx.error(f"tl.atomic_poll waits a whole number of nanoseconds, got timeout_ns = {describe(timeout_ns)}.")
    return convert(ctx, timeout, uint64)


def _check_number(ctx: Context, name: str, element: dtype) -> None:
    if not (element.is_int() or element.is_floating()):
        raise ctx.error(f"{name} takes pointers to integers and floats, got a pointer to {element}.")


def _access(
    ctx: Context, name: str, pointer: Value, val: Value, mask: Value, sem: str | None, scope: str | None
) -> Access:
    check_writable(ctx, name, pointer)
    value, mask = in_pointer_shape(ctx, name, pointer, val, checked_mask(ctx, name, pointer, mask))
    semantic = _named(ctx, "sem", sem or "acq_rel", SEMANTICS)
    return Access(pointer, value, mask, semantic, _named(ctx, "scope", scope or "gpu", SCOPES))


def _named(ctx: Context, what: str, name: str, values: dict):
    if name not in values:
        raise ctx.error(f"An atomic has no {what} {describe(name)}. Use one of {', '.join(values)}.")
    return values[name]


def _check_element(ctx: Context, name: str, element: dtype, is_supported: bool) -> None:
    if not is_supported:
        raise ctx.error(f"{name} does not work on {element}. Use memory of a type of 32 or 64 bits.")


def _is_wide_integer(element: dtype) -> bool:
    return element.is_int() and element.int_bitwidth in (32, 64)


def _bitwise(ctx: Context, name: str, kind: AtomicKind, access: Access) -> Tensor:
    _check_element(ctx, name, access.value.dtype, _is_wide_integer(access.value.dtype))
    return _read_modify_write(ctx, kind, access)


def _extremum(
    ctx: Context, name: str, access: Access, signed: AtomicKind, unsigned: AtomicKind, reversed: AtomicKind
) -> Tensor:
    """Max or min; `reversed` is the unsigned kind that orders the bits of negative floats."""
    element = access.value.dtype
    if element.is_fp32() or element.is_fp64():
        return _float_extremum(ctx, access, signed, reversed)
    _check_element(ctx, name, element, _is_wide_integer(element))
    return _read_modify_write(ctx, signed if element.is_int_signed() else unsigned, access)


def _float_extremum(ctx: Context, access: Access, signed: AtomicKind, reversed: AtomicKind) -> Tensor:
    width = access.value.dtype.primitive_bitwidth
    bits = convert_bits(ctx, access.value, get_int_dtype(width, signed=False))
    is_negative = convert(ctx, rshift(ctx, bits, width - 1), int1)
    is_positive = invert(ctx, is_negative)
    of_positive = _read_modify_write(ctx, signed, _integer_access(ctx, access, True, is_positive))
    of_negative = _read_modify_write(ctx, reversed, _integer_access(ctx, access, False, is_negative))
    old = where(ctx, is_positive, of_positive, convert_bits(ctx, of_negative, of_positive.dtype))
    return convert_bits(ctx, old, access.value.dtype)


def _integer_access(ctx: Context, access: Access, signed: bool, mask: Tensor) -> Access:
    """The access on the bits, where `mask` holds too."""
    integer = get_int_dtype(access.value.dtype.primitive_bitwidth, signed)
    return replace(
        access,
        pointer=convert(ctx, access.pointer, pointer_type(integer)),
        value=convert_bits(ctx, access.value, integer),
        mask=and_(ctx, access.mask, mask) if access.mask else mask,
    )


def _read_modify_write(ctx: Context, kind: AtomicKind, access: Access) -> Tensor:
    mask = handle_of(access.mask)
    op = AtomicRMWOp(kind, access.pointer.handle, access.value.handle, mask, access.sem, access.scope)
    return tensor(ctx, op, access.value.type)


RULES = {
    tl.atomic_add: atomic_add,
    tl.atomic_max: atomic_max,
    tl.atomic_min: atomic_min,
    tl.atomic_and: atomic_and,
    tl.atomic_or: atomic_or,
    tl.atomic_xor: atomic_xor,
    tl.atomic_xchg: atomic_xchg,
    tl.atomic_cas: atomic_cas,
    tl.atomic_load: atomic_load,
    tl.atomic_store: atomic_store,
    tl.atomic_poll: atomic_poll,
}
