"""Integer arithmetic: arith.addi ... arith.shrsi, tt.mulhiui.

A shift by the width or more gives what shifting bit by bit would, which LLVM leaves open; so it does a division by 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from xdsl.ir import Operation, SSAValue

from deuteron.analysis.addresses.index_bits import IndexBitsAnalysis
from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.elements import register_type
from deuteron.backend.gpu.fragment import Fragment, Operand, positions, with_registers
from deuteron.backend.gpu.neighbours import count_up, counted_along, first_of_equals
from deuteron.backend.gpu.rules.elementwise import Emit, each, intrinsic, plain
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, bit_width, const, integer_of
from deuteron.backend.math import division
from deuteron.ir.arith import OF_NATURAL
from deuteron.layout.linear import BLOCK, LANE, WARP, LinearLayout


def _shift(emit: Emit) -> Rule:
    """Where it is known by how much each register is shifted, in all threads, it is a constant."""

    def shift(b: Builder, x: Value, amount: Value) -> Value:
        if amount.is_constant and amount.text.isdigit() and int(amount.text) < bit_width(x.type):
            return emit(b, x, amount)
        last = const(x.type, bit_width(x.type) - 1)
        fits = b.icmp("ule", amount, last)
        if emit is Builder.ashr:
            return emit(b, x, b.select(fits, amount, last))
        return b.select(fits, emit(b, x, b.and_(amount, last)), const(x.type, 0))

    def rule(ctx: Context, op: Operation, x: Operand, amount: Operand) -> Operand:
        known = _is_computed(amount) and _equal_in_threads(op.operands[1], amount.layout)
        amounts = with_registers(amount, known) if known else amount
        return each(lambda *values: shift(ctx.b, *values), x, amounts)

    return rule


def _is_computed(amount: Operand) -> bool:
    return isinstance(amount, Fragment) and not all(value.is_constant for value in amount.registers)


def _equal_in_threads(value: SSAValue, layout: LinearLayout) -> list[Value] | None:
    """The registers of a tile of indices, if they are the same numbers in all threads."""
    bits = IndexBitsAnalysis().of(value)
    if bits is None or any(bits.at(column) != bits.constant for column in layout.columns(LANE, WARP, BLOCK)):
        return None
    places = [layout.flatten_basis(place) for place in positions(layout)]
    return [const(register_type(value.type), bits.at(place)) for place in places]


def _quotient(signed: bool) -> Rule:
    def rule(ctx: Context, op: Operation, x: Operand, y: Operand) -> Operand:
        x, y = (first_of_equals(operand, ctx.info.derived(op).constancy) for operand in (x, y))
        if OF_NATURAL in op.attributes:
            divided = each(ctx.b.udiv, x, each(partial(division.natural_divisor, ctx.b), y))
            return each(partial(division.natural_quotient, ctx.b), divided, y)
        divided = each(lambda *values: division.divided(ctx.b, *values, signed), x, _divisor(ctx, y, signed))
        return each(lambda *values: division.quotient(ctx.b, *values, signed), divided, y)

    return rule


def _remainder(signed: bool) -> Rule:
    def rule(ctx: Context, op: Operation, x: Operand, y: Operand) -> Operand:
        sizes = counted_along(x, ctx.info.derived(op))
        x, y = (first_of_equals(operand, sizes) for operand in (x, y))
        if OF_NATURAL in op.attributes:
            return count_up(ctx.b, each(ctx.b.urem, x, each(partial(division.natural_divisor, ctx.b), y)), sizes)
        rest = each(lambda *values: division.rest(ctx.b, *values, signed), x, _divisor(ctx, y, signed))
        return count_up(ctx.b, each(partial(division.remainder, ctx.b), x, rest, y), sizes)

    return rule


def _divisor(ctx: Context, y: Operand, signed: bool) -> Operand:
    return each(lambda value: division.safe_divisor(ctx.b, value, signed), y)


def _corrected(signed: bool, correct: Callable[[Builder, Value, Value, Value], Value]) -> Rule:
    """A quotient that is rounded otherwise: `correct(b, quotient, remainder, y)`."""
    quotient, remainder = _quotient(signed), _remainder(signed)

    def rule(ctx: Context, op: Operation, x: Operand, y: Operand) -> Operand:
        return each(partial(correct, ctx.b), quotient(ctx, op, x, y), remainder(ctx, op, x, y), y)

    return rule


def _down(b: Builder, quotient: Value, rest: Value, y: Value) -> Value:
    is_below = b.and_(b.icmp("ne", rest, const(y.type, 0)), b.icmp("slt", b.xor(rest, y), const(y.type, 0)))
    return b.sub(quotient, b.zext(is_below, y.type))


def _up(b: Builder, quotient: Value, rest: Value, y: Value) -> Value:
    is_above = b.and_(b.icmp("ne", rest, const(y.type, 0)), b.icmp("sge", b.xor(rest, y), const(y.type, 0)))
    return b.add(quotient, b.zext(is_above, y.type))


def _up_unsigned(b: Builder, quotient: Value, rest: Value, y: Value) -> Value:
    return b.add(quotient, b.zext(b.icmp("ne", rest, const(y.type, 0)), y.type))


def multiply_high(ctx: Context, op: Operation, x: Operand, y: Operand) -> Operand:
    return each(lambda *values: ctx.isa.multiply_high(ctx.b, *values), x, y)


def _absolute(b: Builder, x: Value) -> Value:
    return b.intrinsic("llvm.abs", x.type, x, const("i1", False))


def compare(ctx: Context, op: Operation, x: Operand, y: Operand) -> Operand:
    """A mask that is the same for several elements is one condition for all of them."""
    operands = (first_of_equals(operand, ctx.info.of(op.result).constancy) for operand in (x, y))
    return each(lambda *values: _compared(ctx.b, op.predicate_name, *values), *operands)


def _compared(b: Builder, predicate: str, x: Value, y: Value) -> Value:
    """Equal constants are equal."""
    if predicate in ("eq", "ne") and integer_of(x) is not None and integer_of(y) is not None:
        return const("i1", (integer_of(x) == integer_of(y)) == (predicate == "eq"))
    return b.icmp(predicate, x, y)


RULES: dict[str, Rule] = {
    "arith.addi": plain(Builder.add),
    "arith.subi": plain(Builder.sub),
    "arith.muli": plain(Builder.mul),
    "arith.divsi": _quotient(signed=True),
    "arith.divui": _quotient(signed=False),
    "arith.remsi": _remainder(signed=True),
    "arith.remui": _remainder(signed=False),
    "arith.floordivsi": _corrected(True, _down),
    "arith.ceildivsi": _corrected(True, _up),
    "arith.ceildivui": _corrected(False, _up_unsigned),
    "arith.minsi": intrinsic("llvm.smin"),
    "arith.maxsi": intrinsic("llvm.smax"),
    "arith.minui": intrinsic("llvm.umin"),
    "arith.maxui": intrinsic("llvm.umax"),
    "arith.andi": plain(Builder.and_),
    "arith.ori": plain(Builder.or_),
    "arith.xori": plain(Builder.xor),
    "arith.shli": _shift(Builder.shl),
    "arith.shrui": _shift(Builder.lshr),
    "arith.shrsi": _shift(Builder.ashr),
    "arith.cmpi": compare,
    "math.absi": plain(_absolute),
    "tt.mulhiui": multiply_high,
}
