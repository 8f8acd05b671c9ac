"""Ops on the user's memory, and what is printed or checked: done where they stand, but for loads of tiles.

%x = tt.load %pointers          lazy, as long as nothing is written between it and where it is read
tt.store %pointers, %x          a root: a nest computes and stores every element
tt.atomic_rmw, tt.assert        element by element, in a nest of its own
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from deuteron.backend.cpu.plan.items import Scalar
from deuteron.backend.cpu.plan.ops.declaration import (
    INDEX_WEIGHT,
    IRREGULAR,
    Declaration,
    Lazy,
    ScalarOp,
    Step,
    Uncompiled,
    tiles_of,
)
from deuteron.backend.cpu.plan.ops.elementwise import add, is_offset
from deuteron.backend.cpu.plan.roots import LaneRoot, PrintRoot, StoreRoot
from deuteron.backend.cpu.plan.tiles.use import Use
from deuteron.backend.cpu.plan.visitors import ReadVisitor, ScheduleVisitor
from deuteron.ir.tt import block_pointer, descriptor
from deuteron.ir.tt.atomic import OPS as ATOMIC_OPS
from deuteron.ir.tt.debug import AssertOp, PrintOp
from deuteron.ir.tt.memory import AddPtrOp, LoadOp, StoreOp
from deuteron.ir.tt.program import GlobalTimerOp
from deuteron.ir.ttg.barrier import BarrierOp
from deuteron.ir.types import is_tile

_LOAD = 8.0  # estimated, not measured (see declaration.py)


class _Load(Lazy):
    """Of a tile it is lazy, of a scalar done where it stands."""

    def is_lazy(self, op: Operation) -> bool:
        return is_tile(op.result.type)

    def reads_memory(self, op: Operation) -> bool:
        return True

    def read(self, op: Operation, storage: ReadVisitor) -> None:
        if self.is_lazy(op):
            super().read(op, storage)

    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        if self.is_lazy(op):
            super().schedule(op, scheduler)
        else:
            scheduler.add(Scalar(op))


class _Store(Declaration):
    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        if is_tile(op.ptr.type):
            scheduler.root(StoreRoot(op, tiles_of(op)))
        else:
            scheduler.add(Scalar(op))


class _Lanes(Declaration):
    """Done element by element, on scalars at once."""

    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        tiles = tiles_of(op)
        if not tiles:
            scheduler.add(Scalar(op))
            return
        for result in op.results:
            scheduler.new_place(result)
        scheduler.root(LaneRoot(op, tiles))


class _Print(Declaration):
    """One value after the other."""

    def read(self, op: Operation, storage: ReadVisitor) -> None:
        for number, operand in enumerate(op.operands):
            storage.read(operand, Use((op, number), op))

    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        for number, value in enumerate(op.operands):
            scheduler.root(PrintRoot(op, (value,), number))
        if not op.operands:
            scheduler.add(Scalar(op))


def _advance(op: Operation, steps: Sequence[Step]) -> Step:
    return add(op, steps) if is_offset(op.operands[1]) or steps[1] == 0 else IRREGULAR


DECLARATIONS: dict[type[Operation], Declaration] = {
    AddPtrOp: Lazy(INDEX_WEIGHT, step=_advance),
    LoadOp: _Load(_LOAD),
    StoreOp: _Store(),
    **dict.fromkeys(ATOMIC_OPS, _Lanes()),
    AssertOp: _Lanes(),
    PrintOp: _Print(),
    BarrierOp: ScalarOp(),
    GlobalTimerOp: ScalarOp(),
    **dict.fromkeys([*block_pointer.OPS, *descriptor.OPS], Uncompiled()),
}
