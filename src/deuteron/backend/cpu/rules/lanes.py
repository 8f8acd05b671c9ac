"""What is done element by element or along an axis, in a nest of its own: scans, atomics, gathers, prints ..."""

from __future__ import annotations

from collections.abc import Callable

from deuteron.backend.cpu.context import AxisIndex, Context
from deuteron.backend.cpu.loops import NestLoops
from deuteron.backend.cpu.memory.places import write_place
from deuteron.backend.cpu.plan.items import Nest
from deuteron.backend.cpu.plan.roots import (
    GatherRoot,
    HistogramRoot,
    LaneRoot,
    MapRoot,
    PrintRoot,
    ScanRoot,
    UnsplatRoot,
)
from deuteron.backend.cpu.plan.vectors.axes import ELEMENTS, Vectorisation, choose_axis_of_neighbours
from deuteron.backend.cpu.rules.atomic import LANE_RULES as ATOMIC_RULES
from deuteron.backend.cpu.rules.atomic import fetch_updated
from deuteron.backend.cpu.rules.debug import LANE_RULES as DEBUG_RULES
from deuteron.backend.cpu.rules.debug import print_element
from deuteron.backend.cpu.rules.indexing import clear_bins, count_element, gather_element
from deuteron.backend.cpu.rules.map_elementwise import emit_map
from deuteron.backend.cpu.rules.scan import emit_scan
from deuteron.backend.rule_errors import guarded, unsupported
from deuteron.ir.tt.atomic import AtomicRMWOp

_RULES = {**ATOMIC_RULES, **DEBUG_RULES}


def emit_lanes(ctx: Context, nest: Nest) -> None:
    """Emit a nest of a root that does not share its loops."""
    root = nest.roots[0]
    if isinstance(root, ScanRoot):
        emit_scan(ctx, nest, root)
        return
    emit = _EMIT.get(type(root), _emit_lane)
    if emit is _emit_lane and root.op.name not in _RULES:
        raise unsupported(root.op, "CPU")
    if isinstance(root, HistogramRoot):
        clear_bins(ctx, root.op)
    vectorisation = _vectorisation(ctx, root)
    if vectorisation is not ELEMENTS:
        _emit_loops(ctx, nest, vectorisation, _emit_fetch)
    _emit_loops(ctx, nest, vectorisation, emit)


def _emit_loops(ctx: Context, nest: Nest, vectorisation: Vectorisation, emit: Callable) -> None:
    root = nest.roots[0]
    loops = NestLoops(ctx, nest, vectorisation)
    ctx.nest_state.vectorisation = vectorisation
    for axis in range(len(nest.shape)):
        loops.open(axis)
    ctx.locate(root.op)
    guarded(root.op, emit, ctx, root, loops.indices[0])
    for _ in nest.shape:
        loops.close()
    ctx.leave_nest()


def _vectorisation(ctx: Context, root: LaneRoot) -> Vectorisation:
    """Several elements at a time are only updates of neighbours: the processor does a window of them at once."""
    if not isinstance(root.op, AtomicRMWOp) or not ctx.target.exchanges_wide:
        return ELEMENTS
    return choose_axis_of_neighbours(ctx.plan, root, ctx.target.vector_bits // 8)


def _emit_fetch(ctx: Context, root: LaneRoot, index: AxisIndex) -> None:
    op = root.op
    pointer, mask = (
        value and ctx.evaluate(value, index if value in root.sources else ()) for value in (op.ptr, op.mask)
    )
    fetch_updated(ctx, op, pointer, mask)


def _emit_lane(ctx: Context, root: LaneRoot, index: AxisIndex) -> None:
    op = root.op
    fragments = [ctx.evaluate(operand, index if operand in root.sources else ()) for operand in op.operands]
    result = _RULES[op.name](ctx, op, index, *fragments)
    if result is not None:
        write_place(ctx, ctx.plan.places[op.results[0]], index, result)


def _emit_unsplat(ctx: Context, root: UnsplatRoot, index: AxisIndex) -> None:
    ctx.bind(root.op.result, ctx.evaluate(root.op.src, index).value)


def _emit_print(ctx: Context, root: PrintRoot, index: AxisIndex) -> None:
    print_element(ctx, root.op, index, ctx.evaluate(root.sources[0], index), root.number)


def _emit_gather(ctx: Context, root: GatherRoot, index: AxisIndex) -> None:
    gather_element(ctx, root.op, index)


def _emit_count(ctx: Context, root: HistogramRoot, index: AxisIndex) -> None:
    count_element(ctx, root.op, index)


_EMIT = {
    UnsplatRoot: _emit_unsplat,
    PrintRoot: _emit_print,
    GatherRoot: _emit_gather,
    HistogramRoot: _emit_count,
    MapRoot: emit_map,
}
