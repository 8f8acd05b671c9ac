"""Looks at run time whether the addresses of a tile are equally far apart along one of its dimensions.

are_equally_far_apart(ctx, ptr, lambda row: (row, one_element(0)), 64)      rows, as far as the first two
are_equally_far_apart(ctx, ptr, lambda lane: (one_element(0), lane), 64, const("i64", 4))   neighbours
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from deuteron.backend.cpu.algebra import as_vector
from deuteron.backend.cpu.context import AxisIndex, Context
from deuteron.backend.cpu.fragment import Axis, one_element
from deuteron.backend.llvm.types import Value, const, vector, vector_const
from deuteron.backend.math.vectors import all_lanes

_LANES = 16  # addresses that are looked at together

At = Callable[[Axis], AxisIndex]  # the index of an element, or of several, of the dimension


def are_equally_far_apart(
    ctx: Context, ptr: SSAValue, at: At, extent: int, distance: Value | None = None, count: Value | None = None
) -> Value:
    """Whether each address, of `extent`, or the first `count` of them, is where it would be if all were so many bytes
    apart; `ctx.tiles` holds nothing then.
    """
    ctx.tiles.clear()
    lanes, emitter = min(extent, _LANES), ctx.emitter
    first = _addresses(ctx, ptr, at(one_element(0)), 1)
    if distance is None:
        distance = emitter.innermost().sub(_addresses(ctx, ptr, at(one_element(1)), 1), first)
    bounds = const("i32", 0), const("i32", extent), const("i32", lanes)
    loop = emitter.open_loop(*bounds, [const("i1", 1)], "apart")
    found = _addresses(ctx, ptr, at(Axis(loop.index, lanes, emitter.depth)), lanes)
    b = emitter.innermost()
    numbers = b.add(b.splat(b.zext(loop.index, "i64"), lanes), vector_const("i64", range(lanes)))
    expected = b.add(b.splat(first, lanes), b.mul(numbers, b.splat(distance, lanes)))
    are_expected = b.icmp("eq", found, expected)
    if count is not None:
        are_expected = b.or_(are_expected, b.icmp("uge", numbers, b.splat(count, lanes)))
    (are_apart,) = emitter.close_loop(loop, [b.and_(all_lanes(b, are_expected), loop.carried[0])])
    ctx.tiles.clear()
    return are_apart


def _addresses(ctx: Context, ptr: SSAValue, index: AxisIndex, lanes: int) -> Value:
    addresses = as_vector(ctx.emitter, ctx.evaluate(ptr, index), lanes)
    return ctx.emitter.innermost().ptrtoint(addresses, vector("i64", lanes))
