"""Computes products of which few rows are needed before their loop, from memory (`plan/products/few_rows.py`).

    rows = rows that are needed
    count = if rows are few: iterations whose masks are full along k, or the last, and whose operands go on where those
            before end
    C[:rows] += A @ B, as deep as those are
    for k in ...:
        unless number of this iteration < count: load A, pack B, C += A @ B

Where the first iterations are all that there are, the loop only counts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import i8

from deuteron.backend.cpu.context import Context
from deuteron.backend.cpu.fragment import Axis, one_element
from deuteron.backend.cpu.memory.distances import are_equally_far_apart
from deuteron.backend.cpu.memory.elements import memory_type
from deuteron.backend.cpu.memory.formats import from_memory
from deuteron.backend.cpu.memory.places import address
from deuteron.backend.cpu.parts import elements_before, first_element, is_at_end
from deuteron.backend.cpu.plan.items import Dot, For, Operand
from deuteron.backend.cpu.plan.slots import Reuse
from deuteron.backend.cpu.plan.vectors.mask_limits import Limit
from deuteron.backend.cpu.products.products import BF16_PAIRS, BYTE_QUADS
from deuteron.backend.cpu.products.row_products import Elements, Most, RowProducts, Size, Strided
from deuteron.backend.cpu.rules.carried import advanced, advancing, bind_carried, scalars, total_type
from deuteron.backend.cpu.rules.matrix import elements_needed
from deuteron.backend.cpu.rules.reused import Kept, not_kept
from deuteron.backend.cpu.rules.single_rows import count_single_rows
from deuteron.backend.llvm.types import Value, byte_width, const
from deuteron.ir.types import element_type_of, shape_of


def begin_few_rows(
    ctx: Context, item: For, bounds: Sequence[Value], bind_first: Callable[[], None]
) -> dict[Dot, Value]:
    """Before a loop compute what can be; in how many iterations, from the first on, each product is."""
    dots = [dot for dot in item.body.items if isinstance(dot, Dot)]
    computed = {dot: _compute(ctx, item, dot, bounds, bind_first) for dot in dots if dot.few_rows}
    return computed | {dot: count_single_rows(ctx, dot) for dot in dots if dot.row_nest}


def keep_whole(ctx: Context, counts: dict[Dot, Value], kept: dict[Reuse, Kept]) -> dict[Reuse, Kept]:
    """Where a loop keeps operands: nowhere if it does not pack all steps, for what is kept is taken to be packed from
    the first step on.
    """
    for dot, count in counts.items():
        is_computed = ctx.emitter.innermost().icmp("ne", count, const("i64", 0))
        own = [reuse for reuse in kept if reuse in (dot.a.slot.reuse, dot.b.slot.reuse)]
        kept = {**kept, **{reuse: not_kept(ctx, reuse, kept[reuse], is_computed) for reuse in own}}
    return kept


def begin_few_rows_step(ctx: Context, counts: dict[Dot, Value], number: Value) -> None:
    """Say of each product whether the iteration of this number has been computed."""
    for dot, count in counts.items():
        ctx.products.computed_before[dot] = ctx.emitter.innermost().icmp("ult", number, count)


def unless_computed(ctx: Context, dot: Dot, emit: Callable[[], None]) -> None:
    ctx.emitter.unless(ctx.products.computed_before[dot], emit, "compute")


def _compute(ctx: Context, item: For, dot: Dot, bounds: Sequence[Value], bind_first: Callable[[], None]) -> Value:
    emitter = ctx.emitter
    with ctx.evaluating_apart():
        rows, columns = _needed(ctx, dot, 0), _needed(ctx, dot, 1)
        are_few = _are_few(ctx, dot, rows, columns)
        b = emitter.innermost()
        entry, end = b.block("few_rows"), b.block("few_rows_end")
        emitter.enter(entry)
        count = _compute_few(ctx, item, dot, bounds, bind_first, rows, columns)
        emitter.innermost().br(end)
        last = emitter.leave()
    b = emitter.innermost()
    before = b.current_block
    b.cond_br(are_few, entry, end)
    b.position(end)
    return b.phi("i64", [(count, last), (const("i64", 0), before)])


def _are_few(ctx: Context, dot: Dot, rows: Value, columns: Value) -> Value:
    """Whether so few rows are needed, and no more of them, and of columns, than the operands have."""
    b = ctx.emitter.innermost()
    with ctx.evaluating_afresh():
        are_few = b.icmp("ule", rows, const("i64", dot.few_rows.most_rows))
        for limit in dot.few_rows.a.limits_along(0):
            are_few = b.and_(are_few, b.icmp("ule", rows, _before(ctx, limit, shape_of(dot.op.a.type)[0])))
        for limit in dot.few_rows.b.limits_along(1):
            are_few = b.and_(are_few, b.icmp("ule", columns, _before(ctx, limit, shape_of(dot.op.b.type)[1])))
    return are_few


def _needed(ctx: Context, dot: Dot, axis: int) -> Value:
    limits, extent = (dot.needed_rows, dot.needed_columns)[axis], shape_of(dot.op.result.type)[axis]
    return elements_needed(ctx, limits, extent) if limits else const("i64", extent)


def _before(ctx: Context, limit: Limit, extent: int) -> Value:
    """How many elements are on, from the first on."""
    before, _ = elements_before(ctx, limit, first_element(limit.index), extent)
    return ctx.emitter.innermost().zext(before, "i64")


def _compute_few(
    ctx: Context,
    item: For,
    dot: Dot,
    bounds: Sequence[Value],
    bind_first: Callable[[], None],
    rows: Value,
    columns: Value,
) -> Value:
    """The products of as many iterations as can be computed together; how many those are."""
    operands = (dot.few_rows.a, dot.few_rows.b)
    with ctx.evaluating_apart():
        ctx.bind_block(item.op.body.block)
        bind_first()
        regular = [_are_regular(ctx, operands[0], 0, rows), _are_regular(ctx, operands[1], 1, columns)]
        places = [_place(ctx, operand) for operand in operands]
        found = functools.reduce(ctx.emitter.innermost().and_, [one for own in regular for one in own])
    count, depth = _count(ctx, item, dot, bounds, places, found)
    products = RowProducts(
        *(ctx.emitter.innermost(), *places),
        c=address(ctx, dot.result),
        c_pitch=dot.result.strides[-2] * byte_width(dot.result.slot.type),
        size=Size(rows, columns, depth),
        most=Most(dot.few_rows.most_rows, shape_of(dot.op.a.type)[1]),
        elements=_elements(ctx, dot),
        target=ctx.target,
    )
    products.emit(b_is_by_columns=operands[1].unit_axis == 0, from_zero=dot.begins_sums)
    return count


def _elements(ctx: Context, dot: Dot) -> Elements:
    if element_type_of(dot.op.a.type) == i8:
        return Elements("i8", lambda b, lanes: lanes, BYTE_QUADS)
    type, pairs = element_type_of(dot.op.a.type), BF16_PAIRS if dot.product is BF16_PAIRS else None
    return Elements(memory_type(type), lambda b, bits: from_memory(b, bits, type, ctx.target), pairs)


def _are_regular(ctx: Context, operand: Operand, axis: int, needed: Value) -> list[Value]:
    """Whether elements lie as they have to in the first iteration, as far as that is not known: along the axis of C as
    many as are `needed`.
    """
    ptr, unit, found = operand.load.ptr, operand.unit_axis, []
    element_bytes = const("i64", byte_width(memory_type(element_type_of(operand.load.result.type))))
    for along, is_unknown in ((unit, operand.checks_neighbours), (1 - unit, operand.checks_distances)):
        if is_unknown:
            distance, count = element_bytes if along == unit else None, needed if along == axis else None
            at = functools.partial(_index_along, along)
            found.append(are_equally_far_apart(ctx, ptr, at, shape_of(ptr.type)[along], distance, count))
    return found or [const("i1", 1)]


def _index_along(axis: int, entry: Axis) -> tuple[Axis, Axis]:
    return (entry, one_element(0)) if axis == 0 else (one_element(0), entry)


def _place(ctx: Context, operand: Operand) -> Strided:
    second = (one_element(0), one_element(1)) if operand.unit_axis == 0 else (one_element(1), one_element(0))
    indices = ((one_element(0), one_element(0)), second)
    with ctx.evaluating_afresh():
        first, next_one = (ctx.evaluate(operand.load.ptr, index).value for index in indices)
    b = ctx.emitter.innermost()
    return Strided(first, b.sub(b.ptrtoint(next_one), b.ptrtoint(first)))


def _count(
    ctx: Context, item: For, dot: Dot, bounds: Sequence[Value], places: Sequence[Strided], found: Value
) -> tuple[Value, Value]:
    """Of how many iterations, from the first on, what is loaded along k goes on where that before ends: of all, or of
    whole groups of steps. And how deep they are together: the last one may be less deep than a tile.
    """
    emitter, block, operands = ctx.emitter, item.op.body.block, item.op.body.block.last_op.operands
    carried_values = dot.few_rows.carried
    tiles = advancing(ctx, carried_values)
    numbers = [value.index - 1 for value in scalars(carried_values)]
    starts = [ctx.scalar(item.op.iter_args[number]) for number in numbers]
    starts += [const(total_type(tile), 0) for tile in tiles]
    expected = [emitter.innermost().ptrtoint(place.first) for place in places]
    sources, extent = (dot.few_rows.a, dot.few_rows.b), const("i64", shape_of(dot.op.a.type)[1])
    steps = [_step_bytes(ctx, *taken) for taken in zip(sources, (1, 0), places, strict=True)]
    none = const("i64", 0)
    loop = emitter.open_loop(*bounds, [none, none, found, *expected, *starts], "full")
    count, depth, goes_on, *rest = loop.carried
    with ctx.evaluating_afresh():
        ctx.bind_block(block)
        ctx.bind(block.args[0], loop.index)
        bind_carried(ctx, carried_values, tiles, rest[2:])
        conditions = _conditions(ctx, dot, rest[:2])
        elements, are_all = _elements_on(ctx, dot)
        b = emitter.innermost()
        is_deep = b.icmp("eq", depth, b.mul(count, extent))
        goes_on = functools.reduce(b.and_, [*conditions, *are_all, is_deep], goes_on)
        following = [ctx.scalar(operands[number]) for number in numbers] + [advanced(ctx, tile) for tile in tiles]
    b = emitter.innermost()
    expected = [b.add(*pair) for pair in zip(rest[:2], steps, strict=True)]
    depth = b.add(depth, b.select(goes_on, elements, none))
    count, depth, goes_on, *_ = emitter.close_loop(
        loop, [b.add(count, b.zext(goes_on, "i64")), depth, goes_on, *expected, *following]
    )
    b = emitter.innermost()
    count = b.select(goes_on, count, b.sub(count, b.urem(count, const("i64", item.steps))))
    return count, b.umin(depth, b.mul(count, extent))


def _step_bytes(ctx: Context, operand: Operand, along_k: int, place: Strided) -> Value:
    """How far an iteration's operand is from that of the one before, if its k goes on."""
    extent = shape_of(operand.load.ptr.type)[along_k]
    element_bytes = byte_width(memory_type(element_type_of(operand.load.result.type)))
    distance = const("i64", element_bytes) if operand.unit_axis == along_k else place.distance
    return ctx.emitter.innermost().mul(distance, const("i64", extent))


