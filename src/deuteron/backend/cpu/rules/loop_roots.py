"""Loops that run at each index of a nest (`plan/tiles/carry_in_registers.py`): their tiles are carried in registers.

for j in 0..64 step 64:
    acc = phi [0, 0, 0, 0]                          four vectors
    for k in range(n):
        acc = acc * x[j..] + c[k]
    y[j..] = acc
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from deuteron.backend.cpu.algebra import as_vector, of_value
from deuteron.backend.cpu.context import AxisIndex, Context
from deuteron.backend.cpu.countdown import close_strips, open_strips
from deuteron.backend.cpu.plan.programs.work import looks_itself
from deuteron.backend.cpu.plan.roots import LoopRoot
from deuteron.backend.cpu.rules.carried import advanced, advancing, bind_carried, scalars, total_type
from deuteron.backend.cpu.rules.scalar import SCALAR_RULES
from deuteron.backend.cpu.rules.stopping import leave
from deuteron.backend.llvm.types import Value, const
from deuteron.backend.rule_errors import guarded


def emit_loop_root(ctx: Context, root: LoopRoot, indices: Sequence[AxisIndex]) -> None:
    """Emit a loop at several indices together, and remember its results there."""
    op, block = root.op, root.op.body.block
    ctx.locate(op)
    tiles = advancing(ctx, block.args[1:])
    lanes = max((entry.lanes for entry in indices[0] if entry is not None), default=1)  # none where all is one element
    taken = [(number, index) for number in root.numbers for index in indices]

    def elements(values: Sequence[SSAValue]) -> list[Value]:
        return [as_vector(ctx.emitter, ctx.evaluate(values[number], index), lanes) for number, index in taken]

    starts = [ctx.scalar(value) for value in scalars(op.iter_args)]
    starts += [const(total_type(argument), 0) for argument in tiles]
    num_others = len(starts)
    bounds = [ctx.scalar(value) for value in (op.lb, op.ub, op.step)]
    starts += elements(op.iter_args)
    known, known_scalars, totals = ctx.nest_state.tiles, ctx.scalars, ctx.totals
    ctx.nest_state.tiles, ctx.scalars, ctx.totals = dict(known), dict(known_scalars), dict(totals)
    in_strips = ctx.stops.countdown is not None and looks_itself(root)
    hint = block.args[0].name_hint or "i"
    if in_strips:
        loop = open_strips(ctx.emitter, ctx.stops.countdown, bounds, _work(root, len(indices) * lanes), starts, hint)
        carried = loop.inner.carried
    else:
        loop = ctx.emitter.open_loop(*bounds, starts, hint)
        carried = loop.carried
    ctx.bind_block(block)
    bind_carried(ctx, block.args, tiles, [loop.index, *carried[:num_others]])
    _remember(ctx, [block.args[number + 1] for number in root.numbers], indices, carried[num_others:])
    for load in root.loads:
        guarded(load, SCALAR_RULES[load.name], ctx, load)
    following = elements(block.last_op.operands)
    others = [ctx.scalar(value) for value in scalars(block.last_op.operands)]
    others += [advanced(ctx, argument) for argument in tiles]
    ctx.locate(op)
    if in_strips:
        results = close_strips(ctx.emitter, ctx.stops.countdown, loop, [*others, *following], leave)
    else:
        results = ctx.emitter.close_loop(loop, [*others, *following])
    ctx.nest_state.tiles, ctx.scalars, ctx.totals = known, known_scalars, totals
    _remember(ctx, root.produced(), indices, results[num_others:])


def _remember(ctx: Context, tiles: Sequence[SSAValue], indices: Sequence[AxisIndex], values: Sequence[Value]) -> None:
    taken = [(tile, index) for tile in tiles for index in indices]
    for place, value in zip(taken, values, strict=True):
        ctx.nest_state.tiles[place] = of_value(value, ctx.emitter.depth)


def _work(root: LoopRoot, elements: int) -> int:
    """Of an iteration, for so many elements."""
    return elements + len(root.op.body.block.ops)
