"""Leaving a program before its end: when the launch is called off, an assertion fails, or an access is out of bounds.

stop_if_told(ctx)                     at the beginning of a program, and in loops that wait
leave(b)                              of a program: it tells its caller to begin no other
fail_unless(ctx, condition, failure)  says what failed, where, if it is the first to, and leaves
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from deuteron.backend.cpu.context import AxisIndex, Context
from deuteron.backend.cpu.launch.control import FAILED, Control
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const, zero

_TELL = "stopping.tell"


@dataclass(frozen=True)
class Failure:
    """What is said of a failure: the number of the assertion or access, the lane counted row by row, the address."""

    number: int
    lane: Value
    address: Value | None = None


def stop_if_told(ctx: Context) -> None:
    """Leave the program if the launch is to end. The fence makes LLVM read memory anew every time."""
    b = ctx.emitter.innermost()
    stopped, going = b.block("stopped"), b.block("going")
    b.fence('syncscope("singlethread") seq_cst')
    told = b.load("i32", _field(b, ctx.program["control"], "stop"))
    b.cond_br(b.icmp("eq", told, const("i32", 0)), going, stopped)
    b.position(stopped)
    leave(b)
    b.position(going)


def leave(b: Builder) -> None:
    b.ret(const("i1", 1))


def fail_unless(ctx: Context, b: Builder, condition: Value, describe: Callable[[], Failure]) -> None:
    """Where the condition does not hold: end the launch, say why unless another program has, and leave the program.

    `describe` emits what is only computed then.
    """
    failed, holds = b.block("failed"), b.block("holds")
    b.cond_br(condition, holds, failed)
    b.position(failed)
    failure = describe()
    if not ctx.module.has_function(_TELL):
        _define_tell(ctx)
    address = zero("i64") if failure.address is None else failure.address
    program = [ctx.program[f"pid{axis}"] for axis in range(3)]
    b.call("void", _TELL, ctx.program["control"], const("i32", failure.number), *program, failure.lane, address)
    leave(b)
    b.position(holds)


def lane_number(b: Builder, index: AxisIndex, shape: tuple[int, ...], level: int) -> Value:
    """The number of the first lane at an index, counted row by row. What changes at deeper levels counts as 0."""
    lane = const("i64", 0)
    for axis, size in zip(index, shape, strict=False):
        lane = b.mul(lane, const("i64", size))
        lane = b.add(lane, b.zext(axis.start, "i64")) if axis and axis.level <= level else lane
    return lane


def _define_tell(ctx: Context) -> None:
    types = [("ptr", "control"), ("i32", "number"), ("i32", "x"), ("i32", "y"), ("i32", "z")]
    types += [("i64", "lane"), ("i64", "address")]
    b = ctx.module.function(_TELL, "void", types, attributes="noinline cold nounwind")
    control, number, *program, lane, address = b.parameters
    first, done = b.block("first"), b.block("done")
    before = b.cmpxchg(_field(b, control, "stop"), const("i32", 0), const("i32", FAILED))
    b.cond_br(b.icmp("eq", before, const("i32", 0)), first, done)
    b.position(first)
    b.store(number, _field(b, control, "assertion"))
    for axis, place in enumerate(program):
        b.store(place, _field(b, control, "program", 4 * axis))
    b.store(lane, _field(b, control, "lane"))
    b.store(address, _field(b, control, "address"))
    b.br(done)
    b.position(done)
    b.ret()


def _field(b: Builder, control: Value, name: str, offset: int = 0) -> Value:
    return b.gep("i8", control, const("i64", getattr(Control, name).offset + offset))
