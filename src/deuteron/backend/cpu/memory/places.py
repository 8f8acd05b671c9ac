"""Reads and writes tiles in the scratch memory.

place of %x: slot at 4096, strides (64, 1), read at (i, j)      load <16 x float>, scratch + 4096 + 256 * i + 4 * j
the same read at (j, i), as tt.trans does                       16 loads, 256 bytes apart
and at (i, j ^ 36)                                              load at 64 * i + (j ^ 32), its lanes shuffled by 4
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.ir import SSAValue

from deuteron.backend.cpu.algebra import as_vector, of_value
from deuteron.backend.cpu.context import AxisIndex, Context
from deuteron.backend.cpu.fragment import Affine, Axis, Fragment
from deuteron.backend.cpu.memory import access
from deuteron.backend.cpu.memory.element_access import Access
from deuteron.backend.cpu.memory.elements import register_type
from deuteron.backend.cpu.memory.formats import upper_half
from deuteron.backend.cpu.memory.strided import load_strided, store_strided
from deuteron.backend.cpu.memory.transpose import exchange_lanes
from deuteron.backend.cpu.plan.indices import Exchanged
from deuteron.backend.cpu.plan.products.operand_layout import OperandLayout
from deuteron.backend.cpu.plan.slots import Place
from deuteron.backend.cpu.plan.vectors.accesses import is_close
from deuteron.backend.cpu.products.packing import interleaved
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, byte_width, const, element, like, poison, vector, width


def address(ctx: Context, place: Place) -> Value:
    """The address of the first element of a place."""
    slot = place.slot.representative
    byte_offset = slot.offset + place.offset * byte_width(slot.type)
    first = ctx.emitter.at(0).gep("i8", ctx.program["scratch"], const("i64", byte_offset), "inbounds")
    if slot not in ctx.products.group_offsets:
        return first
    group_offset, level = ctx.products.group_offsets[slot]
    return ctx.emitter.at(level).gep("i8", first, group_offset, "inbounds")


def address_of_step(ctx: Context, place: Place) -> Value:
    """The address of what this step of the loop writes of an operand that is kept of several."""
    first, layout = address(ctx, place), place.slot.layout
    if layout is None or ctx.step is None:
        return first
    distance = const("i64", layout.advance * byte_width(place.slot.type))
    b = ctx.emitter.at(ctx.step.level)
    return b.gep("i8", first, b.mul(ctx.step.number, distance), "inbounds")


def read_place(ctx: Context, value: SSAValue, place: Place, index: AxisIndex) -> Fragment:
    """The elements of a kept tile at an index."""
    of_vectors, mask = _exchange_vectors(ctx, index)
    ptr, lanes, stride, level = _locate(ctx, place, of_vectors)
    type, b = place.slot.type, ctx.emitter.at(level)
    if lanes > 1 and ctx.nest_state.lanes_on is not None:
        elements = access.load(*_masked(ctx, ptr, lanes, stride, level, type))
    elif stride == 1 or lanes == 1:
        elements = b.load(vector(type, lanes), ptr, byte_width(type))
    elif is_close(stride, lanes):
        elements = load_strided(b, ptr, type, lanes, stride)
    else:
        elements = _load_lanes(b, ptr, lanes, stride, type)
    if mask:
        elements = b.shufflevector(elements, elements, [lane ^ mask for lane in range(lanes)])
    if lanes > 1 and ctx.nest_state.lanes_on is not None:
        level = max(level, ctx.nest_state.lanes_on.level)
        b = ctx.emitter.at(level)
    return of_value(_from_scratch(b, elements, register_type(value.type)), level)


def write_place(ctx: Context, place: Place, index: AxisIndex, fragment: Fragment) -> None:
    """Put the elements of a tile at an index to where they are kept."""
    parts = _parts(ctx, place, index)
    if len(parts) > 1:
        _write_parts(ctx, place, parts, as_vector(ctx.emitter, fragment, index[-1].lanes))
        return
    ptr, lanes, stride, _ = _locate(ctx, place, index)
    elements = as_vector(ctx.emitter, fragment, lanes)
    type, b = place.slot.type, ctx.emitter.innermost()
    elements = _to_scratch(b, elements, type)
    if lanes > 1 and ctx.nest_state.lanes_on is not None:
        at, pointer, mask = _masked(ctx, ptr, lanes, stride, ctx.emitter.depth, type)
        access.store(at, pointer, of_value(elements, ctx.emitter.depth), mask)
        return
    if stride == 1 or lanes == 1:
        b.store(elements, ptr, byte_width(type))
        return
    if is_close(stride, lanes) and Access(ctx, ctx.emitter.depth, lanes, type).has_free_masks:
        store_strided(b, elements, ptr, stride)
        return
    for lane in range(lanes):
        target = b.gep(type, ptr, const("i64", lane * stride), "inbounds")
        b.store(b.extractelement(elements, lane), target, byte_width(type))


def _masked(
    ctx: Context, ptr: Value, lanes: int, stride: int, level: int, type: str
) -> tuple[Access, Affine, Fragment]:
    """An access of which some lanes are off."""
    level = max(level, ctx.nest_state.lanes_on.level)
    pointer = Affine(ptr, stride * byte_width(type), lanes, level)
    return Access(ctx, level, lanes, type), pointer, ctx.nest_state.lanes_on


def is_packed(place: Place) -> bool:
    """Whether several rows of a tile are written together."""
    return place.slot.layout is not None and place.slot.layout.group > 1


def write_packed(ctx: Context, place: Place, first: AxisIndex, rows: Sequence[Fragment]) -> None:
    """Put as many rows as are packed together, from an index on, to where they are kept; or columns, along k."""
    if first[0] is not None and first[0].lanes > 1:
        _write_packed_columns(ctx, place, first, rows)
        return
    type, b = place.slot.type, ctx.emitter.innermost()
    elements = [_to_scratch(b, as_vector(ctx.emitter, row, first[-1].lanes), type) for row in rows]
    start = 0
    for index in _parts(ctx, place, first):
        ptr, lanes, _, _ = _locate(ctx, place, index)
        part = [b.shufflevector(row, row, range(start, start + lanes)) for row in elements]
        b.store(interleaved(b, part), ptr, byte_width(type))
        start += lanes


def _write_packed_columns(ctx: Context, place: Place, first: AxisIndex, columns: Sequence[Fragment]) -> None:
    """Neighbours along k are a word; words are exchanged, so that those of neighbouring columns are neighbours."""
    type, layout, b = place.slot.type, place.slot.layout, ctx.emitter.innermost()
    word = vector(f"i{8 * byte_width(type) * layout.group}", len(columns))
    words = [
        b.bitcast(_to_scratch(b, as_vector(ctx.emitter, column, first[0].lanes), type), word) for column in columns
    ]
    ptr, _, _, _ = _locate(ctx, place, first)
    for number, line in enumerate(exchange_lanes(b, words)):
        offset = const("i64", number * layout.group * layout.strides[0])
        b.store(line, b.gep(type, ptr, offset, "inbounds"), byte_width(type))


def _parts(ctx: Context, place: Place, index: AxisIndex) -> list[AxisIndex]:
    """The indices of what is in different panels of an operand."""
    layout, last = place.slot.layout, index[-1] if index else None
    columns = layout.columns if layout is not None else 0
    if not columns or last is None or last.lanes <= columns:
        return [index]
    b = ctx.emitter.at(last.level)
    starts = [b.add(last.start, const("i32", first)) for first in range(0, last.lanes, columns)]
    return [(*index[:-1], Axis(start, columns, last.level)) for start in starts]


def _write_parts(ctx: Context, place: Place, parts: list[AxisIndex], elements: Value) -> None:
    lanes = parts[0][-1].lanes
    for number, index in enumerate(parts):
        part = ctx.emitter.innermost().shufflevector(elements, elements, range(number * lanes, (number + 1) * lanes))
        write_place(ctx, place, index, of_value(part, ctx.emitter.depth))


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
    ptr, lanes, lane_stride, level = address_of_step(ctx, place), 1, 1, ctx.nest_state.level
    layout, last = place.slot.layout, index[-1] if index else None
    for axis, stride in sorted(axes, key=lambda pair: pair[0].level):
        level = max(level, axis.level)
        if layout is not None and layout.columns and axis is last:
            ptr = _advance_panels(ctx.emitter.at(level), ptr, axis, layout, place.slot.type)
        else:
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


def _advance_panels(b: Builder, ptr: Value, axis: Axis, layout: OperandLayout, type: str) -> Value:
    """By whole panels, then by the columns of one; panels have a power of two of them."""
    start, columns = b.zext(axis.start, "i64"), layout.columns
    within = b.and_(start, const("i64", columns - 1))
    whole = b.mul(b.sub(start, within), const("i64", layout.pitch // columns), "nuw nsw")
    return b.gep(type, ptr, b.add(whole, b.mul(within, const("i64", layout.group))), "inbounds")


def _load_lanes(b: Builder, ptr: Value, lanes: int, stride: int, type: str) -> Value:
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
        return upper_half(b, elements)
    return (b.zext if held == "i1" else b.sext)(elements, vector(type, width(elements.type)))
