"""Conversions between types, constants and selects."""

from __future__ import annotations

from xdsl.ir import Attribute, Operation

from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.elements import from_bits, register_type, to_bits
from deuteron.backend.gpu.fragment import Fragment, Operand, registers_of, with_registers
from deuteron.backend.gpu.rules.elementwise import Emit, each, plain
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, bit_width, const
from deuteron.backend.math.conversions import int_to_odd_f32
from deuteron.errors import CompilationError
from deuteron.ir.arith import constant_value
from deuteron.ir.tt.convert import RoundingMode
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.types import element_type_of, f32, is_fp8, is_tile
from deuteron.layout.linear import REGISTER


def constant(ctx: Context, op: Operation) -> Operand:
    number = constant_value(op.result)
    if number is None:
        raise CompilationError("a constant tile must hold the same number everywhere; load the numbers from memory")
    value = _number(number, element_type_of(op.result.type))
    if not is_tile(op.result.type):
        return value
    layout = layout_of(op.result.type)
    return Fragment(layout, (value,) * layout.in_size(REGISTER))


def _number(number: float, type: Attribute) -> Value:
    if is_fp8(type):
        return const("i8", _fp8_bits(number, type))
    return const(register_type(type), number)


def _fp8_bits(number: float, type: Attribute) -> int:
    import numpy as np  # deferred, as the next line: brings NumPy, for what few kernels have

    from deuteron.interpreter.numerics.formats import FORMATS

    return int(FORMATS[type].encode(np.float32(number)))


def select(ctx: Context, op: Operation, condition: Operand, x: Operand, y: Operand) -> Operand:
    def emit(condition: Value, x: Value, y: Value) -> Value:
        known = {"true": x, "false": y}.get(condition.text)
        return known if known is not None else ctx.b.select(condition, x, y)

    if isinstance(x, Fragment) and not isinstance(condition, Fragment):
        return x.zip_map(lambda *values: emit(condition, *values), y)
    return each(emit, condition, x, y)


def _integer(emit: Emit) -> Rule:
    def rule(ctx: Context, op: Operation, x: Operand) -> Operand:
        type = register_type(op.results[0].type)
        return each(lambda value: emit(ctx.b, value, type), x)

    return rule


def _to_float(signed: bool) -> Rule:
    """To bf16 and fp8 from 32 bits on by way of a float that is rounded to odd: another one would round twice."""

    def rule(ctx: Context, op: Operation, x: Operand) -> Operand:
        target = element_type_of(op.results[0].type)
        type = register_type(target)
        narrow = ctx.isa.conversion(ctx.machine, f32, target)

        def emit(value: Value) -> Value:
            convert = ctx.b.sitofp if signed else ctx.b.uitofp
            if type in ("half", "float", "double"):
                return convert(value, type)
            is_exact = bit_width(value.type) <= 16
            single = convert(value, "float") if is_exact else int_to_odd_f32(ctx.b, value, signed)
            return narrow(ctx.b, single)[0]

        distinct = list(dict.fromkeys(registers_of(x)))
        made = ctx.isa.integers_to_floats(ctx.b, distinct, type, signed)
        return each(lambda value: made[value] if value in made else emit(value), x)

    return rule


def _to_integer(signed: bool) -> Rule:
    """Towards zero; what does not fit becomes the nearest number that does, NaN 0."""

    def rule(ctx: Context, op: Operation, x: Operand) -> Operand:
        type = register_type(op.results[0].type)

        def emit(value: Value) -> Value:
            wide = value if value.type == "double" else ctx.b.fpext(value, "float")
            return ctx.isa.float_to_integer(ctx.b, wide, type, signed)

        return each(emit, x)

    return rule


def convert_float(ctx: Context, op: Operation, x: Operand) -> Operand:
    """Between any two floating types; narrowing rounds once."""
    source, target = (element_type_of(value.type) for value in (op.operands[0], op.results[0]))
    rounding = getattr(op, "rounding", None)
    toward_zero = rounding is not None and rounding.value.data == RoundingMode.RTZ
    return in_format(ctx, x, source, target, toward_zero)


def in_format(ctx: Context, x: Operand, source: Attribute, target: Attribute, toward_zero: bool = False) -> Operand:
    """Floats of one type in another: fp8 in pairs, as the instructions do."""
    if source == target:
        return x
    convert = ctx.isa.conversion(ctx.machine, source, target, toward_zero)
    if not is_fp8(source) and not is_fp8(target):
        return each(lambda value: convert(ctx.b, value)[0], x)
    registers, results = registers_of(x), []
    for begin in range(0, len(registers), 2):
        results += convert(ctx.b, *registers[begin : begin + 2])
    return with_registers(x, results)


def bitcast(ctx: Context, op: Operation, x: Operand) -> Operand:
    """The bits in memory stay the same."""
    source, target = (element_type_of(value.type) for value in (op.operands[0], op.results[0]))
    if register_type(source) == register_type(target):
        return x
    return each(lambda value: from_bits(ctx.b, to_bits(ctx.b, value, source), target), x)


RULES: dict[str, Rule] = {
    "arith.constant": constant,
    "arith.select": select,
    "arith.extsi": _integer(Builder.sext),
    "arith.trunci": _integer(Builder.trunc),
    "arith.extui": _integer(Builder.zext),
    "arith.sitofp": _to_float(True),
    "arith.uitofp": _to_float(False),
    "arith.fptosi": _to_integer(True),
    "arith.fptoui": _to_integer(False),
    "arith.extf": convert_float,
    "arith.truncf": convert_float,
    "tt.fp_to_fp": convert_float,
    "arith.bitcast": bitcast,
    "tt.bitcast": bitcast,
    "tt.ptr_to_int": plain(lambda b, x: b.ptrtoint(x)),
    "tt.int_to_ptr": plain(lambda b, x: b.inttoptr(x, "ptr addrspace(1)")),
}
