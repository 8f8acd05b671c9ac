"""Which dimension of an op's operands is cut where one of its result is, for ops that may be done in slices.

axes_of(%r = tt.expand_dims %x {axis = 0}, 1)          {%r: 1, %x: 0}
axes_of(%r = tt.broadcast %x : 1x64 -> 64x64, 0)       {%r: 0, %x: None}      the whole of %x, for every slice
axes_of(%s = tt.reduce %x {axis = 1}, 0)               {%s: 0, %x: 0}
axes_of(%y = tt.gather %x[%place ^ 4] {axis = 0}, 0)   {..., %x: 0}: slices have the partners of their elements
axes_of(tt.store %p, %x, %m, 1)                        {%p: 1, %x: 1, %m: 1}
axes_of(ttg.local_store %x, %m, 1)                     {%x: 1, %m: 1}: tiles in shared memory as well
axes_of(%d = ttg.sliced_dot %a, %b, %c, 0)             {%d: 0, %a: 0, %b: None, %c: 0}
axes_of(tt.scan %x {axis = 1}, 0)                      {..., %x: 0}; along 1: None, it is not done in slices
axes_of(%d = tt.dot %a, %b, %c, 0)                     {%d: 0, %a: 0, %b: None, %c: 0}
axes_of(%d = tt.dot %a, %b, %c, SUMMED)                {%d: SUMMED, %a: 1, %b: 0, %c: None}
axes_of(%s = tt.reduce %x {axis = 1}, SUMMED)          {%s: SUMMED, %x: 1}
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from xdsl.ir import Operation, SSAValue

from deuteron.analysis.addresses.index_bits import exchange_mask
from deuteron.ir.tt.atomic import AtomicCASOp, AtomicRMWOp
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.indexing import GatherOp
from deuteron.ir.tt.inline_asm import ElementwiseInlineAsmOp
from deuteron.ir.tt.map_elementwise import MapElementwiseOp
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.tt.reduce import ReduceOp, ScanOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, JoinOp, MakeRangeOp, ReshapeOp, SplatOp, SplitOp, TransOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.ttg.inference import is_elementwise
from deuteron.ir.ttg.layout import MemDescType, layout_of
from deuteron.ir.ttg.shared import LocalStoreOp
from deuteron.ir.ttg.sliced_dot import SlicedDotOp
from deuteron.ir.types import is_tile, shape_of
from deuteron.passes.gpu.slices.sums import combines_elements

Axis = int | None
SUMMED = -2  # of what a dot or a reduction gives: all of it, combined over slices along K, or its dimension
SUMS = (DotOp, ReduceOp)


def main_value(op: Operation) -> SSAValue | None:
    """The tile whose dimensions are those that an op is cut along."""
    value = op.results[0] if op.results else _stored(op)
    return value if value is not None and is_tile(value.type) else None


def _stored(op: Operation) -> SSAValue | None:
    return op.ptr if isinstance(op, StoreOp) else op.src if isinstance(op, LocalStoreOp) else None


def axes_to_cut(op: Operation) -> list[int]:
    """Along which an op may be done in slices, SUMMED among them."""
    main = main_value(op)
    return [*(range(len(shape_of(main.type))) if main is not None else ()), *([SUMMED] if isinstance(op, SUMS) else ())]


def axes_of(op: Operation, axis: int) -> dict[SSAValue, Axis] | None:
    """For each tile that an op gives or takes the dimension that is cut; None where it cannot be done in slices."""
    if axis != SUMMED and (main_value(op) is None or not all(is_tile(result.type) for result in op.results)):
        return None
    found: dict[SSAValue, Axis] = dict.fromkeys(op.results, axis)
    source = _SOURCES.get(type(op)) or (_same if is_elementwise(op) and not op.regions else None)
    if source is None:
        return None
    for place, operand in enumerate(op.operands):
        if is_tile(operand.type) or isinstance(operand.type, MemDescType):
            cut = source(op, axis, place)
            if cut is _NEVER or found.setdefault(operand, cut) != cut:
                return None
    return found


_NEVER = -1


def _same(op: Operation, axis: int, place: int) -> Axis:
    return axis


def _expanded(op: ExpandDimsOp, axis: int, place: int) -> Axis:
    return _NEVER if axis == op.axis.value.data else op.source_axis(axis)


def _broadcast(op: Operation, axis: int, place: int) -> Axis:
    return axis if shape_of(op.src.type)[axis] == shape_of(op.result.type)[axis] else None


def _transposed(op: TransOp, axis: int, place: int) -> Axis:
    return op.source_axis(axis)


def _reduced(op: Operation, axis: int, place: int) -> Axis:
    reduced = op.axis.value.data
    if axis == SUMMED:
        return reduced if combines_elements(op) else _NEVER
    return axis + (axis >= reduced)


def _along_others(op: Operation, axis: int, place: int) -> Axis:
    """Each row along the op's axis is done for itself."""
    return _NEVER if axis == op.axis.value.data else axis


def _gathered(op: GatherOp, axis: int, place: int) -> Axis:
    return axis if axis != op.axis.value.data or exchange_mask(op) is not None else _NEVER


def exchange_slices(op: GatherOp) -> int:
    """Into how many slices along its own dimension an exchange of elements may be cut."""
    shape, axis = shape_of(op.src.type), op.axis.value.data
    distance = exchange_mask(op) // prod(shape[axis + 1 :])
    return shape[axis] >> distance.bit_length()


def _multiplied(op: DotOp, axis: int, place: int) -> Axis:
    rows, columns = (len(shape_of(op.result.type)) - distance for distance in (2, 1))
    of_a, of_b, of_c = range(3)
    if axis == SUMMED:
        return {of_a: columns, of_b: rows}.get(place)
    if axis < rows or place == of_c:
        return axis
    return axis if (axis == rows) == (place == of_a) else None


def _joined(op: Operation, axis: int, place: int) -> Axis:
    return axis if axis < len(shape_of(op.operands[place].type)) else _NEVER


def _reshaped(op: Operation, axis: int, place: int) -> Axis:
    """The dimension of the source whose slices are those of the result's: as many elements are further apart."""
    source_layout = layout_of(op.src.type)
    if layout_of(op.result.type).reshape(source_layout.shape) != source_layout:
        return _NEVER  # in another order
    result, source = shape_of(op.result.type), shape_of(op.src.type)
    cuts = (cut for cut in range(len(source)) if source[cut] > 1 and prod(source[cut:]) == prod(result[axis:]))
    return next(cuts, _NEVER)


# How the operand at a place is cut.
_SOURCES: dict[type[Operation], Callable[[Operation, int, int], Axis]] = {
    **dict.fromkeys((LoadOp, StoreOp, AtomicRMWOp, AtomicCASOp, ElementwiseInlineAsmOp, MapElementwiseOp), _same),
    LocalStoreOp: _same,
    ConvertLayoutOp: _same,
    MakeRangeOp: _same,
    SplatOp: _same,
    ExpandDimsOp: _expanded,
    BroadcastOp: _broadcast,
    TransOp: _transposed,
    ReshapeOp: _reshaped,
    ReduceOp: _reduced,
    ScanOp: _along_others,
    GatherOp: _gathered,
    DotOp: _multiplied,
    SlicedDotOp: _multiplied,
    JoinOp: _joined,
    SplitOp: _joined,
}
