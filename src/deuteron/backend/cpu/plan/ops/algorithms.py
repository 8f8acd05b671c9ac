"""Reductions, scans, products: what runs along an axis, and leaves its results in memory or in scalars."""

from __future__ import annotations

from xdsl.ir import Block, Operation

from deuteron.backend.cpu.plan.items import (
    Dot,
    GatherRoot,
    HistogramRoot,
    Keep,
    MapRoot,
    ReduceRoot,
    ScanRoot,
    UnsplatRoot,
)
from deuteron.backend.cpu.plan.ops.declaration import Declaration, tiles_of
from deuteron.backend.cpu.plan.ops.shape import is_transpose
from deuteron.backend.cpu.plan.use import Use
from deuteron.backend.cpu.plan.visitors import ReadVisitor, ScheduleVisitor
from deuteron.ir.effects import is_pure
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.indexing import GatherOp, HistogramOp
from deuteron.ir.tt.map_elementwise import MapElementwiseOp
from deuteron.ir.tt.reduce import ReduceOp, ScanOp
from deuteron.ir.tt.shape import UnsplatOp
from deuteron.ir.types import is_tile


class _Along(Declaration):
    """A reduction or a scan; a region of arithmetic is no part of the plan, but emitted with it, lane by lane."""

    def __init__(self, root: type[ReduceRoot] | type[ScanRoot]) -> None:
        self._root = root

    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        for result in op.results:
            if is_tile(result.type):
                scheduler.new_place(result)
        body = None if is_arithmetic(op.combine.block) else scheduler.region(op.combine.block)
        scheduler.root(self._root(op, tiles_of(op), op.axis.value.data, body=body))


def is_arithmetic(block: Block) -> bool:
    """Whether a region computes each of its values by an op that can be computed lane by lane."""
    return all(op.name.startswith(("arith.", "math.", "tt.")) and _is_lane_op(op) for op in block.ops)


def _is_lane_op(op: Operation) -> bool:
    return op.parent_block().last_op is op or (is_pure(op) and not op.regions and len(op.results) == 1)


class _Map(Declaration):
    """One element at a time; where it takes several, they are in memory, so that they come in any order."""

    def read(self, op: Operation, storage: ReadVisitor) -> None:
        for source in op.srcs:
            if op.pack.value.data > 1:
                storage.require(source, op)
            else:
                storage.read(source, Use(op, op))

    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        for result in op.results:
            scheduler.new_place(result)
        scheduler.root(MapRoot(op, tuple(op.srcs), body=scheduler.region(op.scalar_op.block)))


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
    MapElementwiseOp: _Map(),
    DotOp: _Dot(),
}
