"""Reductions, scans, products: what runs along an axis, and leaves its results in memory or in scalars."""

from __future__ import annotations

from xdsl.ir import Block, Operation

from deuteron.analysis.addresses.index_bits import exchange_mask
from deuteron.backend.cpu.fragment import one_element
from deuteron.backend.cpu.plan.indices import Index, exchanged
from deuteron.backend.cpu.plan.items import Dot
from deuteron.backend.cpu.plan.ops.declaration import FLOAT_WEIGHT, Declaration, Lazy, Operands, tiles_of
from deuteron.backend.cpu.plan.ops.shape import is_transpose
from deuteron.backend.cpu.plan.products.marks import b_is_transposed, columns_of, product_of, steps_of
from deuteron.backend.cpu.plan.products.operand_layout import panel_layout
from deuteron.backend.cpu.plan.roots import GatherRoot, HistogramRoot, Keep, MapRoot, ReduceRoot, ScanRoot, UnsplatRoot
from deuteron.backend.cpu.plan.tiles.use import Use
from deuteron.backend.cpu.plan.visitors import ReadVisitor, ScheduleVisitor, new_buffer
from deuteron.ir.arith import is_positive_zero
from deuteron.ir.effects import is_pure
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.indexing import GatherOp, HistogramOp
from deuteron.ir.tt.map_elementwise import MapElementwiseOp
from deuteron.ir.tt.reduce import ReduceOp, ScanOp
from deuteron.ir.tt.shape import UnsplatOp
from deuteron.ir.types import is_tile, shape_of

# A step of a sorting network reduces pairs. More elements are only more code; two also where they are loaded.
MAX_UNROLLED = 2


class _Reduce(Lazy):
    """A reduction. One of few elements at a time is computed wherever an element of its result is used, without a loop:

    total = tl.sum(pairs, 1)        of (n, 2, m): total[i, k] is pairs[i, 0, k] + pairs[i, 1, k]
    """

    def is_lazy(self, op: Operation) -> bool:
        is_one_tile = len(op.results) == 1 and is_tile(op.results[0].type)
        return is_one_tile and _reduced_extent(op) <= MAX_UNROLLED and _is_closed(op.combine.block)

    def operands_at(self, op: Operation, index: Index) -> Operands:
        axis = op.axis.value.data
        entries = [one_element(number) for number in range(_reduced_extent(op))] if _reduced_extent(op) > 1 else [None]
        return [(op.operands[0], (*index[:axis], entry, *index[axis:])) for entry in entries]

    def read(self, op: Operation, storage: ReadVisitor) -> None:
        if self.is_lazy(op):
            super().read(op, storage)
        else:
            Declaration.read(self, op, storage)

    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        if self.is_lazy(op):
            super().schedule(op, scheduler)
        else:
            _schedule_along(ReduceRoot, op, scheduler)


class _Scan(Declaration):
    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        _schedule_along(ScanRoot, op, scheduler)


def _schedule_along(root: type[ReduceRoot] | type[ScanRoot], op: Operation, scheduler: ScheduleVisitor) -> None:
    """A region of arithmetic is no part of the plan, but emitted with it, lane by lane."""
    for result in op.results:
        if is_tile(result.type):
            scheduler.new_place(result)
    body = None if is_arithmetic(op.combine.block) else scheduler.region(op.combine.block)
    scheduler.root(root(op, tiles_of(op), op.axis.value.data, body=body))


def _reduced_extent(op: Operation) -> int:
    return shape_of(op.operands[0].type)[op.axis.value.data]


def _is_closed(block: Block) -> bool:
    """Whether a region is arithmetic on its arguments alone."""
    known = {*block.args, *(result for op in block.ops for result in op.results)}
    return is_arithmetic(block) and all(operand in known for op in block.ops for operand in op.operands)


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


class _Gather(Lazy):
    """The tile that it takes elements of is in memory. Exchanged in pairs, they are that tile at another index."""

    def is_lazy(self, op: Operation) -> bool:
        return exchange_mask(op) is not None

    def operands_at(self, op: Operation, index: Index) -> Operands:
        return [(op.src, exchanged(index, shape_of(op.src.type), exchange_mask(op)))]

    def read(self, op: Operation, storage: ReadVisitor) -> None:
        storage.require(op.src, op)
        if self.is_lazy(op):
            storage.use_through(op.result, op)
        else:
            storage.read(op.indices, Use(op, op))

    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        if self.is_lazy(op):
            super().schedule(op, scheduler)
            return
        scheduler.new_place(op.result)
        scheduler.root(GatherRoot(op, (op.indices, op.src)))


class _Histogram(Declaration):
    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        scheduler.new_place(op.result)
        scheduler.root(HistogramRoot(op, tiles_of(op)))


class _Dot(Declaration):
    """The result begins as the accumulator, if that is not 0; both operands are in memory, a transpose by an item."""

    def read(self, op: Operation, storage: ReadVisitor) -> None:
        for operand in (op.a, op.b):
            storage.require(operand, op)
            if is_transpose(operand):
                storage.transposed.add(operand)
        if not is_positive_zero(op.c):
            storage.read(op.c, Use((op, "c"), op))

    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        result = scheduler.new_place(op.result)
        if not is_positive_zero(op.c):
            scheduler.root(Keep(op, (op.c,), result))
        product, packed, steps = product_of(op), None, steps_of(op)
        if product is not None:
            lanes = shape_of(op.a.type)[-1] // product.group, shape_of(op.c.type)[-1]
            packed = new_buffer(product.lane, lanes, panel_layout(*lanes, columns_of(op), steps))
        a, b = scheduler.places[op.a], scheduler.places[op.b]
        scheduler.add(Dot(op, a, b, result, product, packed, b_is_transposed(op), steps, is_positive_zero(op.c)))


DECLARATIONS: dict[type[Operation], Declaration] = {
    ReduceOp: _Reduce(FLOAT_WEIGHT),
    ScanOp: _Scan(),
    UnsplatOp: _Unsplat(),
    GatherOp: _Gather(0.0),
    HistogramOp: _Histogram(),
    MapElementwiseOp: _Map(),
    DotOp: _Dot(),
}
