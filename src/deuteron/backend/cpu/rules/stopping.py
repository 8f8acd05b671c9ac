"""Leaving a program before its end: when the launch is called off, and when an assertion fails.

stop_if_told(ctx)                     at the beginning of a program, and in loops that wait
fail(ctx, number, lane)               says which assertion failed, if it is the first to, and leaves
"""

from __future__ import annotations

from deuteron.backend.cpu.context import Context
from deuteron.backend.cpu.control import FAILED, Control
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const


def stop_if_told(ctx: Context) -> None:
    """Leave the program if the launch is to end. The fence makes LLVM read memory anew every time."""
    b = ctx.emitter.innermost()
    stopped, going = b.block("stopped"), b.block("going")
    b.fence('syncscope("singlethread") seq_cst')
    told = b.load("i32", _field(ctx, b, "stop"))
    b.cond_br(b.icmp("eq", told, const("i32", 0)), going, stopped)
    b.position(stopped)
    b.ret()
    b.position(going)


def fail_unless(ctx: Context, condition: Value, number: int, lane: Value) -> None:
    """Where the condition does not hold: end the launch, say why unless another program has, and leave the program."""
    b = ctx.emitter.innermost()
    failed, first, leave, holds = (b.block(name) for name in ("failed", "first", "leave", "holds"))
    b.cond_br(condition, holds, failed)
    b.position(failed)
    before = b.cmpxchg(_field(ctx, b, "stop"), const("i32", 0), const("i32", FAILED))
    b.cond_br(b.icmp("eq", before, const("i32", 0)), first, leave)
    b.position(first)
    b.store(const("i32", number), _field(ctx, b, "assertion"))
    for axis in range(3):
        b.store(ctx.program[f"pid{axis}"], _field(ctx, b, "program", 4 * axis))
    b.store(lane, _field(ctx, b, "lane"))
    b.br(leave)
    b.position(leave)
    b.ret()
    b.position(holds)


def _field(ctx: Context, b: Builder, name: str, offset: int = 0) -> Value:
    return b.gep("i8", ctx.program["control"], const("i64", getattr(Control, name).offset + offset))
