"""Warpgroups in ping-pong: a named barrier for each, which it waits at and the other one arrives at.

take: bar.sync 8 + warpgroup, 256
pass: bar.arrive 9 - warpgroup, 256
"""

from __future__ import annotations

from xdsl.ir import Operation

from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.llvm.types import Value, const

FIRST_BARRIER = 8  # of 16; the lower ones are those of the regions of ttg.warp_specialize
WARPGROUP_BITS = 2


def take_turn(ctx: Context, op: Operation) -> None:
    mine = ctx.b.add(_warp_group(ctx), const("i32", FIRST_BARRIER))
    _at(ctx, op, "llvm.nvvm.barrier.cta.sync.aligned.count", mine)


def pass_turn(ctx: Context, op: Operation) -> None:
    other = ctx.b.sub(const("i32", FIRST_BARRIER + 1), _warp_group(ctx))
    _at(ctx, op, "llvm.nvvm.barrier.cta.arrive.aligned.count", other)


def _warp_group(ctx: Context) -> Value:
    return ctx.b.lshr(ctx.threads.uniform_warp, const("i32", WARPGROUP_BITS))


def _at(ctx: Context, op: Operation, intrinsic: str, barrier: Value) -> None:
    threads = const("i32", ctx.threads.count)
    if op.only is None:
        ctx.b.intrinsic(intrinsic, "void", barrier, threads, overloads=())
    else:
        with ctx.b.if_(ctx.b.icmp("eq", _warp_group(ctx), const("i32", op.only))):
            ctx.b.intrinsic(intrinsic, "void", barrier, threads, overloads=())


RULES: dict[str, Rule] = {"ttng.take_turn": take_turn, "ttng.pass_turn": pass_turn}
