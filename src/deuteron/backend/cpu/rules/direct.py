"""Up to which iteration a product may read A where the arguments have it, which is known before its loop
(`plan/products/direct.py`).

    limit = if rows are equally far apart: iterations until the mask is not full
    for k in ...:
        is_direct = number of this iteration < limit
        unless is_direct: copy A
        acc += (is_direct ? A in memory : the copy) @ B

The loop over k that asks takes a few instructions for each iteration. Of the steps that are computed together all are
read directly, or none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from deuteron.backend.cpu.context import Context
from deuteron.backend.cpu.fragment import one_element
from deuteron.backend.cpu.memory.distances import are_equally_far_apart
from deuteron.backend.cpu.parts import first_element, is_at_end
from deuteron.backend.cpu.plan.items import Direct, Dot, For
from deuteron.backend.cpu.plan.slots import Reuse
from deuteron.backend.cpu.rules.carried import advanced, advancing, bind_carried, scalars, total_type
from deuteron.backend.llvm.types import Value, const
from deuteron.ir.types import shape_of

_LINE = 64


def begin_direct(ctx: Context, item: For, bounds: Sequence[Value], bind_first: Callable[[], None]) -> dict[Dot, Value]:
    """Before a loop, find out in how many of its iterations, from the first on, each product that has to ask reads
    directly; `bind_first` binds its first iteration's values.
    """
    asking = [dot for dot in item.body.items if isinstance(dot, Dot) and dot.direct and dot.copies_a]
    return {dot: _num_direct(ctx, item, dot.direct, bounds, bind_first) for dot in asking}


def rows_across_lines(ctx: Context, item: For, bind_first: Callable[[], None]) -> dict[Reuse, Value]:
    """Of each product that can read A directly and find copies of it, whether rows of A begin within lines: tiles take
    twice as long to read those.
    """
    dots = [dot for dot in item.body.items if isinstance(dot, Dot) and dot.direct and dot.a.slot.reuse]
    return {dot.a.slot.reuse: _is_across_lines(ctx, item, dot.direct, bind_first) for dot in dots}


def _is_across_lines(ctx: Context, item: For, direct: Direct, bind_first: Callable[[], None]) -> Value:
    with ctx.evaluating_apart():
        ctx.bind_block(item.op.body.block)
        bind_first()
        rows = [ctx.evaluate(direct.load.ptr, (one_element(row), one_element(0))).value for row in range(2)]
    b = ctx.emitter.innermost()
    first, second = (b.ptrtoint(row) for row in rows)
    within = b.and_(b.or_(first, b.sub(second, first)), const("i64", _LINE - 1))
    return b.icmp("ne", within, const("i64", 0))


def begin_direct_step(ctx: Context, limits: dict[Dot, Value], number: Value) -> None:
    """Say of each product whether it reads directly in the iteration of this number."""
    b = ctx.emitter.innermost()
    for dot, limit in limits.items():
        is_direct = b.icmp("ult", number, limit)
        if (reuse := dot.a.slot.reuse) is not None:
            is_direct = b.and_(is_direct, b.xor(ctx.products.reused_steps[reuse].is_kept(b), const("i1", 1)))
        ctx.products.read_directly[dot] = is_direct


def unless_direct(ctx: Context, item: Dot, emit: Callable[[], None]) -> None:
    """Emit what copies A; it runs unless the product reads it directly."""
    ctx.emitter.unless(ctx.products.read_directly[item], emit, "copy")


def _num_direct(
    ctx: Context, item: For, direct: Direct, bounds: Sequence[Value], bind_first: Callable[[], None]
) -> Value:
    known, totals = dict(ctx.scalars), dict(ctx.totals)
    found = const("i1", 1)
    if direct.checks_rows:
        ctx.bind_block(item.op.body.block)
        bind_first()
        ptr = direct.load.ptr
        found = are_equally_far_apart(ctx, ptr, lambda row: (row, one_element(0)), shape_of(ptr.type)[0])
        ctx.scalars, ctx.totals = dict(known), dict(totals)
    if direct.mask is None:
        return ctx.emitter.innermost().select(found, const("i64", -1), const("i64", 0))
    limit = _num_full(ctx, item, direct, bounds, found)
    ctx.scalars, ctx.totals = known, totals
    return limit


def _num_full(ctx: Context, item: For, direct: Direct, bounds: Sequence[Value], found: Value) -> Value:
    """In how many iterations, if `found`, a mask is full before one where it is not, of whole groups of steps; beyond
    all numbers if it always is.
    """
    emitter, block, operands = ctx.emitter, item.op.body.block, item.op.body.block.last_op.operands
    tiles = advancing(ctx, direct.carried)
    numbers = [value.index - 1 for value in scalars(direct.carried)]
    starts = [ctx.scalar(item.op.iter_args[number]) for number in numbers]
    starts += [const(total_type(tile), 0) for tile in tiles]
    loop = emitter.open_loop(*bounds, [const("i64", 0), found, *starts], "mask")
    count, goes_on, *carried = loop.carried
    with ctx.evaluating_afresh():
        ctx.bind_block(block)
        ctx.bind(block.args[0], loop.index)
        bind_carried(ctx, direct.carried, tiles, carried)
        is_full = functools.reduce(emitter.innermost().and_, _conditions(ctx, direct), goes_on)
        following = [ctx.scalar(operands[number]) for number in numbers] + [advanced(ctx, tile) for tile in tiles]
    b = emitter.innermost()
    count, goes_on, *_ = emitter.close_loop(loop, [b.add(count, b.zext(is_full, "i64")), is_full, *following])
    b = emitter.innermost()
    return b.select(goes_on, const("i64", -1), b.sub(count, b.urem(count, const("i64", item.steps))))


def _conditions(ctx: Context, direct: Direct) -> list[Value]:
    """What holds of an iteration whose mask is full."""
    extents, mask = shape_of(direct.load.ptr.type), direct.mask
    conditions = [is_at_end(ctx, limit, extents[axis]) for limit, axis in mask.limits]
    return conditions + [ctx.evaluate(op.results[0], first_element(index)).value for op, index in mask.fixed]
