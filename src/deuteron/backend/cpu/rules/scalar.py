"""Ops on scalars that have an effect, done where they stand: loads, stores, atomics, asserts; and marks."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation

from deuteron.backend.cpu.context import Context
from deuteron.backend.cpu.fragment import Fragment
from deuteron.backend.cpu.launch.timer import nanoseconds
from deuteron.backend.cpu.rules import memory
from deuteron.backend.cpu.rules.atomic import LANE_RULES as ATOMIC_RULES
from deuteron.backend.cpu.rules.debug import check, print_prefix


def _operands(ctx: Context, op: Operation) -> list[Fragment]:
    return [ctx.evaluate(operand, ()) for operand in op.operands]


def load(ctx: Context, op: Operation) -> None:
    ctx.bind(op.result, memory.load(ctx, op, (), *_operands(ctx, op)).value)


def store(ctx: Context, op: Operation) -> None:
    memory.store_tile(ctx, op, (), *_operands(ctx, op))


def _atomic(rule: Callable[..., Fragment | None]) -> Callable[[Context, Operation], None]:
    def emit(ctx: Context, op: Operation) -> None:
        result = rule(ctx, op, (), *_operands(ctx, op))
        if result is not None:
            ctx.bind(op.results[0], result.value)

    return emit


def assert_(ctx: Context, op: Operation) -> None:
    check(ctx, op, (), *_operands(ctx, op))


def nothing(ctx: Context, op: Operation) -> None:
    """A barrier: one thread runs a whole program. The end of a join or cat: its parts are written by now."""


def global_timer(ctx: Context, op: Operation) -> None:
    ctx.bind(op.result, nanoseconds(ctx.emitter.innermost(), ctx.lane_functions))


SCALAR_RULES: dict[str, Callable[[Context, Operation], None]] = {
    "tt.load": load,
    "tt.store": store,
    **{name: _atomic(rule) for name, rule in ATOMIC_RULES.items()},
    "tt.global_timer": global_timer,
    "tt.assert": assert_,
    "tt.print": print_prefix,
    "ttg.barrier": nothing,
    "tt.join": nothing,
    "tt.cat": nothing,
}