def _conditions(ctx: Context, dot: Dot, expected: Sequence[Value]) -> list[Value]:
    """What holds of an iteration that can be computed with those before, whatever its depth."""
    conditions = []
    for operand, place in zip((dot.few_rows.a, dot.few_rows.b), expected, strict=True):
        index = (one_element(0), one_element(0))
        found = ctx.evaluate(operand.load.ptr, index).value
        b = ctx.emitter.innermost()
        conditions.append(b.icmp("eq", b.ptrtoint(found), place))
        fixed = operand.mask.fixed if operand.mask else ()
        conditions += [ctx.evaluate(op.results[0], first_element(at)).value for op, at in fixed]
    return conditions


def _elements_on(ctx: Context, dot: Dot) -> tuple[Value, list[Value]]:
    """How many elements along k an iteration has to multiply, and whether those are all: as many of A as of B, whole
    tiles of them where what is beyond is not 0 in both.
    """
    extent, counts, conditions = shape_of(dot.op.a.type)[1], [], []
    for operand, along_k in ((dot.few_rows.a, 1), (dot.few_rows.b, 0)):
        count = const("i32", extent)
        for limit in operand.limits_along(along_k):
            if not limit.is_below or not dot.needed_depth:
                conditions.append(is_at_end(ctx, limit, extent))
                continue
            before, known = elements_before(ctx, limit, first_element(limit.index), extent)
            b = ctx.emitter.innermost()
            conditions.append(b.icmp("eq", before, known))
            count = b.umin(count, before)
        counts.append(count)
    b = ctx.emitter.innermost()
    conditions += [b.icmp("eq", *counts), b.icmp("ne", counts[0], const("i32", 0))]
    return b.zext(counts[0], "i64"), conditions
