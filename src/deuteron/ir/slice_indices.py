"""Which slice of a tile in memory an op takes: one that there is.

    scf.for %i = 0 to 4 step 1                               the counter of a loop with constant bounds, or a constant
      ttg.memdesc_slice %m, %i : 64x32 -> 64x8               of four slices

Anything else may begin outside of the tile, which nothing would notice.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, SSAValue
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.arith import constant_value
from deuteron.ir.ttg.memdesc_subslice import MemDescSliceOp
from deuteron.ir.ttg.private import PrivateLoadOp, PrivateStoreOp, PrivateViewOp
from deuteron.ir.types import shape_of

_Sliced = MemDescSliceOp | PrivateLoadOp | PrivateStoreOp | PrivateViewOp


def check_slice_index(op: _Sliced) -> None:
    """Raise VerifyException unless the index is certainly one of a slice."""
    if op.index is None:
        return
    count, values = _num_slices(op), _values_of(op.index)
    if values is None or not 0 <= values[0] <= values[-1] < count:
        found = "which this is not" if values is None else f"not {values[-1] if values[0] >= 0 else values[0]}"
        counted = "a constant, or counted by an scf.for with constant bounds"
        raise VerifyException(f"{op.name} takes one of {count} slices: its index is {counted}, {found}")


def _num_slices(op: _Sliced) -> int:
    if not isinstance(op, MemDescSliceOp):
        return (op.dst if isinstance(op, PrivateStoreOp) else op.src).type.count.data
    axis = op.axis.value.data
    return shape_of(op.src.type.tile)[axis] // shape_of(op.result.type.tile)[axis]


def _values_of(index: SSAValue) -> range | None:
    """The values that it takes, if that is known, and if there are any."""
    number = constant_value(index)
    if number is not None:
        return range(number, number + 1)
    loop = index.owner.parent_op() if isinstance(index, BlockArgument) and index.index == 0 else None
    bounds = (
        [constant_value(value) for value in (loop.lb, loop.ub, loop.step)] if isinstance(loop, scf.ForOp) else [None]
    )
    if None in bounds or bounds[2] < 1:
        return None
    return range(*bounds) or range(1)
