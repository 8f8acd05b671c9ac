"""The layouts that the result of a reduction may have.

%r = "tt.reduce"(%x)      the slice of the layout of %x: all lanes that had elements of a row have its result
                          or that with registers shared out over these lanes: each has the results of some rows
"""

from __future__ import annotations

from deuteron.ir.tt.reduce import ReduceOp
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.types import is_tile
from deuteron.layout.distributed import axis_bits, scattered_registers, slice_axis
from deuteron.layout.linear import LANE, WARP


def scattered_lanes(op: ReduceOp) -> dict[int, int] | None:
    """Of the lane bits along the axis of a reduction those over which its result is shared out, and the register bit
    that each has taken over. None where its result has another layout than a reduction can give.
    """
    layout, axis = layout_of(op.srcs[0].type), op.axis.value.data
    layouts = {layout_of(result.type) for result in op.results if is_tile(result.type)}
    if not layouts:
        return {}
    found = scattered_registers(slice_axis(layout, axis), layouts.pop())
    is_along = found is not None and found.keys() <= set(axis_bits(layout, axis, LANE))
    return found if is_along and not layouts and not (found and axis_bits(layout, axis, WARP)) else None
