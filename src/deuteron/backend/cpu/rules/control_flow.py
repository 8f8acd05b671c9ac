"""The items of a region in order, and scf.for, scf.if, scf.while: scalars are carried in phis, tiles in their homes.

for k in range(n):              i = phi [0], [i + 1]; total = phi [0], [total + step]       the scalars, and of the
    acc += tl.load(ptrs)        acc is in its home in the scratch memory                    pointers how far they are
    ptrs += step
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import Block as IRBlock
from xdsl.ir import Region as IRRegion

from deuteron.backend.cpu.context import Context, LoopStep
from deuteron.backend.cpu.countdown import Strips, close_strips, count_iteration, open_strips
from deuteron.backend.cpu.emitter import OpenLoop
from deuteron.backend.cpu.loops import emit_nest
from deuteron.backend.cpu.plan.items import Dot, For, If, Nest, Scalar, Transpose, While
from deuteron.backend.cpu.plan.products.reuse import Reuse, reuse_of
from deuteron.backend.cpu.plan.programs.work import looks_itself, work_of_check, work_of_step
from deuteron.backend.cpu.plan.region import Region
from deuteron.backend.cpu.rules.awaited import ask_for_stores
from deuteron.backend.cpu.rules.carried import advanced, advancing, bind_carried, scalars, total_type
from deuteron.backend.cpu.rules.direct import begin_direct, begin_direct_step, rows_across_lines, unless_direct
from deuteron.backend.cpu.rules.few_rows import begin_few_rows, begin_few_rows_step, keep_whole, unless_computed
from deuteron.backend.cpu.rules.lanes import emit_lanes
from deuteron.backend.cpu.rules.matrix import emit_dot, emit_transposition
from deuteron.backend.cpu.rules.reused import Kept, begin_reuse, begin_step, unless_packed
from deuteron.backend.cpu.rules.scalar import SCALAR_RULES
from deuteron.backend.cpu.rules.single_rows import if_single
from deuteron.backend.cpu.rules.stopping import leave, stop_if_told
from deuteron.backend.llvm.control_flow import Block
from deuteron.backend.llvm.counter import has_iterations
from deuteron.backend.llvm.types import Value, const
from deuteron.backend.rule_errors import guarded, unsupported


def emit_region(ctx: Context, region: Region, block: IRBlock) -> None:
    """Emit the items of a block at the innermost level."""
    ctx.bind_block(block)
    for item in region.items:
        ctx.nest_state.level = ctx.emitter.depth
        ctx.locate(item.roots[0].op if isinstance(item, Nest) else item.op)
        _EMIT[type(item)](ctx, item)


def _emit_nest(ctx: Context, nest: Nest) -> None:
    if nest.unless_computed is not None:
        unless_computed(ctx, nest.unless_computed, lambda: _emit_needed_nest(ctx, nest))
    else:
        _emit_needed_nest(ctx, nest)


def _emit_needed_nest(ctx: Context, nest: Nest) -> None:
    if nest.is_exclusive:
        emit_lanes(ctx, nest)
    elif nest.unless_runs is not None:
        ctx.emitter.unless(_runs(ctx, nest.unless_runs), lambda: emit_nest(ctx, nest), "clear")
    elif nest.copies_for is not None:
        unless_direct(ctx, nest.copies_for, lambda: _emit_unless_packed(ctx, nest))
    else:
        _emit_unless_packed(ctx, nest)


def _emit_dot(ctx: Context, item: Dot) -> None:
    if item.few_rows is not None or item.row_nest is not None:
        unless_computed(ctx, item, lambda: emit_dot(ctx, item))
    else:
        emit_dot(ctx, item)
    if item.row_nest is not None:
        if_single(ctx, item, lambda: emit_nest(ctx, item.row_nest))


def _emit_unless_packed(ctx: Context, nest: Nest) -> None:
    reuse = reuse_of(nest)
    if reuse is not None:
        unless_packed(ctx, reuse, lambda: emit_nest(ctx, nest))
    else:
        emit_nest(ctx, nest)


def _runs(ctx: Context, loop: For) -> Value:
    bounds = [ctx.scalar(value) for value in (loop.op.lb, loop.op.ub, loop.op.step)]
    return has_iterations(ctx.emitter.innermost(), *bounds)


def _emit_scalar(ctx: Context, item: Scalar) -> None:
    rule = SCALAR_RULES.get(item.op.name)
    if rule is None:
        raise unsupported(item.op, "CPU")
    guarded(item.op, rule, ctx, item.op)


def _emit_for(ctx: Context, item: For) -> None:
    """Scalars are carried, and what inductions have advanced by; the numbers of iteration and step where they count."""
    op, block, outer_step = item.op, item.op.body.block, ctx.step
    tiles = advancing(ctx, block.args[1:])
    bounds = [ctx.scalar(value) for value in (op.lb, op.ub, op.step)]
    starts = [ctx.scalar(value) for value in scalars(op.iter_args)]
    starts += [const(total_type(argument), 0) for argument in tiles]
    known = _find_out(ctx, item, bounds, lambda: bind_carried(ctx, block.args, tiles, [bounds[0], *starts]))
    zeros = [const("i64", 0)] * (known.is_by_iteration + (item.steps > 1))
    strips = _open_strips(ctx, item, bounds, [*starts, *zeros])
    loop = strips.inner if strips else ctx.emitter.open_loop(*bounds, [*starts, *zeros], hint=_name(item))
    carried, counts = loop.carried[: len(starts)], loop.carried[len(starts) :]
    ctx.step = _step(ctx, strips or loop, counts[-1], item.steps) if item.steps > 1 else None
    if known.begins_sums:
        is_first = ctx.emitter.innermost().icmp("ult", counts[0], const("i64", item.steps))
        ctx.step = replace(ctx.step, is_first=is_first)
    ctx.bind_block(block)
    bind_carried(ctx, block.args, tiles, [(strips or loop).index, *carried])
    if known.is_by_iteration:
        known.begin_iteration(ctx, counts[0])
    if ctx.stops.asserts and _takes_long(item.body):
        stop_if_told(ctx)
    emit_region(ctx, item.body, block)
    ctx.locate(op)
    following = [ctx.scalar(value) for value in scalars(block.last_op.operands)]
    following += [advanced(ctx, argument) for argument in tiles]
    following += [ctx.emitter.innermost().add(counts[0], const("i64", 1))] if known.is_by_iteration else []
    following += [_next_step(ctx, ctx.step)] if item.steps > 1 else []
    if strips:
        results = close_strips(ctx.emitter, ctx.stops.countdown, strips, following, leave)
    else:
        results = ctx.emitter.close_loop(loop, following)
    ctx.step = outer_step
    bind_carried(ctx, op.results, [op.results[argument.index - 1] for argument in tiles], results[: len(starts)])


@dataclass(frozen=True)
class _Known:
    """What is found out before a loop of its iterations, by their numbers: where operands are `kept`, in how many A is
    read directly, or the product is `computed` already, what is `awaited`, and whether the first one begins sums.
    """

    kept: dict[Reuse, Kept]
    directs: dict[Dot, Value]
    computed: dict[Dot, Value]
    awaited: Sequence[Dot]
    begins_sums: bool

    @property
    def is_by_iteration(self) -> bool:
        return bool(self.kept or self.directs or self.computed or self.awaited or self.begins_sums)

    def begin_iteration(self, ctx: Context, number: Value) -> None:
        for reuse, of_loop in self.kept.items():
            begin_step(ctx, reuse, number, of_loop)
        for dot in self.awaited:
            ask_for_stores(ctx, dot, number)
        begin_direct_step(ctx, self.directs, number)
        begin_few_rows_step(ctx, self.computed, number)


def _find_out(ctx: Context, item: For, bounds: Sequence[Value], bind_first: Callable[[], None]) -> _Known:
    """`bind_first` binds the values of the first iteration."""
    reuses = [reuse for inner in item.body.items if isinstance(inner, Nest) and (reuse := reuse_of(inner))]
    across = rows_across_lines(ctx, item, bind_first)
    kept = {reuse: begin_reuse(ctx, reuse, bounds, across.get(reuse)) for reuse in reuses}
    directs = begin_direct(ctx, item, bounds, bind_first)
    computed = begin_few_rows(ctx, item, bounds, bind_first)
    dots = [inner for inner in item.body.items if isinstance(inner, Dot)]
    awaited, begins_sums = [dot for dot in dots if dot.awaited], any(dot.begins_sums for dot in dots)
    return _Known(keep_whole(ctx, computed, kept), directs, computed, awaited, begins_sums)


def _open_strips(ctx: Context, item: For, bounds: Sequence[Value], starts: Sequence[Value]) -> Strips | None:
    """Begin a loop that looks whether the launch is to end, if it is one."""
    if ctx.stops.countdown is None or not looks_itself(item):
        return None
    return open_strips(ctx.emitter, ctx.stops.countdown, bounds, work_of_step(item), starts, _name(item))


def _name(item: For) -> str:
    return item.op.body.block.args[0].name_hint or "i"


def _step(ctx: Context, loop: OpenLoop | Strips, number: Value, steps: int) -> LoopStep:
    """Which step this iteration is of those whose operands are kept. They go on from strip to strip: what a program
    packs is found by others whose strips end elsewhere.
    """
    b = ctx.emitter.innermost()
    goes_on = loop.counter.runs(b, loop.counter.following(b, loop.counters))
    is_full = b.icmp("eq", number, const("i64", steps - 1))
    return LoopStep(number, b.or_(is_full, b.xor(goes_on, const("i1", True))), ctx.emitter.depth)


def _next_step(ctx: Context, step: LoopStep) -> Value:
    b = ctx.emitter.innermost()
    return b.select(step.is_last, const("i64", 0), b.add(step.number, const("i64", 1)))


def _takes_long(region: Region) -> bool:
    """Whether there is more to do than ops on scalars, beside which it would count to ask whether to stop."""
    return any(not isinstance(item, Scalar) for item in region.items)


def _emit_if(ctx: Context, item: If) -> None:
    """Values of the outer block that a branch is the first to need are computed before the branch."""
    op, emitter = item.op, ctx.emitter
    condition = ctx.scalar(op.cond)
    b = emitter.innermost()
    entries, end = (b.block("then"), b.block("else")), b.block("end")
    ways = [
        _emit_branch(ctx, branch, region, entry, end)
        for branch, region, entry in zip(item.branches, op.regions, entries, strict=True)
    ]
    b = emitter.innermost()
    b.cond_br(condition, *entries)
    b.position(end)
    for number, result in enumerate(scalars(op.results)):
        incoming = [(values[number], last) for last, values in ways]
        ctx.bind(result, b.phi(incoming[0][0].type, incoming))


def _emit_branch(ctx: Context, branch: Region, region: IRRegion, entry: Block, end: Block) -> tuple[Block, list[Value]]:
    """The last block of a branch, and the scalars that it yields."""
    ctx.emitter.enter(entry)
    values: list[Value] = []
    if region.blocks:
        emit_region(ctx, branch, region.block)
        values = [ctx.scalar(value) for value in scalars(region.block.last_op.operands)]
    ctx.emitter.innermost().br(end)
    return ctx.emitter.leave(), values


def _emit_while(ctx: Context, item: While) -> None:
    """The block of the condition is the loop's header; what it passes on is known after the loop as well."""
    op, emitter = item.op, ctx.emitter
    before, after = op.before_region.block, op.after_region.block
    starts = [ctx.scalar(value) for value in scalars(op.arguments)]
    b = emitter.innermost()
    header, body, end = b.block("while"), b.block("do"), b.block("end")
    emitter.enter(header)
    phis = [emitter.innermost().phi(start.type) for start in starts]
    if op in ctx.stops.waiting or (ctx.stops.asserts and (_takes_long(item.before) or _takes_long(item.after))):
        stop_if_told(ctx)
    if ctx.stops.countdown is not None:
        count_iteration(emitter, ctx.stops.countdown, work_of_check(item), leave)
    ctx.bind_block(before)
    for argument, phi in zip(scalars(before.args), phis, strict=True):
        ctx.bind(argument, phi)
    emit_region(ctx, item.before, before)
    condition, *passed = [ctx.scalar(value) for value in scalars(before.last_op.operands)]
    emitter.innermost().cond_br(condition, body, end)
    following = _emit_while_body(ctx, item, after, body, passed)
    emitter.innermost().br(header)
    last = emitter.leave()
    b = emitter.innermost()
    outer = b.current_block
    b.br(header)
    b.position(end)
    for phi, start, value in zip(phis, starts, following, strict=True):
        b.add_incoming(phi, start, outer)
        b.add_incoming(phi, value, last)
    for result, value in zip(scalars(op.results), passed, strict=True):
        ctx.bind(result, value)


def _emit_while_body(ctx: Context, item: While, block: IRBlock, entry: Block, passed: list[Value]) -> list[Value]:
    ctx.emitter.innermost().position(entry)
    ctx.bind_block(block)
    for argument, value in zip(scalars(block.args), passed, strict=True):
        ctx.bind(argument, value)
    emit_region(ctx, item.after, block)
    return [ctx.scalar(value) for value in scalars(block.last_op.operands)]


_EMIT = {
    Nest: _emit_nest,
    Scalar: _emit_scalar,
    Dot: _emit_dot,
    Transpose: emit_transposition,
    For: _emit_for,
    If: _emit_if,
    While: _emit_while,
}
