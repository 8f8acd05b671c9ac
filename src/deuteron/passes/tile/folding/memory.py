"""Folds of memory ops: offsets of 0, and masks that are known.

load(p, true, other)   ->  load(p)          load(p, false, other)  ->  other          store(p, v, false)  ->
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import SSAValue

from deuteron.ir.arith import constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.hints import has_promises
from deuteron.ir.rule_table import RuleTable
from deuteron.ir.tt.memory import AddPtrOp, LoadOp, StoreOp
from deuteron.ir.types import i32

FOLDS = RuleTable()

Folded = Sequence[SSAValue] | None


@FOLDS.on(AddPtrOp)
def fold_addptr(op: AddPtrOp) -> Folded:
    return [op.ptr] if constant_value(op.offset) == 0 and not has_promises(op) else None


@FOLDS.on(LoadOp)
def fold_load(op: LoadOp) -> Folded:
    mask = constant_value(op.mask) if op.mask is not None else None
    if mask == 0 and op.other is not None:
        return [op.other]
    return [Builder.before(op).value(load_like(op, None, None))] if mask == 1 else None


@FOLDS.on(StoreOp)
def fold_store(op: StoreOp) -> Folded:
    mask = constant_value(op.mask) if op.mask is not None else None
    if mask == 1:
        Builder.before(op).insert(store_like(op, op.value, None))
    return [] if mask is not None else None


def load_like(op: LoadOp, mask: SSAValue | None, other: SSAValue | None) -> LoadOp:
    """The same load with another mask."""
    operands = [op.ptr, *([mask] if mask is not None else []), *([other] if other is not None else [])]
    segments = DenseArrayBase.from_list(i32, [1, int(mask is not None), int(other is not None)])
    return LoadOp.create(
        operands=operands,
        result_types=[op.result.type],
        properties={**op.properties, "operandSegmentSizes": segments},
        attributes=op.attributes,
    )


def store_like(op: StoreOp, value: SSAValue, mask: SSAValue | None) -> StoreOp:
    """The same store of another value and with another mask."""
    operands = [op.ptr, value, *([mask] if mask is not None else [])]
    return StoreOp.create(operands=operands, properties=op.properties, attributes=op.attributes)
