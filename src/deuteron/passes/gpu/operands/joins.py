"""Joins in what operands of dots are computed of, as selections by position: those are computed in any layout.

    %x = arith.sitofp %low                     %s = arith.select (range(0, 2) == 0), %low, %high     both broadcast
    %y = arith.sitofp %high              ->    %j = arith.sitofp %s
    %j = "tt.join"(%x, %y)

`tt.join` has a layout of its own, from which the operand would have to go through shared memory. Where a thread has
both halves nothing is left of a selection. What is done to both alike is done afterwards: to neighbours together.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Operation, OpResult, SSAValue

from deuteron.ir.arith import CmpIOp, SelectOp
from deuteron.ir.builder import Builder
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, JoinOp, MakeRangeOp
from deuteron.ir.ttg.inference import is_elementwise
from deuteron.ir.types import element_type_of, is_tile, shape_of, tile
from deuteron.passes.rewrite import erase, replace


def select_joined(ops: Iterable[Operation]) -> None:
    """Replace the joins among some ops."""
    for op in ops:
        if isinstance(op, JoinOp):
            _select(op)


def _select(op: JoinOp) -> None:
    b, shape = Builder.before(op), shape_of(op.result.type)
    halves, changes = [op.lhs, op.rhs], []
    while _are_alike(*halves):
        changes.append([half.op for half in halves])
        halves = [half.op.operands[0] for half in halves]
    low, high = (b.value(BroadcastOp(b.value(ExpandDimsOp(half, len(shape) - 1)), shape)) for half in halves)
    value = b.value(SelectOp(_is_low(b, shape), low, high))
    for change, _ in reversed(changes):
        made = tile(element_type_of(change.results[0].type), shape)
        value = b.value(type(change).create(operands=[value], result_types=[made], properties=change.properties))
    replace(op, [value])
    for both in changes:
        for change in both:
            erase(change)


def _is_low(b: Builder, shape: tuple[int, ...]) -> SSAValue:
    """Whether the last position, of two, is the first."""
    index = b.value(MakeRangeOp(0, 2))
    for _ in shape[:-1]:
        index = b.value(ExpandDimsOp(index, 0))
    return b.value(BroadcastOp(b.value(CmpIOp(index, b.constant(0, index.type), "eq")), shape))


def _are_alike(low: SSAValue, high: SSAValue) -> bool:
    """Whether one op of each, on one tile, which nothing else reads, does the same to both."""
    if not isinstance(low, OpResult) or not isinstance(high, OpResult) or low is high:
        return False
    x, y = low.op, high.op
    is_same = (type(x), x.properties, x.operand_types) == (type(y), y.properties, y.operand_types)
    is_read_once = all(len(list(value.uses)) == 1 for value in (low, high))
    return is_same and is_read_once and len(x.operands) == 1 and is_elementwise(x) and is_tile(x.operands[0].type)
