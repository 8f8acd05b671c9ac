"""Looks at run time whether the addresses of a tile are equally far apart along one of its dimensions.

are_equally_far_apart(ctx, ptr, lambda row: (row, one_element(0)), 64)      rows, as far as the first two
are_equally_far_apart(ctx, ptr, lambda lane: (one_element(0), lane), 64, const("i64", 4))   neighbours
find_runs(ctx, ptr, lambda lane: (one_element(0), lane), 64, 4)             neighbours, and others after them
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from deuteron.backend.cpu.algebra import as_vector
from deuteron.backend.cpu.context import AxisIndex, Context, Runs
from deuteron.backend.cpu.fragment import Axis, one_element
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const, vector, vector_const, width
from deuteron.backend.math.vectors import all_lanes

_LANES = 16  # addresses that are looked at together

At = Callable[[Axis], AxisIndex]  # the index of an element, or of several, of the dimension


def are_equally_far_apart(
    ctx: Context, ptr: SSAValue, at: At, extent: int, distance: Value | None = None, count: Value | None = None
) -> Value:
    """Whether each address, of `extent`, or the first `count` of them, is where it would be if all were so many bytes
    apart; `ctx.nest_state.tiles` holds nothing then.
    """
    ctx.nest_state.tiles.clear()
    first, emitter = _addresses(ctx, ptr, at(one_element(0)), 1), ctx.emitter
    if distance is None:
        distance = emitter.innermost().sub(_addresses(ctx, ptr, at(one_element(1)), 1), first)

    def are_apart(b: Builder, found: Value, numbers: Value, so_far: Value) -> Value:
        are_expected = b.icmp("eq", found, _expected(b, first, distance, numbers))
        if count is not None:
            are_expected = b.or_(are_expected, b.icmp("uge", numbers, b.splat(count, width(numbers.type))))
        return b.and_(all_lanes(b, are_expected), so_far)

    return _look(ctx, ptr, at, extent, const("i1", 1), are_apart)


def find_runs(ctx: Context, ptr: SSAValue, at: At, extent: int, num_bytes: int) -> Runs:
    """How elements of so many bytes lie; `ctx.nest_state.tiles` holds nothing then."""
    ctx.nest_state.tiles.clear()
    first, distance = _addresses(ctx, ptr, at(one_element(0)), 1), const("i64", num_bytes)

    def first_elsewhere(b: Builder, found: Value, numbers: Value, so_far: Value) -> Value:
        are_elsewhere = b.icmp("ne", found, _expected(b, first, distance, numbers))
        end = b.splat(const("i64", extent), width(numbers.type))
        lowest = b.intrinsic(
            "llvm.vector.reduce.umin", "i64", b.select(are_elsewhere, numbers, end), overloads=[end.type]
        )
        return b.umin(so_far, lowest)

    count = _look(ctx, ptr, at, extent, const("i64", extent), first_elsewhere)
    b = ctx.emitter.innermost()
    last = b.umin(count, const("i64", extent - 1))
    second = _addresses(ctx, ptr, at(Axis(b.trunc(last, "i32"), 1, ctx.emitter.depth)), 1)
    jump = b.sub(second, b.add(first, b.mul(last, distance)))

    def follow(b: Builder, found: Value, numbers: Value, so_far: Value) -> Value:
        are_expected = b.icmp("eq", found, _expected(b, b.add(first, jump), distance, numbers))
        are_before = b.icmp("ult", numbers, b.splat(count, width(numbers.type)))
        return b.and_(all_lanes(b, b.or_(are_expected, are_before)), so_far)

    return Runs(_look(ctx, ptr, at, extent, const("i1", 1), follow), b.trunc(count, "i32"), jump)


def _look(ctx: Context, ptr: SSAValue, at: At, extent: int, start: Value, then: Callable[..., Value]) -> Value:
    """What comes of the addresses, some at a time: `then(b, addresses, numbers, so_far)`, from `start` on."""
    lanes, emitter = min(extent, _LANES), ctx.emitter
    bounds = const("i32", 0), const("i32", extent), const("i32", lanes)
    loop = emitter.open_loop(*bounds, [start], "apart")
    found = _addresses(ctx, ptr, at(Axis(loop.index, lanes, emitter.depth)), lanes)
    b = emitter.innermost()
    numbers = b.add(b.splat(b.zext(loop.index, "i64"), lanes), vector_const("i64", range(lanes)))
    (after,) = emitter.close_loop(loop, [then(b, found, numbers, loop.carried[0])])
    ctx.nest_state.tiles.clear()
    return after


def _expected(b: Builder, first: Value, distance: Value, numbers: Value) -> Value:
    lanes = width(numbers.type)
    return b.add(b.splat(first, lanes), b.mul(numbers, b.splat(distance, lanes)))


def _addresses(ctx: Context, ptr: SSAValue, index: AxisIndex, lanes: int) -> Value:
    addresses = as_vector(ctx.emitter, ctx.evaluate(ptr, index), lanes)
    return ctx.emitter.innermost().ptrtoint(addresses, vector("i64", lanes))
