"""tt.scan: along its axis one vector after the other, or vectorised along another dimension where that costs less.

along another      for i: sum = x[i, 0]; for j: sum = first ? x[i, j] : combine(sum, x[i, j]); out[i, j] = sum
along the axis     each vector by itself, in log2 steps: lane n takes lane n - 1 in, then n - 2, then n - 4, ...

    a b c d  ->  a ab bc cd  ->  a ab abc abcd        then what came before it in front of each: combine(sum, ...)

What the next vector waits for is one combination, of `sum` with the last lane. The loop ends where nobody sees what
comes then (`plan/needed_scans.py`).
"""

from __future__ import annotations

from deuteron.backend.cpu.algebra import as_vector, lanewise, of_value
from deuteron.backend.cpu.context import AxisIndex, Context
from deuteron.backend.cpu.fragment import Axis, Fragment
from deuteron.backend.cpu.loops import NestLoops
from deuteron.backend.cpu.memory.elements import register_type
from deuteron.backend.cpu.memory.places import write_place
from deuteron.backend.cpu.parts import Part
from deuteron.backend.cpu.plan.items import Nest
from deuteron.backend.cpu.plan.roots import ScanRoot
from deuteron.backend.cpu.rules.matrix import elements_needed
from deuteron.backend.cpu.rules.region import combine, combine_scalars
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import const, vector, vector_const, zero
from deuteron.backend.rule_errors import guarded


def emit_scan(ctx: Context, nest: Nest, root: ScanRoot) -> None:
    """Emit the loops of a scan."""
    loops = NestLoops(ctx, nest)
    for axis in loops.order:
        loops.open(axis)
    lanes = loops.vectorisation.lanes
    starts = [zero(vector(register_type(source.type), lanes)) for source in root.sources]
    loop = loops.open(root.axis, starts, _needed_part(ctx, nest, root, loops))
    index = _reversed(ctx, nest, root, loops.indices[0])
    elements = carried = [ctx.evaluate(source, index) for source in root.sources]
    if loops.vectorisation.axis == root.axis:
        elements = _within_vector(ctx, root, lanes, elements)
        carried = _last_lane(ctx, root, lanes, elements)
    if loop is not None:
        before = [of_value(value, loop.level) for value in loop.carried]
        is_alike = elements is carried
        elements = _combine(ctx, root, lanes, before, elements, loop.index)
        carried = elements if is_alike else _combine(ctx, root, lanes, before, carried, loop.index)
    for result, fragment in zip(root.op.results, elements, strict=True):
        write_place(ctx, ctx.plan.places[result], index, fragment)
    loops.close([as_vector(ctx.emitter, fragment, lanes) for fragment in carried])
    for _ in loops.order:
        loops.close()
    ctx.leave_nest()


def _needed_part(ctx: Context, nest: Nest, root: ScanRoot, loops: NestLoops) -> Part | None:
    """The vectors with elements that are needed; None where all are."""
    stride, extent = loops.stride_along(root.axis), nest.shape[root.axis]
    if not root.needed or extent <= stride.elements:
        return None
    count = elements_needed(ctx, root.needed, extent)
    b = ctx.emitter.innermost()
    return Part(const("i32", 0), b.trunc(count, "i32"), stride)


def _reversed(ctx: Context, nest: Nest, root: ScanRoot, index: AxisIndex) -> AxisIndex:
    """The index counted from the end of the axis, where the scan runs from there."""
    axis = index[root.axis]
    if not _is_reverse(root) or axis is None:
        return index
    last = const("i32", nest.shape[root.axis] - axis.lanes)
    start = ctx.emitter.at(axis.level).sub(last, axis.start, "nuw nsw")
    return (*index[: root.axis], Axis(start, axis.lanes, axis.level), *index[root.axis + 1 :])


def _is_reverse(root: ScanRoot) -> bool:
    return bool(root.op.reverse.value.data)


def _within_vector(ctx: Context, root: ScanRoot, lanes: int, elements: list[Fragment]) -> list[Fragment]:
    """The scan of the lanes alone."""
    emitter, level, distance = ctx.emitter, ctx.emitter.depth, 1
    b = emitter.innermost()
    values = [as_vector(emitter, fragment, lanes) for fragment in elements]
    while distance < lanes:
        sources = [lane + distance if _is_reverse(root) else lane - distance for lane in range(lanes)]
        takes = [0 <= source < lanes for source in sources]
        shifted = [
            b.shufflevector(v, None, [s if t else 0 for s, t in zip(sources, takes, strict=True)]) for v in values
        ]
        combined = _combined(ctx, root, [of_value(v, level) for v in shifted], [of_value(v, level) for v in values])
        mask = vector_const("i1", takes)
        values = [
            b.select(mask, as_vector(emitter, new, lanes), old) for new, old in zip(combined, values, strict=True)
        ]
        distance *= 2
    return [of_value(value, level) for value in values]


def _last_lane(ctx: Context, root: ScanRoot, lanes: int, elements: list[Fragment]) -> list[Fragment]:
    """The combination of all lanes, in each lane."""
    b, last = ctx.emitter.innermost(), 0 if _is_reverse(root) else lanes - 1
    values = [as_vector(ctx.emitter, fragment, lanes) for fragment in elements]
    return [of_value(b.shufflevector(value, None, [last] * lanes), ctx.emitter.depth) for value in values]


def _combine(
    ctx: Context, root: ScanRoot, lanes: int, before: list[Fragment], elements: list[Fragment], index
) -> list[Fragment]:
    if root.body is not None:
        return _combine_scalars(ctx, root, before, elements, index)
    combined = _combined(ctx, root, before, elements)
    level = ctx.emitter.depth
    is_first = of_value(ctx.emitter.at(level).icmp("eq", index, const("i32", 0)), level)
    return [
        lanewise(ctx.emitter, Builder.select, is_first, first, other)
        for first, other in zip(elements, combined, strict=True)
    ]


def _combined(ctx: Context, root: ScanRoot, before: list[Fragment], elements: list[Fragment]) -> list[Fragment]:
    return guarded(root.op, combine, ctx, root.op.combine.block, before, elements)


def _combine_scalars(
    ctx: Context, root: ScanRoot, before: list[Fragment], elements: list[Fragment], index
) -> list[Fragment]:
    is_first = ctx.emitter.innermost().icmp("eq", index, const("i32", 0))
    groups = [[fragment.value for fragment in group] for group in (before, elements)]
    combined = guarded(root.op, combine_scalars, ctx, root.body, root.op.combine.block, is_first, *groups)
    return [of_value(value, ctx.emitter.depth) for value in combined]
