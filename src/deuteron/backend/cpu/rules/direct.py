"""Whether a product may read A where the arguments have it, which is known before its loop (`plan/direct.py`).

    is_direct = rows are equally far apart, and for all k the mask is full
    for k in ...:
        unless is_direct: copy A
        acc += (is_direct ? A in memory : the copy) @ B

The loop over k that asks takes a few instructions for each iteration.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from deuteron.backend.cpu.algebra import as_vector
from deuteron.backend.cpu.context import Context
from deuteron.backend.cpu.fragment import Axis, one_element
from deuteron.backend.cpu.parts import elements_before, first_element
from deuteron.backend.cpu.plan.items import Direct, Dot, For
from deuteron.backend.cpu.plan.mask_limits import Limit
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const, vector, vector_const
from deuteron.ir.types import shape_of

_LANES = 16  # rows that are looked at together


def begin_direct(ctx: Context, item: For, bounds: Sequence[Value], bind_first: Callable[[], None]) -> None:
    """Before a loop, find out which of its products read directly; `bind_first` binds its first iteration's values."""
    for dot in item.body.items:
        if isinstance(dot, Dot) and dot.direct is not None and not dot.direct.is_sure:
            ctx.read_directly[dot] = _is_direct(ctx, item, dot.direct, bounds, bind_first)


def unless_direct(ctx: Context, item: Dot, emit: Callable[[], None]) -> None:
    """Emit what copies A; it runs unless the product reads it directly."""
    emitter = ctx.emitter
    b = emitter.innermost()
    copy, end = b.block("copy"), b.block("copied")
    emitter.enter(copy)
    emit()
    emitter.innermost().br(end)
    emitter.leave()
    b = emitter.innermost()
    b.cond_br(ctx.read_directly[item], end, copy)
    b.position(end)


def _is_direct(
    ctx: Context, item: For, direct: Direct, bounds: Sequence[Value], bind_first: Callable[[], None]
) -> Value:
    scalars, totals = dict(ctx.scalars), dict(ctx.totals)
    found = const("i1", 1)
    if direct.checks_rows:
        ctx.bind_block(item.op.body.block)
        bind_first()
        found = _are_equally_far_apart(ctx, direct)
        ctx.scalars, ctx.totals = dict(scalars), dict(totals)
    if direct.mask is not None:
        found = _is_full_always(ctx, item, direct, bounds, found)
        ctx.scalars, ctx.totals = scalars, totals
    return found


def _are_equally_far_apart(ctx: Context, direct: Direct) -> Value:
    """Whether each row is where it would be if all were as far apart as the first two."""
    ctx.tiles.clear()
    ptr, emitter = direct.load.ptr, ctx.emitter
    m = shape_of(ptr.type)[0]
    lanes = min(m, _LANES)
    first, second = (_address(ctx, direct, one_element(row), 1) for row in range(2))
    distance = emitter.innermost().sub(second, first)
    loop = emitter.open_loop(const("i32", 0), const("i32", m), const("i32", lanes), [const("i1", 1)], "row")
    rows = _address(ctx, direct, Axis(loop.index, lanes, emitter.depth), lanes)
    b = emitter.innermost()
    numbers = b.add(b.splat(b.zext(loop.index, "i64"), lanes), vector_const("i64", range(lanes)))
    expected = b.add(b.splat(first, lanes), b.mul(numbers, b.splat(distance, lanes)))
    (found,) = emitter.close_loop(loop, [b.and_(_all(b, b.icmp("eq", rows, expected)), loop.carried[0])])
    ctx.tiles.clear()
    return found


def _address(ctx: Context, direct: Direct, rows: Axis, lanes: int) -> Value:
    fragment = ctx.evaluate(direct.load.ptr, (rows, one_element(0)))
    addresses = as_vector(ctx.emitter, fragment, lanes)
    return ctx.emitter.innermost().ptrtoint(addresses, vector("i64", lanes))


def _all(b: Builder, mask: Value) -> Value:
    return b.intrinsic("llvm.vector.reduce.and", "i1", mask, overloads=[mask.type])


def _is_full_always(ctx: Context, item: For, direct: Direct, bounds: Sequence[Value], found: Value) -> Value:
    """Whether a mask is full in all iterations, if `found`."""
    emitter, block = ctx.emitter, item.op.body.block
    ctx.tiles.clear()
    loop = emitter.open_loop(*bounds, [found], "mask")
    ctx.bind_block(block)
    ctx.bind(block.args[0], loop.index)
    extents, mask = shape_of(direct.load.ptr.type), direct.mask
    conditions = [_is_at_end(ctx, limit, extents[axis]) for limit, axis in mask.limits]
    conditions += [ctx.evaluate(op.results[0], first_element(index)).value for op, index in mask.fixed]
    (found,) = emitter.close_loop(loop, [functools.reduce(emitter.innermost().and_, conditions, loop.carried[0])])
    ctx.tiles.clear()
    return found


def _is_at_end(ctx: Context, limit: Limit, extent: int) -> Value:
    """Whether all elements are before a limit, or none is, where the mask is on behind it."""
    before, known = elements_before(ctx, limit, first_element(limit.index), extent)
    b = ctx.emitter.innermost()
    if limit.is_below:
        return b.icmp("eq", before, const("i32", extent))
    return b.icmp("eq", b.or_(before, known), const("i32", 0))
