"""How layouts pass through ops: which layouts the operands need, given the result's, and what a result has, given them.

An op is *flexible* if it can be computed in any layout from operands that it asks for: elementwise ops and changes of
shape. `operand_layouts` says what it asks for:

    elementwise        the layout of the result
    tt.expand_dims     the result's without the axis
    tt.broadcast       the result's with the repeated dimensions taken away: replicas
    tt.trans           the result's, permuted back; tt.reshape: reshaped back
    ttg.local_load     nothing: shared memory is loaded in any layout

The other ops, memory accesses, dots, reductions and scans, have layouts of their own.
"""

from __future__ import annotations

from xdsl.ir import Operation

from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, JoinOp, MakeRangeOp, ReshapeOp, SplatOp, TransOp
from deuteron.ir.ttg.shared import LocalLoadOp
from deuteron.ir.types import is_tile, shape_of
from deuteron.layout.linear import LinearLayout, dim_names

SHAPE_OPS = (BroadcastOp, ExpandDimsOp, MakeRangeOp, ReshapeOp, SplatOp, TransOp)
_IN_ANY_LAYOUT = frozenset({*SHAPE_OPS, LocalLoadOp})


def is_flexible(op: Operation) -> bool:
    """Whether an op can be computed in any layout."""
    if len(op.results) != 1 or op.regions or not is_tile(op.results[0].type):
        return False
    return type(op) in _IN_ANY_LAYOUT or is_elementwise(op)


def is_elementwise(op: Operation) -> bool:
    """Whether an op acts on each element alone, on tiles of one shape (scalar conditions may join)."""
    dialect = op.name.split(".")[0]
    if dialect in ("arith", "math"):
        return True
    return op.name in ELEMENTWISE_TT


ELEMENTWISE_TT = frozenset(
    {
        "tt.addptr",
        "tt.bitcast",
        "tt.clampf",
        "tt.extern_elementwise",
        "tt.fp_to_fp",
        "tt.int_to_ptr",
        "tt.mulhiui",
        "tt.precise_divf",
        "tt.precise_sqrt",
        "tt.ptr_to_int",
    }
)


def operand_layouts(op: Operation, result: LinearLayout) -> list[LinearLayout | None]:
    """For each operand of a flexible op, the layout that it needs for a result in that layout; None for a scalar. For a
    join where threads have both of its halves.
    """
    if isinstance(op, JoinOp):
        return [result.without_axis(len(result.shape) - 1)] * 2
    if isinstance(op, SHAPE_OPS):
        return [_source_layout(op, result)] if op.operands else []
    return [result if is_tile(operand.type) else None for operand in op.operands]


def _source_layout(op: Operation, result: LinearLayout) -> LinearLayout | None:
    if isinstance(op, SplatOp):
        return None
    if isinstance(op, ExpandDimsOp):
        return result.without_axis(op.axis.value.data)
    if isinstance(op, BroadcastOp):
        return before_broadcast(result, shape_of(op.src.type))
    if isinstance(op, TransOp):
        return result.transpose(inverse_permutation(op.permutation))
    assert isinstance(op, ReshapeOp)
    return result.reshape(shape_of(op.src.type))


def before_broadcast(result: LinearLayout, shape: tuple[int, ...]) -> LinearLayout:
    """The layout of the source of a broadcast: what differed only along repeated dimensions is replicated."""
    outs = dict(zip(dim_names(len(shape)), shape, strict=True))
    layout = result.map_columns(
        outs, lambda basis: tuple(e if size > 1 else 0 for e, size in zip(basis, shape, strict=True))
    )
    return layout.without_replicated_registers()


def inverse_permutation(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(order.index(axis) for axis in range(len(order)))


def result_layout(op: Operation, source: LinearLayout) -> LinearLayout | None:
    """The layout that the result of a flexible op has of itself if its (first) tile operand has `source`.

    None where the source does not decide it: a broadcast of a dimension, a new dimension.
    """
    if isinstance(op, TransOp):
        return source.transpose(op.permutation)
    if isinstance(op, ReshapeOp):
        return source.reshape(shape_of(op.result.type))
    if isinstance(op, (BroadcastOp, ExpandDimsOp)):
        return None
    return source
