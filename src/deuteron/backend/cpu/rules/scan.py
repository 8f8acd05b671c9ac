"""tt.scan: along its axis one element after the other; vectorised along another dimension where there is one.

for i: sum = x[i, 0]; for j: sum = first ? x[i, j] : combine(sum, x[i, j]); out[i, j] = sum
"""

from __future__ import annotations

from deuteron.backend.cpu.algebra import as_vector, lanewise, of_value
from deuteron.backend.cpu.context import AxisIndex, Context, guarded
from deuteron.backend.cpu.elements import register_type
from deuteron.backend.cpu.fragment import Axis, Fragment
from deuteron.backend.cpu.loops import NestLoops
from deuteron.backend.cpu.places import write_place
from deuteron.backend.cpu.plan.items import Nest, ScanRoot
from deuteron.backend.cpu.rules.region import combine, combine_scalars
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import const, vector, zero


def emit_scan(ctx: Context, nest: Nest, root: ScanRoot) -> None:
    """Emit the loops of a scan."""
    loops = NestLoops(ctx, nest)
    for axis in loops.order:
        loops.open(axis)
    lanes = loops.vectorisation.lanes
    starts = [zero(vector(register_type(source.type), lanes)) for source in root.sources]
    loop = loops.open(root.axis, starts)
    index = _reversed(ctx, nest, root, loops.indices[0])
    elements = [ctx.evaluate(source, index) for source in root.sources]
    if loop is not None:
        elements = _combine(ctx, root, lanes, [of_value(v, loop.level) for v in loop.carried], elements, loop.index)
    for result, fragment in zip(root.op.results, elements, strict=True):
        write_place(ctx, ctx.plan.places[result], index, fragment)
    loops.close([as_vector(ctx.emitter, fragment, lanes) for fragment in elements])
    for _ in loops.order:
        loops.close()
    ctx.tiles.clear()


def _reversed(ctx: Context, nest: Nest, root: ScanRoot, index: AxisIndex) -> AxisIndex:
    """The index counted from the end of the axis, where the scan runs from there."""
    axis = index[root.axis]
    if not root.op.reverse.value.data or axis is None:
        return index
    last = const("i32", nest.shape[root.axis] - 1)
    start = ctx.emitter.at(axis.level).sub(last, axis.start, "nuw nsw")
    return (*index[: root.axis], Axis(start, axis.lanes, axis.level), *index[root.axis + 1 :])


def _combine(
    ctx: Context, root: ScanRoot, lanes: int, before: list[Fragment], elements: list[Fragment], index
) -> list[Fragment]:
    if root.body is not None:
        return _combine_scalars(ctx, root, before, elements, index)
    combined = guarded(root.op, combine, ctx, root.op.combine.block, before, elements)
    level = ctx.emitter.depth
    is_first = of_value(ctx.emitter.at(level).icmp("eq", index, const("i32", 0)), level)
    return [
        lanewise(ctx.emitter, Builder.select, is_first, first, other)
        for first, other in zip(elements, combined, strict=True)
    ]


def _combine_scalars(
    ctx: Context, root: ScanRoot, before: list[Fragment], elements: list[Fragment], index
) -> list[Fragment]:
    is_first = ctx.emitter.innermost().icmp("eq", index, const("i32", 0))
    groups = [[fragment.value for fragment in group] for group in (before, elements)]
    combined = guarded(root.op, combine_scalars, ctx, root.body, root.op.combine.block, is_first, *groups)
    return [of_value(value, ctx.emitter.depth) for value in combined]
