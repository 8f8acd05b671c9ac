"""What is done element by element or along an axis, in a nest of its own: scans, atomics, prints, asserts, unsplat."""

from __future__ import annotations

from deuteron.backend.cpu.context import Context, guarded
from deuteron.backend.cpu.fragment import Axis
from deuteron.backend.cpu.loops import NestLoops
from deuteron.backend.cpu.places import write_place
from deuteron.backend.cpu.plan.items import LaneRoot, Nest, PrintRoot, ScanRoot, UnsplatRoot
from deuteron.backend.cpu.rules.atomic import LANE_RULES as ATOMIC_RULES
from deuteron.backend.cpu.rules.debug import LANE_RULES as DEBUG_RULES
from deuteron.backend.cpu.rules.debug import print_element
from deuteron.backend.cpu.rules.scan import emit_scan
from deuteron.backend.cpu.unsupported import unsupported

_RULES = {**ATOMIC_RULES, **DEBUG_RULES}


def emit_lanes(ctx: Context, nest: Nest) -> None:
    """Emit a nest of a root that does not share its loops."""
    root = nest.roots[0]
    if isinstance(root, ScanRoot):
        emit_scan(ctx, nest, root)
        return
    if not isinstance(root, UnsplatRoot | PrintRoot) and root.op.name not in _RULES:
        raise unsupported(root.op)
    loops = NestLoops(ctx, nest)
    for axis in range(len(nest.shape)):
        loops.open(axis)
    _emit_lane(ctx, root, loops.indices[0])
    for _ in nest.shape:
        loops.close()
    ctx.tiles.clear()


def _emit_lane(ctx: Context, root: LaneRoot, index: tuple[Axis | None, ...]) -> None:
    op = root.op
    if isinstance(root, UnsplatRoot):
        ctx.bind(op.result, ctx.evaluate(op.src, index).value)
        return
    ctx.locate(op)
    if isinstance(root, PrintRoot):
        guarded(op, print_element, ctx, op, index, ctx.evaluate(root.sources[0], index), root.number)
        return
    fragments = [ctx.evaluate(operand, index if operand in root.sources else ()) for operand in op.operands]
    result = guarded(op, _RULES[op.name], ctx, op, index, *fragments)
    if result is not None:
        write_place(ctx, ctx.plan.places[op.results[0]], index, result)
