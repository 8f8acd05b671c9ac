"""Conversions between types, constants, ranges and selects."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Attribute, Operation

from deuteron.backend.cpu.algebra import lanewise, sign_extend, truncate
from deuteron.backend.cpu.context import AxisIndex, Context, Rule
from deuteron.backend.cpu.fragment import Affine, Fragment, Uniform, known_truth
from deuteron.backend.cpu.memory.elements import memory_type, register_type
from deuteron.backend.cpu.memory.formats import from_memory, rounded, to_memory
from deuteron.backend.cpu.plan.products.marks import is_only_multiplied
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const, like
from deuteron.backend.math import conversions
from deuteron.dtypes import FP32, FloatType
from deuteron.errors import CompilationError
from deuteron.ir.arith import constant_value
from deuteron.ir.tt.convert import RoundingMode
from deuteron.ir.types import FLOAT_TYPES, bit_width_of, element_type_of, is_float, is_narrow_float


def constant(ctx: Context, op: Operation) -> Fragment:
    number = constant_value(op.result)
    if number is None:
        raise CompilationError("a constant tile must hold the same number everywhere; load the numbers from memory")
    type = element_type_of(op.result.type)
    value = const(register_type(type), number)
    if is_narrow_float(type) and not FLOAT_TYPES[type].keeps(number):
        value = rounded(ctx.emitter.at(0), value, type, ctx.target)
    return Uniform(value, 0)


def make_range(ctx: Context, op: Operation, index: AxisIndex) -> Fragment:
    """`start` plus the index."""
    axis, first = index[0], op.start.value.data
    if axis is None:
        return Uniform(const("i32", first), 0)
    b = ctx.emitter.at(axis.level)
    start = axis.start
    if start.is_constant:
        start = const("i32", int(start.text) + first)
    elif first:
        start = b.add(start, const("i32", first), "nsw")
    return Affine(start, 1, axis.lanes, axis.level, is_range=True) if axis.lanes > 1 else Uniform(start, axis.level)


def select(ctx: Context, op: Operation, condition: Fragment, x: Fragment, y: Fragment) -> Fragment:
    if (truth := known_truth(condition)) is not None:
        return x if truth else y
    return lanewise(ctx.emitter, Builder.select, condition, x, y)


def truncate_integer(ctx: Context, op: Operation, x: Fragment) -> Fragment:
    return truncate(ctx.emitter, x, register_type(op.results[0].type))


def extend_signed(ctx: Context, op: Operation, x: Fragment) -> Fragment:
    return sign_extend(ctx.emitter, x, register_type(op.results[0].type))


def extend_unsigned(ctx: Context, op: Operation, x: Fragment) -> Fragment:
    type = register_type(op.results[0].type)
    return lanewise(ctx.emitter, lambda b, value: b.zext(value, like(value.type, type)), x)


def _to_float(signed: bool) -> Rule:
    """Through a float that is rounded to odd where another would round twice: it has integers of 24 bits."""

    def rule(ctx: Context, op: Operation, x: Fragment) -> Fragment:
        type = element_type_of(op.results[0].type)
        num_bits = bit_width_of(element_type_of(op.operands[0].type)) - signed  # without that of the sign

        def emit(b: Builder, value: Value) -> Value:
            if not is_narrow_float(type) or _has_integers(FP32, num_bits):
                value = conversions.int_to_float(b, value, register_type(type), signed)
            else:
                value = conversions.int_to_odd_f32(b, value, signed)
            return value if _has_integers(FLOAT_TYPES[type], num_bits) else rounded(b, value, type, ctx.target)

        return lanewise(ctx.emitter, emit, x)

    return rule


def _has_integers(format: FloatType, num_bits: int) -> bool:
    """Whether a format has all integers of so many bits, and the power of two after them."""
    return num_bits <= format.mantissa_bits + 1 and format.keeps(2.0**num_bits)


def _to_integer(signed: bool) -> Rule:
    def rule(ctx: Context, op: Operation, x: Fragment) -> Fragment:
        type = register_type(op.results[0].type)
        return lanewise(ctx.emitter, lambda b, value: conversions.float_to_int(b, value, type, signed), x)

    return rule


def convert_float(ctx: Context, op: Operation, x: Fragment) -> Fragment:
    """Between any two floating types; narrowing rounds once."""
    source, target = (element_type_of(value.type) for value in (op.operands[0], op.results[0]))
    rounding = getattr(op, "rounding", None)
    toward_zero = rounding is not None and rounding.value.data == RoundingMode.RTZ
    flushes = is_only_multiplied(op.results[0])

    def emit(b: Builder, value: Value) -> Value:
        register = like(value.type, register_type(target))
        if register_type(source) == "double" and is_narrow_float(target):
            value = conversions.round_to_odd(b, value)
        elif register_type(source) == "double" and toward_zero and register_type(target) == "float":
            value = conversions.truncate_to_f32(b, value)
        elif register_type(source) == "double":
            value = b.fptrunc(value, register)
        else:
            value = b.fpext(value, register)
        is_exact = source == target or _keeps_all(target, source)
        return value if is_exact else rounded(b, value, target, ctx.target, toward_zero, flushes)

    return lanewise(ctx.emitter, emit, x)


def _keeps_all(target: Attribute, source: Attribute) -> bool:
    """Whether a type has all numbers of another one, infinity and NaN included."""
    wide, narrow = FLOAT_TYPES[target], FLOAT_TYPES[source]
    has_specials = wide.has_infinity and not wide.saturates
    return has_specials and wide.has_minus_zero and wide.has_all_of(narrow)


def bitcast(ctx: Context, op: Operation, x: Fragment) -> Fragment:
    """The bits in memory stay the same."""
    source, target = (element_type_of(value.type) for value in (op.operands[0], op.results[0]))
    if register_type(source) == register_type(target) == "ptr":
        return x

    def emit(b: Builder, value: Value) -> Value:
        if is_float(source) or is_float(target):
            value = to_memory(b, value, source, ctx.target)
            value = b.bitcast(value, like(value.type, memory_type(target)))
            return from_memory(b, value, target, ctx.target)
        return b.bitcast(value, like(value.type, register_type(target)))

    return lanewise(ctx.emitter, emit, x)


def _cast(emit: Callable[..., Value]) -> Rule:
    def rule(ctx: Context, op: Operation, x: Fragment) -> Fragment:
        type = register_type(op.results[0].type)
        return lanewise(ctx.emitter, lambda b, value: emit(b, value, like(value.type, type)), x)

    return rule


RULES: dict[str, Rule] = {
    "arith.constant": constant,
    "arith.select": select,
    "tt.make_range": make_range,
    "arith.extsi": extend_signed,
    "arith.trunci": truncate_integer,
    "arith.extui": extend_unsigned,
    "arith.sitofp": _to_float(True),
    "arith.uitofp": _to_float(False),
    "arith.fptosi": _to_integer(True),
    "arith.fptoui": _to_integer(False),
    "arith.extf": convert_float,
    "arith.truncf": convert_float,
    "tt.fp_to_fp": convert_float,
    "arith.bitcast": bitcast,
    "tt.bitcast": bitcast,
    "tt.ptr_to_int": _cast(Builder.ptrtoint),
    "tt.int_to_ptr": _cast(Builder.inttoptr),
}
