"""Reductions, scans, products: what runs along an axis, and leaves its results in memory or in scalars."""

from __future__ import annotations

from xdsl.ir import Operation

from deuteron.backend.cpu.plan.items import (
    Dot,
    GatherRoot,
    HistogramRoot,
    Keep,
    ReduceRoot,
    ScanRoot,
    UnsplatRoot,
)
from deuteron.backend.cpu.plan.ops.declaration import Declaration, tiles_of
from deuteron.backend.cpu.plan.ops.shape import is_transpose
from deuteron.backend.cpu.plan.use import Use
from deuteron.backend.cpu.plan.visitors import ReadVisitor, ScheduleVisitor
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.indexing import GatherOp, HistogramOp
from deuteron.ir.tt.reduce import ReduceOp, ScanOp
from deuteron.ir.tt.shape import UnsplatOp
from deuteron.ir.types import is_tile


class _Along(Declaration):
    """A reduction or a scan; its region is no part of the plan, but emitted with it."""

    def __init__(self, root: type[ReduceRoot] | type[ScanRoot]) -> None:
        self._root = root

    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        for result in op.results:
            if is_tile(result.type):
                scheduler.new_place(result)
        scheduler.root(self._root(op, tiles_of(op), op.axis.value.data))


class _Unsplat(Declaration):
    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        scheduler.root(UnsplatRoot(op, tiles_of(op)))


class _Gather(Declaration):
    """The tile that it takes elements of is in memory."""

    def read(self, op: Operation, storage: ReadVisitor) -> None:
        storage.require(op.src, op)
        storage.read(op.indices, Use(op, op))

    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        scheduler.new_place(op.result)
        scheduler.root(GatherRoot(op, (op.indices, op.src)))


class _Histogram(Declaration):
    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        scheduler.new_place(op.result)
        scheduler.root(HistogramRoot(op, tiles_of(op)))


class _Dot(Declaration):
    """The result begins as the accumulator; both operands are in memory, a transpose by an item of its own."""

    def read(self, op: Operation, storage: ReadVisitor) -> None:
        for operand in (op.a, op.b):
            storage.require(operand, op)
            if is_transpose(operand):
                storage.transposed.add(operand)
        storage.read(op.c, Use((op, "c"), op))

    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        result = scheduler.new_place(op.result)
        scheduler.root(Keep(op, (op.c,), result))
        scheduler.add(Dot(op, scheduler.places[op.a], scheduler.places[op.b], result))


DECLARATIONS: dict[type[Operation], Declaration] = {
    ReduceOp: _Along(ReduceRoot),
    ScanOp: _Along(ScanRoot),
    UnsplatOp: _Unsplat(),
    GatherOp: _Gather(),
    HistogramOp: _Histogram(),
    DotOp: _Dot(),
}
