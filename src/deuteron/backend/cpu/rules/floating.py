"""Floating-point arithmetic and mathematics. Narrow types are computed in float and rounded after every op.

f16 x * y + z       round_f16(round_f16(x * y) + z)       as the language defines it
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from xdsl.ir import Operation

from deuteron.backend.cpu.algebra import lanewise
from deuteron.backend.cpu.context import Context, Rule
from deuteron.backend.cpu.fragment import Fragment
from deuteron.backend.cpu.math import functions
from deuteron.backend.cpu.math.by_target import BY_TARGET
from deuteron.backend.cpu.memory.formats import rounded
from deuteron.backend.cpu.plan.products.marks import is_only_multiplied
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.targets import architecture_of
from deuteron.backend.llvm.types import Value, const, like
from deuteron.backend.math.functions import precise_divide
from deuteron.backend.math.remainder import remainder
from deuteron.ir.tt.convert import PropagateNan
from deuteron.ir.types import bf16, element_type_of, is_narrow_float
from deuteron.machine.cpu import CPU

Emit = Callable[..., Value]

_SIGN = -1 << 31  # of a float, as an i32


def _rounding(emit: Emit) -> Rule:
    """A rule for an op whose result has to be rounded to its type."""

    def rule(ctx: Context, op: Operation, *fragments: Fragment) -> Fragment:
        type = element_type_of(op.results[0].type)
        flushes = is_only_multiplied(op.results[0])
        round_ = partial(rounded, element_type=type, target=ctx.target, flushes=flushes)
        return lanewise(ctx.emitter, lambda b, *xs: round_(b, emit(b, *xs)), *fragments)

    return rule


def _exact(emit: Emit) -> Rule:
    """A rule for an op whose result is one of its operands, but for the sign."""

    def rule(ctx: Context, op: Operation, *fragments: Fragment) -> Fragment:
        return lanewise(ctx.emitter, emit, *fragments)

    return rule


def _on_sign(emit: Emit, on_bits: Emit, mask: int) -> Rule:
    """A rule for an op on signs. Of bf16 it is on bits, of which LLVM finds out that 16 are enough: what is loaded and
    stored is neither widened nor made narrow then.
    """

    def by_bits(b: Builder, x: Value) -> Value:
        bits = b.bitcast(x, like(x.type, "i32"))
        return b.bitcast(on_bits(b, bits, const(bits.type, mask)), x.type)

    def rule(ctx: Context, op: Operation, x: Fragment) -> Fragment:
        return lanewise(ctx.emitter, by_bits if element_type_of(op.results[0].type) == bf16 else emit, x)

    return rule


def _intrinsic(name: str) -> Emit:
    return lambda b, *xs: b.intrinsic(name, xs[0].type, *xs)


def _number_of(name: str, target: CPU) -> str:
    """The intrinsic for the larger or smaller of two numbers, or the one that is no NaN.

    AArch64's instruction gives NaN where one is a signalling NaN, unless that is made a quiet one before. On x86 that
    takes no more instructions, but they wait for each other.
    """
    return f"llvm.{name}imumnum" if architecture_of(target.cpu) == "aarch64" else f"llvm.{name}num"


def _extremum(name: str) -> Rule:
    def rule(ctx: Context, op: Operation, x: Fragment, y: Fragment) -> Fragment:
        return lanewise(ctx.emitter, _intrinsic(_number_of(name, ctx.target)), x, y)

    return rule


def _to_whole(emit: Callable[..., Value]) -> Rule:
    def rule(ctx: Context, op: Operation, x: Fragment) -> Fragment:
        return lanewise(ctx.emitter, lambda b, value: emit(b, value, ctx.target.rounds), x)

    return rule


def _by_target(function: Callable[..., Value]) -> Rule:
    """A rule for a function that CPUs compute in several ways."""

    def rule(ctx: Context, op: Operation, x: Fragment) -> Fragment:
        return _rounding(lambda b, value: function(b, value, ctx.target))(ctx, op, x)

    return rule


def compare(ctx: Context, op: Operation, x: Fragment, y: Fragment) -> Fragment:
    return lanewise(ctx.emitter, lambda b, *values: b.fcmp(op.predicate_name, *values), x, y)


def clamp(ctx: Context, op: Operation, x: Fragment, low: Fragment, high: Fragment) -> Fragment:
    keeps_nan = op.propagate_nan.value.data == PropagateNan.ALL
    largest, smallest = (f"llvm.{name}imum" if keeps_nan else _number_of(name, ctx.target) for name in ("max", "min"))

    def emit(b: Builder, x: Value, low: Value, high: Value) -> Value:
        return b.intrinsic(smallest, x.type, b.intrinsic(largest, x.type, x, low), high)

    return lanewise(ctx.emitter, emit, x, low, high)


def remf(ctx: Context, op: Operation, x: Fragment, y: Fragment) -> Fragment:
    return lanewise(ctx.emitter, partial(remainder, divides=ctx.target.fuses and ctx.target.rounds), x, y)


def multiply_add(ctx: Context, op: Operation, *fragments: Fragment) -> Fragment:
    is_narrow = is_narrow_float(element_type_of(op.results[0].type))
    return _rounding(functions.narrow_fma if is_narrow else functions.fma)(ctx, op, *fragments)


RULES: dict[str, Rule] = {
    "arith.addf": _rounding(Builder.fadd),
    "arith.subf": _rounding(Builder.fsub),
    "arith.mulf": _rounding(Builder.fmul),
    "arith.divf": _rounding(Builder.fdiv),
    "arith.remf": remf,
    "arith.negf": _on_sign(Builder.fneg, Builder.xor, _SIGN),
    "arith.maximumf": _exact(_intrinsic("llvm.maximum")),
    "arith.minimumf": _exact(_intrinsic("llvm.minimum")),
    "arith.maxnumf": _extremum("max"),
    "arith.minnumf": _extremum("min"),
    "arith.cmpf": compare,
    "math.absf": _on_sign(Builder.fabs, Builder.and_, ~_SIGN),
    "math.floor": _to_whole(functions.floor),
    "math.ceil": _to_whole(functions.ceil),
    "math.fma": multiply_add,
    "tt.clampf": clamp,
    "tt.precise_sqrt": _rounding(Builder.sqrt),
    "tt.precise_divf": _rounding(precise_divide),
    **{f"math.{name}": _rounding(function) for name, function in functions.FUNCTIONS.items()},
    **{f"math.{name}": _by_target(function) for name, function in BY_TARGET.items()},
}
