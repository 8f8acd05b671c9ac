"""Reads and writes tiles in the scratch memory.

place of %x: slot at 4096, strides (64, 1), read at (i, j)      load <16 x float>, scratch + 4096 + 256 * i + 4 * j
the same read at (j, i), as tt.trans does                       16 loads, 256 bytes apart
and at (i, j ^ 36)                                              load at 64 * i + (j ^ 32), its lanes shuffled by 4
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import SSAValue

from deuteron.backend.cpu.algebra import as_vector, of_value
from deuteron.backend.cpu.context import AxisIndex, Context
from deuteron.backend.cpu.elements import register_type
from deuteron.backend.cpu.fragment import Axis, Fragment
from deuteron.backend.cpu.plan.items import Exchanged, Place
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, byte_width, const, element, like, poison, vector, width


def address(ctx: Context, place: Place) -> Value:
    """The address of the first element of a place."""
    slot = place.slot.representative
    byte_offset = slot.offset + place.offset * byte_width(slot.type)
    return ctx.emitter.at(0).gep("i8", ctx.program["scratch"], const("i64", byte_offset), "inbounds")


def read_place(ctx: Context, value: SSAValue, place: Place, index: AxisIndex) -> Fragment:
    """The elements of a kept tile at an index."""
    of_vectors, mask = _exchange_vectors(ctx, index)
    ptr, lanes, stride, level = _locate(ctx, place, of_vectors)
    type, b = place.slot.type, ctx.emitter.at(level)
    if stride == 1 or lanes == 1:
        elements = b.load(vector(type, lanes), ptr, byte_width(type))
    else:
        elements = _load_strided(ctx, b, ptr, lanes, stride, type)
    if mask:
        elements = b.shufflevector(elements, elements, [lane ^ mask for lane in range(lanes)])
    return of_value(_from_scratch(b, elements, register_type(value.type)), level)


def write_place(ctx: Context, place: Place, index: AxisIndex, fragment: Fragment) -> None:
    """Put the elements of a tile at an index to where they are kept."""
    ptr, lanes, stride, _ = _locate(ctx, place, index)
    elements = as_vector(ctx.emitter, fragment, lanes)
    type, b = place.slot.type, ctx.emitter.innermost()
    elements = _to_scratch(b, elements, type)
    if stride == 1 or lanes == 1:
        b.store(elements, ptr, byte_width(type))
        return
    for lane in range(lanes):
        target = b.gep(type, ptr, const("i64", lane * stride), "inbounds")
        b.store(b.extractelement(elements, lane), target, byte_width(type))


def _exchange_vectors(ctx: Context, index: AxisIndex) -> tuple[AxisIndex, int]:
    """An index without exchanges: of whole vectors where they begin, and by what lanes are exchanged within each."""
    entries, lane_mask = [], 0
    for entry in index:
        if not isinstance(entry, Exchanged):
            entries.append(entry)
            continue
        (moved,), inner = _exchange_vectors(ctx, (entry.entry,))
        within = entry.mask % moved.lanes
        lane_mask ^= inner ^ within
        b = ctx.emitter.at(moved.level)
        entries.append(replace(moved, start=b.xor(moved.start, const("i32", entry.mask - within))))
    return tuple(entries), lane_mask


def _locate(ctx: Context, place: Place, index: AxisIndex) -> tuple[Value, int, int, int]:
    """Address, lanes, stride of the lanes and level of an index, each part of it computed at its own level."""
    axes = [(axis, stride) for axis, stride in zip(index, place.strides, strict=True) if axis is not None]
    ptr, lanes, lane_stride, level = address(ctx, place), 1, 1, ctx.nest_level
    for axis, stride in sorted(axes, key=lambda pair: pair[0].level):
        level = max(level, axis.level)
        ptr = _advance(ctx.emitter.at(level), ptr, axis, stride, place.slot.type)
        if axis.lanes > 1:
            lanes, lane_stride = axis.lanes, stride
    return ptr, lanes, lane_stride, level


def _advance(b: Builder, ptr: Value, axis: Axis, stride: int, type: str) -> Value:
    if axis.start.is_constant:
        offset = const("i64", int(axis.start.text) * stride)
    else:
        offset = b.mul(b.zext(axis.start, "i64"), const("i64", stride), "nuw nsw")
    return b.gep(type, ptr, offset, "inbounds")


def _load_strided(ctx: Context, b: Builder, ptr: Value, lanes: int, stride: int, type: str) -> Value:
    elements = poison(vector(type, lanes))
    for lane in range(lanes):
        source = b.gep(type, ptr, const("i64", lane * stride), "inbounds")
        elements = b.insertelement(elements, b.load(type, source), lane)
    return elements


def _from_scratch(b: Builder, elements: Value, register: str) -> Value:
    if element(elements.type) == register:
        return elements
    return b.trunc(elements, like(elements.type, register))


def _to_scratch(b: Builder, elements: Value, type: str) -> Value:
    held = element(elements.type)
    if held == type:
        return elements
    if held == "float":
        return _upper_half(b, elements)
    return (b.zext if held == "i1" else b.sext)(elements, vector(type, width(elements.type)))


def _upper_half(b: Builder, elements: Value) -> Value:
    """The bits of bf16, of a float that holds one."""
    bits = b.bitcast(elements, like(elements.type, "i32"))
    return b.trunc(b.lshr(bits, const(bits.type, 16)), like(bits.type, "i16"))
