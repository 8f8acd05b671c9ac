"""Keeps the order of what a reduction combines, where its function tells one order from another.

    %r = "tt.reduce"(%x) <{axis = 0}> ({        %s = "tt.scan"(%x) <{axis = 0}> ({ ... })
    ^bb0(%a: f32, %b: f32):                     %i = 0, 1, ..., n - 1
      "tt.reduce.return"(%b)             ->     _, %r = "tt.reduce"(%i, %s) <{axis = 0}> ({
    })                                            ... what has the larger index
                                                })

Reductions combine in the order that costs least: the first half of the lanes with the second. Scans keep the order, and
what is at the end of a scan is the reduction. Whether a function is commutative its form says, or is seen on numbers
(`symmetric_functions.py`, `tried_orders.py`). Triton computes such reductions in whatever order it has.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from deuteron.analysis.symmetric_functions import is_symmetric
from deuteron.ir.arith import CmpIOp, SelectOp
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.reduce import ReduceOp, ReduceReturnOp, ScanOp, ScanReturnOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, MakeRangeOp, ReshapeOp
from deuteron.ir.types import shape_of
from deuteron.passes.rewrite import erase_unused, replace


class OrderReductions(ModulePass):
    """Makes scans of reductions by functions that are not commutative."""

    name = "order-reductions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for reduction in nested_ops(op, ReduceOp):
            # Asking for a type leaves tiles, which no pairs of numbers are.
            erase_unused(list(reduction.combine.block.ops))
            if not is_commutative(reduction):
                _order(reduction)


def is_commutative(op: ReduceOp) -> bool:
    """Whether a reduction's function gives the same for both orders of two elements."""
    return is_symmetric(op.combine.block) or _is_commutative_on_numbers(op)


def _is_commutative_on_numbers(op: ReduceOp) -> bool:
    from deuteron.passes.tile.tried_orders import gives_the_same  # deferred: brings NumPy, for what few kernels have

    return gives_the_same(op)


def _order(op: ReduceOp) -> None:
    """Replace a reduction by what is at the end of a scan."""
    b, axis = Builder.before(op), op.axis.value.data
    for src in op.srcs:
        if isinstance(src.owner, ReshapeOp):
            src.owner.properties.pop("allow_reorder", None)
    scan = ScanOp(op.srcs, axis)
    _copy_function(op, scan)
    b.insert(scan)
    last = ReduceOp([_positions(b, shape_of(op.srcs[0].type), axis), *scan.res], axis)
    _pick_larger(b, last)
    b.insert(last)
    replace(op, last.res[1:])


def _copy_function(op: ReduceOp, scan: ScanOp) -> None:
    block = op.combine.block
    values = dict(zip(block.args, scan.combine.block.args, strict=True))
    for inner in list(block.ops)[:-1]:
        scan.combine.block.add_op(inner.clone(values))
    outcome = block.last_op
    results = ScanReturnOp([values.get(value, value) for value in outcome.operands])
    results.location = outcome.location
    scan.combine.block.add_op(results)


def _positions(b: Builder, shape: Sequence[int], axis: int) -> SSAValue:
    """The index of each element along the axis."""
    result = b.value(MakeRangeOp(0, shape[axis]))
    for dimension in range(len(shape)):
        if dimension != axis:
            result = b.value(ExpandDimsOp(result, dimension))
    return b.value(BroadcastOp(result, shape)) if shape_of(result.type) != tuple(shape) else result


def _pick_larger(b: Builder, op: ReduceOp) -> None:
    """The function of a reduction that gives the elements whose first value is larger."""
    block = op.combine.block
    half = len(op.srcs)
    with b.at(block):
        is_later = b.value(CmpIOp(block.args[0], block.args[half], "sgt"))
        pairs = zip(block.args[:half], block.args[half:], strict=True)
        b.insert(ReduceReturnOp([b.value(SelectOp(is_later, x, y)) for x, y in pairs]))
