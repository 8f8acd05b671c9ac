"""tt.print and tt.assert.

tl.device_print("x", x)      pid (0, 0, 0) idx ( 3) x: 1.500000     on the standard output
tl.device_assert(...)        only with the option `debug`: the launch ends, and its caller is told (`control.py`)
"""

from __future__ import annotations

from xdsl.ir import Attribute

from deuteron.backend.assertion import Assertion
from deuteron.backend.cpu.context import Context
from deuteron.backend.cpu.fragment import Axis, Fragment
from deuteron.backend.cpu.memory.formats import stored
from deuteron.backend.cpu.rules.stopping import Failure, fail_unless, lane_number
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, byte_width, const, is_float
from deuteron.errors import Location
from deuteron.ir.tt.debug import AssertOp, PrintOp
from deuteron.ir.types import element_type_of, shape_of


def print_element(ctx: Context, op: PrintOp, index: tuple[Axis | None, ...], value: Fragment, number: int) -> None:
    """One line for an element of the operand of that number, as Triton prints it."""
    b = ctx.emitter.innermost()
    if op.hex.value.data:
        conversion, argument = _bits(ctx, b, value.value, element_type_of(op.operands[number].type))
    else:
        conversion, argument = _number(b, value.value, op.is_signed.get_values()[number])
    places = [axis.start if axis else const("i32", 0) for axis in index]
    _printf(ctx, b, op.beginning(number) + conversion, *places, argument)


def print_prefix(ctx: Context, op: PrintOp) -> None:
    """A print without values."""
    _printf(ctx, ctx.emitter.innermost(), op.line_without_values)


def _printf(ctx: Context, b: Builder, line: str, *arguments: Value) -> None:
    pids = [ctx.program[f"pid{axis}"] for axis in range(3)]
    format = ctx.module.string(f"{line}\n")
    b.call_variadic("i32", "printf", [format], *pids, *arguments)


def _bits(ctx: Context, b: Builder, value: Value, type: Attribute) -> tuple[str, Value]:
    """The conversion of printf for the bits of a value as memory has them, and these as a variadic argument."""
    bits = stored(b, value, type, ctx.target)
    if bits.type == "ptr":
        bits = b.ptrtoint(bits, "i64")
    elif is_float(bits.type):
        bits = b.bitcast(bits, f"i{8 * byte_width(bits.type)}")
    return f"0x%0{2 * byte_width(bits.type)}llx", b.zext(bits, "i64")


def _number(b: Builder, value: Value, is_signed: int) -> tuple[str, Value]:
    if is_float(value.type):
        return "%f", b.fpext(value, "double")
    if value.type == "ptr":
        return "%llu", b.ptrtoint(value, "i64")
    if is_signed and value.type != "i1":
        return "%lld", b.sext(value, "i64")
    return "%llu", b.zext(value, "i64")


def check(ctx: Context, op: AssertOp, index: tuple[Axis | None, ...], condition: Fragment) -> None:
    """Nothing, unless the assertion counts."""
    if not op.counts(ctx.options.debug):
        return
    number = ctx.checks.assertions.setdefault(op, len(ctx.checks.assertions))
    b, level = ctx.emitter.innermost(), ctx.emitter.depth
    shape = shape_of(op.condition.type)
    fail_unless(ctx, b, condition.value, lambda: Failure(number, lane_number(b, index, shape, level)))


def describe_assertion(op: AssertOp, place: Location | None, calls: tuple[Location, ...]) -> Assertion:
    """What the metadata says of an assertion."""
    return Assertion(place, calls, op.message.data, shape_of(op.condition.type))


LANE_RULES = {"tt.assert": check}
