"""Floating-point arithmetic and mathematics.

    + - * fma min max, comparisons     native, f16 and bf16 included
    / and functions of f16, bf16       in f32, rounded once

With the option `enable_fp_fusion` x * y + z may be rounded once.
"""

from __future__ import annotations

from functools import partial

from xdsl.ir import Operation

from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.fragment import Operand
from deuteron.backend.gpu.rules.elementwise import Emit, each, each_vector, intrinsic, plain
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const, element, like
from deuteron.backend.math.functions import BRANCHING, FUNCTIONS, OPERATORS, precise_divide
from deuteron.ir.tt.convert import PropagateNan
from deuteron.ir.types import FLOAT_TYPES, element_type_of, is_fp8


def _in_f32(emit: Emit) -> Rule:
    """A rule that computes f16 and bf16 in f32."""
    return plain(lambda b, *values: _widened(b, emit, *values))


def _function(name: str) -> Rule:
    """A rule for a function of the target."""

    def rule(ctx: Context, op: Operation, *operands: Operand) -> Operand:
        emit = partial(_widened, ctx.b, ctx.isa.functions[name])
        return each_vector(ctx.b, emit, *operands) if name in BRANCHING else each(emit, *operands)

    return rule


def _widened(b: Builder, emit: Emit, *values: Value) -> Value:
    type = values[0].type
    if element(type) not in ("half", "bfloat"):
        return emit(b, *values)
    return b.fptrunc(emit(b, *(b.fpext(value, like(type, "float")) for value in values)), type)


def compare(ctx: Context, op: Operation, x: Operand, y: Operand) -> Operand:
    return each(lambda *values: ctx.b.fcmp(op.predicate_name, *values), x, y)


def clamp(ctx: Context, op: Operation, x: Operand, low: Operand, high: Operand) -> Operand:
    keeps_nan = op.propagate_nan.value.data == PropagateNan.ALL
    names = ("llvm.maximum", "llvm.minimum") if keeps_nan else ("llvm.maxnum", "llvm.minnum")

    def emit(x: Value, low: Value, high: Value) -> Value:
        return ctx.b.intrinsic(names[1], x.type, ctx.b.intrinsic(names[0], x.type, x, low), high)

    return each(emit, x, low, high)


def absolute(ctx: Context, op: Operation, x: Operand) -> Operand:
    """Of fp8, which is held as its bits, without the sign's; where minus zero's code is NaN it stays."""
    element = element_type_of(op.result.type)
    if not is_fp8(element):
        return each(lambda value: ctx.b.fabs(value), x)
    declared = FLOAT_TYPES[element]

    def emit(value: Value) -> Value:
        magnitude = ctx.b.and_(value, const("i8", 0x7F))
        if declared.has_minus_zero:
            return magnitude
        nan = const("i8", declared.nan_code)
        return ctx.b.select(ctx.b.icmp("eq", value, nan), nan, magnitude)

    return each(emit, x)


RULES: dict[str, Rule] = {
    "arith.addf": plain(Builder.fadd),
    "arith.subf": plain(Builder.fsub),
    "arith.mulf": plain(Builder.fmul),
    "arith.divf": _function("divide"),
    "arith.remf": _function("remainder"),
    "arith.negf": plain(Builder.fneg),
    "arith.maximumf": intrinsic("llvm.maximum"),
    "arith.minimumf": intrinsic("llvm.minimum"),
    "arith.maxnumf": intrinsic("llvm.maxnum"),
    "arith.minnumf": intrinsic("llvm.minnum"),
    "arith.cmpf": compare,
    "math.fma": intrinsic("llvm.fma"),
    "math.absf": absolute,
    "math.floor": _in_f32(lambda b, x: b.intrinsic("llvm.floor", x.type, x)),
    "math.ceil": _in_f32(lambda b, x: b.intrinsic("llvm.ceil", x.type, x)),
    "tt.clampf": clamp,
    "tt.precise_sqrt": _in_f32(Builder.sqrt),
    "tt.precise_divf": _in_f32(precise_divide),
    **{f"math.{name}": _function(name) for name in FUNCTIONS if name not in OPERATORS},
}
