"""Ops that say where elements are: the index of the operand that a result's index stands for; views; joined tiles.

%b = tt.broadcast(%e) : tensor<64x1xf32> -> tensor<64x32xf32>
operands_at(%b, (i, j))          [(%e, (i, None))]
%t = tt.trans(%x) {order = [1, 0]}
operands_at(%t, (i, j))          [(%x, (j, i))]
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation, SSAValue

from deuteron.backend.cpu.plan.indices import Index
from deuteron.backend.cpu.plan.items import Scalar, Transpose
from deuteron.backend.cpu.plan.ops.declaration import Declaration, Lazy, Operands
from deuteron.backend.cpu.plan.roots import Keep
from deuteron.backend.cpu.plan.slots import Place
from deuteron.backend.cpu.plan.tiles.use import Use
from deuteron.backend.cpu.plan.visitors import ReadVisitor, ScheduleVisitor
from deuteron.ir.tt import shape
from deuteron.ir.types import num_elements_of, shape_of


class _Forward(Lazy):
    """An op whose result is its operand at another index, which `source` computes."""

    forwards = True

    def __init__(self, source: Callable[[Operation, Index], Index]) -> None:
        super().__init__(0.0, step=lambda op, steps: steps[0])
        self._source = source

    def operands_at(self, op: Operation, index: Index) -> Operands:
        return [(op.src, self._source(op, index))]


class _Broadcast(_Forward):
    """To the same shape it is a copy, see prepare.py."""

    def repeats(self, op: Operation) -> bool:
        return num_elements_of(op.result.type) > num_elements_of(op.src.type)


class _Trans(_Forward):
    """The transpose of a matrix that a product reads is written out by an item of its own."""

    def read(self, op: Operation, storage: ReadVisitor) -> None:
        if op.result not in storage.transposed:
            super().read(op, storage)
            return
        storage.kept.add(op.result)
        storage.require(op.src, op)

    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        if op.result not in scheduler.storage.transposed:
            super().schedule(op, scheduler)
            return
        scheduler.add(Transpose(op, scheduler.places[op.src], scheduler.new_place(op.result)))


class _Reshape(_Forward):
    """A view, unless only dimensions of extent 1 come and go: then it is the operand at another index."""

    def is_view(self, op: Operation) -> bool:
        source, result = ([e for e in shape_of(value.type) if e > 1] for value in (op.src, op.result))
        return source != result

    def read(self, op: Operation, storage: ReadVisitor) -> None:
        if self.is_view(op):
            storage.require(op.src, op)
        else:
            super().read(op, storage)

    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        if self.is_view(op):
            scheduler.places[op.result] = scheduler.places[op.src].reshaped(shape_of(op.result.type))
        else:
            super().schedule(op, scheduler)


class _Split(Lazy):
    """Views of the halves of the last dimension."""

    def is_view(self, op: Operation) -> bool:
        return True

    def read(self, op: Operation, storage: ReadVisitor) -> None:
        storage.require(op.src, op)

    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        for number, half in enumerate(op.results):
            scheduler.places[half] = scheduler.places[op.src].half(number)


class _Pair(Declaration):
    """Two tiles that are written into the result one after the other, each to its `part` of the place."""

    def __init__(self, part: Callable[[Place, int, SSAValue], Place]) -> None:
        self._part = part

    def read(self, op: Operation, storage: ReadVisitor) -> None:
        for number, operand in enumerate(op.operands):
            storage.read(operand, Use((op, number), op))

    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        """The item at the end is a mark, so that readers come after both parts."""
        place = scheduler.new_place(op.result)
        for number, source in enumerate(op.operands):
            scheduler.root(Keep(op, (source,), self._part(place, number, source)))
        scheduler.add(Scalar(op))


def _expanded(op: Operation, index: Index) -> Index:
    axis = op.axis.value.data
    return index[:axis] + index[axis + 1 :]


def _broadcast(op: Operation, index: Index) -> Index:
    extents = shape_of(op.src.type)
    return tuple(None if extent == 1 else entry for entry, extent in zip(index, extents, strict=True))


def _transposed(op: Operation, index: Index) -> Index:
    source: list = [None] * len(index)
    for dimension, axis in enumerate(op.permutation):
        source[axis] = index[dimension]
    return tuple(source)


def _reshaped(op: Operation, index: Index) -> Index:
    """Of a reshape that is no view."""
    entries = iter([e for e, extent in zip(index, shape_of(op.result.type), strict=True) if extent > 1])
    return tuple(next(entries) if extent > 1 else None for extent in shape_of(op.src.type))


def is_transpose(value: SSAValue) -> bool:
    """Whether a tile is the transpose of a matrix, not of a vector."""
    extents = shape_of(value.type)
    if len(extents) != 2 or min(extents) == 1 or not isinstance(value.owner, shape.TransOp):
        return False
    return value.owner.permutation == (1, 0)


DECLARATIONS: dict[type[Operation], Declaration] = {
    shape.MakeRangeOp: Lazy(step=lambda op, steps: 1),
    shape.SplatOp: _Forward(lambda op, index: ()),
    shape.ExpandDimsOp: _Forward(_expanded),
    shape.BroadcastOp: _Broadcast(_broadcast),
    shape.TransOp: _Trans(_transposed),
    shape.ReshapeOp: _Reshape(_reshaped),
    shape.SplitOp: _Split(),
    shape.JoinOp: _Pair(lambda place, number, source: place.half(number)),
    shape.CatOp: _Pair(lambda place, number, source: place.part(number, shape_of(source.type))),
}
