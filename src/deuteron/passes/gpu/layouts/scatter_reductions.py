"""Shares the results of reductions out over the lanes that combine them: reduce-scatter in the place of all-reduce.

    %s = "tt.reduce"(%x) ({ add })              %s = "tt.reduce"(%x) ({ add })          a row's sum in one lane
    %m = arith.divf %s, %n               ->     %m = arith.divf %s, %n                  of 16 rows: once, not 16 times
    %d = arith.subf %x, %m[:, None]             %g = "ttg.convert_layout"(%m)           in all lanes
                                                %d = arith.subf %x, %g[:, None]

Where a thread has parts of several rows, two lanes give each other the parts of those rows that they do not keep: of
16 rows 8, 4, 2, 1 and 1 shuffles in the place of 80. Where all lanes need the results, each of them is another one.
The sums are the same to the bit: lanes combine in the order in which they did.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from deuteron.ir.arith import constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.effects import is_pure
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.tt.reduce import ReduceOp
from deuteron.ir.tt.shape import ExpandDimsOp, SplatOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.ttg.inference import is_elementwise
from deuteron.ir.ttg.layout import layout_of, with_layout
from deuteron.ir.types import bit_width_of, i32, is_tile
from deuteron.layout.distributed import axis_bits, scatter_registers, slice_axis
from deuteron.layout.linear import LANE, REGISTER, WARP, LinearLayout
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import erase, replace

# Slots of the schedulers of a multiprocessor that an instruction of a warp takes: it shuffles for 32 lanes in a cycle,
# selects for 64, adds for 128 (CUDA's programming guide, arithmetic instructions).
SHUFFLE, SELECT, COMBINE = 4, 2, 1
# Of the slots of a reduction in which all lanes have every result: to fetch it takes one more latency. With 0.95
# softmax, norms, sums and argmax of 20 to 1,024 columns take the same time (H200).
MOST = 2 / 3


class ScatterReductions(Optimisation):
    """Shares the results of reductions out over lanes."""

    name = "scatter-reductions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            scattered: dict[SSAValue, SSAValue] = {}
            for reduction in [one for one in nested_ops(func, ReduceOp) if _pays(one)]:
                scattered |= _scatter(reduction)
            _convert_late(func, scattered)


def _pays(op: ReduceOp) -> bool:
    layout, axis = layout_of(op.srcs[0].type), op.axis.value.data
    lanes, sliced = axis_bits(layout, axis, LANE), slice_axis(layout, axis)
    if axis_bits(layout, axis, WARP) or not is_tile(op.results[0].type) or layout_of(op.results[0].type) != sliced:
        return False
    steps = min(len(lanes), len(sliced.of(REGISTER)))
    return steps > 0 and _slots(op, sliced, len(lanes), steps) <= MOST * _slots(op, sliced, len(lanes), 0)


def _slots(op: ReduceOp, sliced: LinearLayout, lanes: int, scattered: int) -> float:
    """What a reduction takes whose results are shared out over so many of its lane bits, with what gets them back."""
    held, slots, num_ops = sliced.in_size(REGISTER), 0.0, len(op.combine.block.ops) - 1
    for step in range(lanes):
        if step < scattered:
            held //= 2
            slots += 2 * held * len(op.srcs) * SELECT
        slots += sum(_words(src, held) for src in op.srcs) * SHUFFLE + held * num_ops * COMBINE
    if not scattered or all(isinstance(use.operation, ConvertLayoutOp) for r in op.results for use in r.uses):
        return slots
    return slots + sliced.in_size(REGISTER) * sum(_words(src, 1) for src in op.srcs) * SHUFFLE


def _words(src: SSAValue, count: int) -> int:
    """Narrow elements share a word."""
    return -(-count * bit_width_of(src.type) // bit_width_of(i32))


def _scatter(op: ReduceOp) -> dict[SSAValue, SSAValue]:
    """The results in the layout that they had, and of each what is shared out."""
    layout, axis = layout_of(op.srcs[0].type), op.axis.value.data
    scattered = scatter_registers(slice_axis(layout, axis), axis_bits(layout, axis, LANE))
    b = Builder.before(op)
    made = b.insert(
        ReduceOp.create(
            operands=op.srcs,
            result_types=[with_layout(result.type, scattered) for result in op.results],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
            regions=[op.detach_region(op.combine)],
        )
    )
    converted = [b.value(ConvertLayoutOp(new, old.type)) for new, old in zip(made.results, op.results, strict=True)]
    replace(op, converted)
    return dict(zip(converted, made.results, strict=True))


def _convert_late(func: FuncOp, scattered: dict[SSAValue, SSAValue]) -> None:
    """What is computed of scattered results alone is computed before they are converted; nothing is converted twice.
    `scattered`: of each conversion what it converts.
    """
    for op in nested_ops(func):
        if isinstance(op, ConvertLayoutOp) and op.src in scattered:
            op.operands = [scattered[op.src]]
            scattered[op.result] = op.src
        elif (is_elementwise(op) or isinstance(op, ExpandDimsOp)) and _takes_no_more_conversions(op, scattered):
            result = _computed_before(op, scattered)
            scattered[result] = result.owner.src
    for conversion in reversed(scattered):
        if conversion.first_use is None:
            erase(conversion.owner)


def _takes_no_more_conversions(op: Operation, scattered: dict[SSAValue, SSAValue]) -> bool:
    """Whether an op is of scattered tiles in one layout, one of which nothing else needs converted."""
    tiles = [operand for operand in op.operands if is_tile(operand.type)]
    known = [tile for tile in tiles if tile in scattered]
    is_last = any(tile.has_one_use() and tile.owner.parent is op.parent for tile in known)
    is_alike = len({layout_of(scattered[tile].type) for tile in known}) == 1
    return is_last and is_alike and is_pure(op) and all(tile in scattered or _is_uniform(tile) for tile in tiles)


def _is_uniform(tile: SSAValue) -> bool:
    return isinstance(tile.owner, SplatOp) or constant_value(tile) is not None


def _computed_before(op: Operation, scattered: dict[SSAValue, SSAValue]) -> SSAValue:
    """The result of an op, which is computed where its operands are shared out, in its layout."""
    b = Builder.before(op)
    layout = layout_of(next(scattered[tile].type for tile in op.operands if tile in scattered))
    operands = [scattered[x] if x in scattered else _uniform(b, x, layout) for x in op.operands]
    layout = layout.with_axis(op.axis.value.data) if isinstance(op, ExpandDimsOp) else layout
    made = type(op).create(
        operands=operands,
        result_types=[with_layout(op.results[0].type, layout)],
        properties=dict(op.properties),
        attributes=dict(op.attributes),
    )
    result = b.value(ConvertLayoutOp(b.value(made), op.results[0].type))
    replace(op, [result])
    return result


def _uniform(b: Builder, value: SSAValue, layout: LinearLayout) -> SSAValue:
    """A tile of equal elements in another layout; a scalar as it is."""
    if not is_tile(value.type):
        return value
    type = with_layout(value.type, layout)
    if isinstance(value.owner, SplatOp):
        return b.value(SplatOp.create(operands=value.owner.operands, result_types=[type]))
    return b.constant(constant_value(value), type)
