"""Comparisons of positions in a reduction's function, for two groups in their order along the axis.

    x > y or x == y and i < j      the greater, and of equal ones the first: i < j holds, if i and j are positions
                                   along the axis, and LLVM makes x >= y of it

A thread combines its own elements in that order, lanes and warps do not.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.backend.llvm.types import Value, const
from deuteron.ir.arith import CmpIOp, SelectOp
from deuteron.ir.casts import ExtSIOp, ExtUIOp
from deuteron.ir.tt.reduce import ReduceOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, MakeRangeOp, ReshapeOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.types import shape_of

KEEP_NUMBERS = (ExpandDimsOp, BroadcastOp, ReshapeOp, ConvertLayoutOp, ExtSIOp, ExtUIOp)
HOLD_FOR_LESS = {"slt", "sle", "ult", "ule", "ne"}
HOLD_FOR_GREATER = {"sgt", "sge", "ugt", "uge", "ne"}


def comparisons_in_order(op: ReduceOp, info: AxisInfoAnalysis) -> dict[Operation, Value]:
    """What compares the positions of both groups, and what it gives."""
    args, axis, count = op.combine.block.args, op.axis.value.data, len(op.srcs)
    pairs = [
        (args[index], args[count + index])
        for index, (src, given) in enumerate(zip(op.srcs, op.combine.block.last_op.operands, strict=True))
        if _are_positions(src, axis, info) and _is_one_of(given, {args[index], args[count + index]})
    ]
    comparisons = [inner for inner in op.combine.block.ops if isinstance(inner, CmpIOp)] if pairs else []
    found: dict[Operation, Value] = {}
    for inner in comparisons:
        if (inner.lhs, inner.rhs) in pairs:
            found[inner] = const("i1", inner.predicate_name in HOLD_FOR_LESS)
        elif (inner.rhs, inner.lhs) in pairs:
            found[inner] = const("i1", inner.predicate_name in HOLD_FOR_GREATER)
    return found


def _is_one_of(value: SSAValue, pair: set[SSAValue]) -> bool:
    """Whether the function chooses one of both positions: groups of several elements have no other number either."""
    if isinstance(value.owner, SelectOp):
        return _is_one_of(value.owner.true_value, pair) and _is_one_of(value.owner.false_value, pair)
    return value in pair


def _are_positions(tile: SSAValue, axis: int, info: AxisInfoAnalysis) -> bool:
    """Whether a tile counts up along an axis, from a range of numbers that does not wrap around."""
    source = tile
    while isinstance(source.owner, KEEP_NUMBERS):
        source = source.owner.operands[0]
    return isinstance(source.owner, MakeRangeOp) and info.of(tile).contiguity[axis] == shape_of(tile.type)[axis]
