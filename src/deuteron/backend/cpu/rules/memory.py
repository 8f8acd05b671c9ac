"""tt.addptr, tt.load, tt.store, and the tiles that are read from the scratch memory."""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import Operation, SSAValue

from deuteron.analysis.aliasing.points_to import is_argument
from deuteron.backend.cpu.algebra import add, advance, as_vector, lanewise, of_value
from deuteron.backend.cpu.context import AxisIndex, Context, Runs
from deuteron.backend.cpu.fragment import Affine, Axis, Fragment, Uniform, Vector, known_truth, lanes_of, level_of
from deuteron.backend.cpu.memory import access
from deuteron.backend.cpu.memory.element_access import Access
from deuteron.backend.cpu.memory.elements import memory_type, register_type
from deuteron.backend.cpu.memory.formats import from_memory, stored
from deuteron.backend.cpu.memory.places import read_place
from deuteron.backend.cpu.plan.ops.declaration import OFFSET_BITS
from deuteron.backend.cpu.plan.vectors.known_distances import numbers_of
from deuteron.backend.cpu.rules.bounds import check_access
from deuteron.backend.cpu.segments import lanes_on
from deuteron.backend.llvm.types import zero
from deuteron.ir.tt.memory import AddPtrOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, ReshapeOp, SplatOp, TransOp
from deuteron.ir.types import bit_width_of, byte_width_of, element_type_of, is_pointer, pointee_of


def addptr(ctx: Context, op: Operation, pointer: Fragment, offset: Fragment) -> Fragment:
    return advance(ctx.emitter, pointer, offset, byte_width_of(pointee_of(op.result.type)))


def induction(ctx: Context, value: SSAValue, initial: Fragment) -> Fragment:
    """A loop-carried tile: its initial elements plus what was added so far, if anything ever is."""
    total = ctx.totals.get(value)
    if total is None:
        return initial
    if is_pointer(value.type):
        return advance(ctx.emitter, initial, total, byte_width_of(pointee_of(value.type)))
    return add(ctx.emitter, initial, total)


def load(
    ctx: Context,
    op: Operation,
    index: AxisIndex,
    pointer: Fragment,
    mask: Fragment | None = None,
    other: Fragment | None = None,
) -> Fragment:
    element_type = element_type_of(op.result.type)
    if known_truth(mask) is False:
        return Uniform(zero(register_type(element_type)), 0) if other is None else other
    if known_truth(mask):
        mask = other = None
    if lanes_of(pointer, *([mask] if mask else [])) > 1:
        mask = lanes_on(ctx, mask)
    if op in ctx.nest_state.vectorisation.neighbours and lanes_of(pointer) > 1:
        pointer = _neighbours(ctx, op, index, lanes_of(pointer))
    fragments = [fragment for fragment in (pointer, mask, other) if fragment is not None]
    level, lanes = max(ctx.nest_state.level, level_of(*fragments)), lanes_of(*fragments)
    at = Access(ctx, level, lanes, memory_type(element_type))
    pointer = straight_unless_moved(op, pointer)
    check_access(ctx, op, index, level, pointer, mask)
    if op.is_volatile.value.data:
        at.b.fence('syncscope("singlethread") seq_cst')
    if op in ctx.nest_state.runs and isinstance(pointer, Vector):
        first = _neighbours(ctx, op, index, lanes).base
        bits = access.load_if_in_runs(at, pointer, mask, first, _runs_from(ctx, op, index))
    elif op in ctx.nest_state.vectorisation.quotients.distances and isinstance(pointer, Vector):
        first = _neighbours(ctx, op, index, lanes)
        at = replace(at, level=max(level, first.level))
        numbers = numbers_of(ctx.nest_state.vectorisation.quotients.distances[op], op)
        if numbers == [*range(lanes)] and not _is_moved(op.ptr):  # neighbours, also where lanes are off
            bits = access.load(at, first, mask)
        else:
            some = min(numbers) == 0 and not _is_moved(op.ptr)
            bits = access.load_apart(at, pointer, mask, first.base, numbers, some)
    else:
        bits = access.load(at, pointer, mask)
    loaded = of_value(from_memory(at.b, bits, element_type, ctx.target), at.level)
    if other is None or _is_zero(other):
        return loaded
    return lanewise(ctx.emitter, lambda b, on, x, y: b.select(on, x, y), mask, loaded, other)


def _neighbours(ctx: Context, op: Operation, index: AxisIndex, lanes: int) -> Fragment:
    """The addresses of lanes that are known to be neighbours."""
    first = ctx.evaluate(op.ptr, tuple(entry and Axis(entry.start, 1, entry.level) for entry in index))
    return Affine(first.value, byte_width_of(pointee_of(op.ptr.type)), lanes, first.level)


def _runs_from(ctx: Context, op: Operation, index: AxisIndex) -> Runs:
    """Of lanes that lie in two runs those from the first one on that is loaded."""
    runs, (axis,) = ctx.nest_state.runs[op], [entry for entry in index if entry and entry.lanes > 1]
    return replace(runs, count=ctx.emitter.at(axis.level).sub(runs.count, axis.start))


def store_tile(
    ctx: Context,
    op: Operation,
    index: AxisIndex,
    pointer: Fragment,
    value: Fragment,
    mask: Fragment | None = None,
) -> None:
    """At the innermost level; also of a scalar."""
    if known_truth(mask) is False:
        return
    mask = None if known_truth(mask) else mask
    mask = lanes_on(ctx, mask)
    fragments = [fragment for fragment in (pointer, value, mask) if fragment is not None]
    lanes, level = lanes_of(*fragments), ctx.emitter.depth
    at = Access(ctx, level, lanes, memory_type(op.value.type))
    count = 1 if isinstance(value, Uniform) else lanes
    elements = as_vector(ctx.emitter, value, count)
    bits = stored(ctx.emitter.at(value.level), elements, element_type_of(op.value.type), ctx.target)
    pointer = straight_unless_moved(op, pointer)
    check_access(ctx, op, index, level, pointer, mask)
    streams = ctx.program["streams"] if op in ctx.streams.stores else None
    access.store(at, pointer, of_value(bits, value.level), mask, streams)


def straight_unless_moved(op: Operation, pointer: Fragment) -> Fragment:
    """Pointers that are where the first one and the step say. Of an argument and offsets that wrap around those which
    do are before the array, where no lane is on; of a pointer that 64 bits moved on before they get back into it.
    """
    may_wrap = isinstance(pointer, Affine) and pointer.elements is not None
    return replace(pointer, elements=None) if may_wrap and not _is_moved(op.ptr) else pointer


def _is_moved(pointer: SSAValue) -> bool:
    """Whether it is more than an argument and offsets of 32 bits."""
    value = pointer
    while isinstance(value.owner, (AddPtrOp, *_SAME)):
        if isinstance(value.owner, AddPtrOp) and bit_width_of(element_type_of(value.owner.offset.type)) > OFFSET_BITS:
            return True
        value = value.owner.operands[0]
    return not is_argument(value)


_SAME = (SplatOp, BroadcastOp, ExpandDimsOp, TransOp, ReshapeOp)


def _is_zero(fragment: Fragment) -> bool:
    return isinstance(fragment, Uniform) and fragment.value.text in ("0", "0x0000000000000000", "false", "null")


RULES = {
    "tt.addptr": addptr,
    "tt.load": load,
    "induction": induction,
    "place": read_place,
}
