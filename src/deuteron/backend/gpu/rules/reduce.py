"""tt.reduce: within each thread, then between the lanes of a warp, then between warps through shared memory.

    registers    those that differ only along the axis are combined
    lanes        for each lane bit along the axis, with the lane that differs in it; where the layout of the result
                 shares it out over lanes (`scatter-reductions`), each combines what it keeps
    warps        each warp stores its part, all wait, every thread combines the parts of all warps (`combine_warps.py`)

Replicated elements count once: neither replicas in registers nor lanes and warps that hold replicas are combined. All
threads that hold a result hold the same, since they may branch on it, or load the row that it says: where lanes of a
warp may differ, by rounding, or in ties and NaN, all of them take what the first has; sums with products are not fused.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Operation

from deuteron.analysis.shared_memory.warp_parts import num_parts
from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.fragment import Fragment, Operand, positions
from deuteron.backend.gpu.rules.combine import Group, agree, combine_all, combine_lanes, may_differ, scatter_lanes
from deuteron.backend.gpu.rules.combine_warps import combine_warps
from deuteron.backend.gpu.rules.positions import comparisons_in_order
from deuteron.backend.gpu.threads import owned_registers
from deuteron.ir.casts import SIToFPOp, UIToFPOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.ttg.reduced import scattered_lanes
from deuteron.ir.types import element_type_of, is_float, is_tile
from deuteron.layout.distributed import axis_bits, slice_axis
from deuteron.layout.linear import LANE, REGISTER, LinearLayout

NO_PRODUCTS = (LoadOp, SIToFPOp, UIToFPOp, arith.AddfOp, arith.SubfOp, arith.ConstantOp)


def reduce(ctx: Context, op: Operation, *tiles: Fragment) -> list[Operand]:
    block, axis, layout = op.combine.block, op.axis.value.data, tiles[0].layout
    sliced = slice_axis(layout, axis)
    groups, lane_bits = _within_threads(ctx, op, tiles), axis_bits(layout, axis, LANE)
    adds_to_products = _adds_to_products(ctx, op, layout)
    parts = [groups[position] for position in positions(sliced)]
    scattered = scattered_lanes(op)
    lane_bits = [bit for bit in lane_bits if bit not in scattered]
    results = scatter_lanes(ctx, block, op.srcs, parts, scattered, adds_to_products)
    results = combine_lanes(ctx, block, op.srcs, results, lane_bits, adds_to_products)
    if num_parts(op) > 1:
        results = combine_warps(ctx, op, layout, sliced, results)
    else:
        results = agree(ctx, block, op.srcs, results, lane_bits)
    columns = list(zip(*results, strict=True))
    return [
        Fragment(layout_of(result.type), column) if is_tile(result.type) else column[0]
        for column, result in zip(columns, op.results, strict=True)
    ]


def _within_threads(ctx: Context, op: Operation, tiles: tuple[Fragment, ...]) -> dict[tuple[int, ...], Group]:
    """For each position in the result, what a thread's own registers give, in their order along the axis."""
    places, groups, axis = positions(tiles[0].layout), {}, op.axis.value.data
    known = comparisons_in_order(op, ctx.info)
    for register in sorted(owned_registers(tiles[0].layout), key=lambda r: places[r]):
        place = places[register][:axis] + places[register][axis + 1 :]
        groups.setdefault(place, []).append([tile.registers[register] for tile in tiles])
    return {place: combine_all(ctx, op.combine.block, found, known) for place, found in groups.items()}


def _adds_to_products(ctx: Context, op: Operation, layout: LinearLayout) -> bool:
    """Whether what a lane has may be a product, which would be fused with the sum with what another lane has. Where
    lanes may differ anyway they agree afterwards.
    """
    if axis_bits(layout, op.axis.value.data, REGISTER) or may_differ(op.combine.block):
        return False
    floats = [src for src in op.srcs if is_float(element_type_of(src.type))]
    adds = any(isinstance(inner, arith.AddfOp | arith.SubfOp) for inner in op.combine.block.ops)
    return adds and not all(isinstance(src.owner, NO_PRODUCTS) for src in floats)


RULES: dict[str, Rule] = {"tt.reduce": reduce}
