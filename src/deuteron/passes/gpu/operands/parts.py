"""Parts of tiles along a dimension, each computed for itself, as the tile is of what it is made of.

%w = "ttg.local_load"(%m) : 128 x 64             %0 = "ttg.memdesc_subslice"(%m) <{offsets = array<i32: 0, 16>}>
%x = arith.sitofp %w                      ->     %1 = "ttg.local_load"(%0) : 128 x 16
                                                 %2 = arith.sitofp %1          part 1 of 4 of %x along dimension 1
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from deuteron.ir.builder import Builder
from deuteron.ir.hints import hints_of_part
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, MakeRangeOp, ReshapeOp, SplatOp, TransOp
from deuteron.ir.ttg.inference import is_elementwise
from deuteron.ir.ttg.memdesc_subslice import MemDescSubsliceOp
from deuteron.ir.ttg.shared import LocalLoadOp
from deuteron.ir.types import element_type_of, is_tile, shape_of, tile


class Parts:
    """Makes parts, `count` of them along a dimension, where a builder is; each value once for a part."""

    def __init__(self, b: Builder, count: int):
        self._b, self._count = b, count
        self._known: dict[tuple[SSAValue, int, int], SSAValue] = {}

    def can_divide(self, value: SSAValue, axis: int) -> bool:
        """Whether it is known how a part is computed."""
        extent = shape_of(value.type)[axis]
        if extent == 1:
            return True
        if extent % self._count or not isinstance(value, OpResult):
            return False
        op = value.op
        if isinstance(op, ConstantOp):
            return isinstance(op.value, DenseIntOrFPElementsAttr) and op.value.is_splat()
        if isinstance(op, SplatOp | MakeRangeOp | LocalLoadOp):
            return True
        if not (isinstance(op, BroadcastOp | ExpandDimsOp | ReshapeOp | TransOp) or is_elementwise(op)):
            return False
        inner = self._inner_axis(op, axis)
        sources = [operand for operand in op.operands if is_tile(operand.type)]
        return inner is not None and all(self.can_divide(source, inner) for source in sources)

    def of(self, value: SSAValue, axis: int, index: int) -> SSAValue:
        """A part of what can be divided; of extent 1, the tile itself."""
        if shape_of(value.type)[axis] == 1:
            return value
        key = value, axis, index
        if key not in self._known:
            with self._b.located(value.op.location):
                self._known[key] = self._made(value.op, axis, index)
            self._known[key].name_hint = value.name_hint
        return self._known[key]

    def _made(self, op: Operation, axis: int, index: int) -> SSAValue:
        b, part = self._b, self._part_type(op.results[0].type, axis)
        if isinstance(op, ConstantOp):
            return b.value(ConstantOp(DenseIntOrFPElementsAttr(part, op.value.data), part))
        if isinstance(op, MakeRangeOp):
            size, start = shape_of(part)[0], op.start.value.data
            return b.value(MakeRangeOp(start + index * size, start + (index + 1) * size))
        if isinstance(op, LocalLoadOp):
            offsets = [index * extent if one == axis else 0 for one, extent in enumerate(shape_of(part))]
            return b.value(LocalLoadOp(b.value(MemDescSubsliceOp(op.src, offsets, shape_of(part))), part))
        inner = self._inner_axis(op, axis)
        operands = [self.of(o, inner, index) if is_tile(o.type) else o for o in op.operands]
        attributes = hints_of_part(op, axis, shape_of(part)[axis])
        made = type(op).create(
            operands=operands, result_types=[part], properties=dict(op.properties), attributes=attributes
        )
        return b.value(made)

    def _part_type(self, whole: Attribute, axis: int) -> Attribute:
        shape = list(shape_of(whole))
        shape[axis] //= self._count
        return tile(element_type_of(whole), shape)

    def _inner_axis(self, op: Operation, axis: int) -> int | None:
        """The dimension of the source that is divided where this one of the result is."""
        if isinstance(op, ExpandDimsOp | TransOp):
            return op.source_axis(axis)
        return self._before_reshape(op, axis) if isinstance(op, ReshapeOp) else axis

    def _before_reshape(self, op: ReshapeOp, axis: int) -> int | None:
        """One that begins where this one does, and that has as many parts."""
        source, before = shape_of(op.src.type), prod(shape_of(op.result.type)[:axis])
        found = (i for i, extent in enumerate(source) if prod(source[:i]) == before and extent % self._count == 0)
        return next(found, None)
