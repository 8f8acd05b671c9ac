"""Integer arithmetic: arith.addi ... arith.shrsi, tt.mulhiui. Indices stay affine; divisions never trap."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation

from deuteron.analysis.axis.distances import Distances
from deuteron.analysis.axis.ranges import largest_in_any_grid
from deuteron.backend.cpu import algebra
from deuteron.backend.cpu.algebra import as_vector, lanewise, of_value
from deuteron.backend.cpu.context import Context, Rule
from deuteron.backend.cpu.fragment import Affine, Fragment, Uniform, Vector, known_truth, lanes_of, level_of
from deuteron.backend.cpu.memory.full_masks import SWAPPED, mask_of, where_both_are_full, where_comparison_is_full
from deuteron.backend.cpu.plan import ops
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, bit_width, const, like, vector_const, width
from deuteron.backend.math import division
from deuteron.ir.tt.shape import MakeRangeOp
from deuteron.ir.types import bit_width_of, element_type_of, i1

Emit = Callable[..., Value]
_MOST_BITS_OF_DOUBLE = 32


def addi(ctx: Context, op: Operation, x: Fragment, y: Fragment) -> Fragment:
    return algebra.add(ctx.emitter, x, y)


def subi(ctx: Context, op: Operation, x: Fragment, y: Fragment) -> Fragment:
    return algebra.subtract(ctx.emitter, x, y)


def muli(ctx: Context, op: Operation, x: Fragment, y: Fragment) -> Fragment:
    return algebra.multiply(ctx.emitter, x, y)


def _plain(emit: Emit) -> Rule:
    def rule(ctx: Context, op: Operation, *fragments: Fragment) -> Fragment:
        return lanewise(ctx.emitter, emit, *fragments)

    return rule


def _intrinsic(name: str) -> Rule:
    return _plain(lambda b, *values: b.intrinsic(name, values[0].type, *values))


def _shift(emit: Emit) -> Rule:
    """A shift by the width or more gives what shifting bit by bit would, where LLVM leaves it open."""

    def any_shift(b: Builder, x: Value, amount: Value) -> Value:
        limit = const(x.type, bit_width(x.type) - 1)
        fits = b.icmp("ule", amount, limit)
        largest = emit(b, x, limit) if emit is Builder.ashr else const(x.type, 0)
        return b.select(fits, emit(b, x, b.select(fits, amount, const(x.type, 0))), largest)

    def rule(ctx: Context, op: Operation, x: Fragment, amount: Fragment) -> Fragment:
        most = largest_in_any_grid(op.rhs)
        is_short = most is not None and most < bit_width_of(element_type_of(op.rhs.type))
        return lanewise(ctx.emitter, emit if is_short else any_shift, x, amount)

    return rule


def _fits_double(type: str) -> bool:
    """Whether integers may be divided as double, which holds 32 bits exactly. Bits have no signs, as double has."""
    return 1 < bit_width(type) <= _MOST_BITS_OF_DOUBLE


def _divided(b: Builder, x: Value, divisor: Value, signed: bool) -> Value:
    """By a divisor that is safe."""
    if width(x.type) == 1 or not _fits_double(x.type) or division.known_number(divisor) is not None:
        return division.divided(b, x, divisor, signed)
    # a vector is divided as double: LLVM divides integers lane by lane
    to_float, to_int = (b.sitofp, b.fptosi) if signed else (b.uitofp, b.fptoui)
    doubles = [to_float(value, like(x.type, "double")) for value in (x, divisor)]
    return to_int(b.fdiv(*doubles, flags=""), x.type)


def _quotient_and_remainder(b: Builder, x: Value, y: Value, signed: bool) -> tuple[Value, Value]:
    divisor = division.safe_divisor(b, y, signed)
    divided = _divided(b, x, divisor, signed)
    rest = b.sub(x, b.mul(divided, divisor))
    return division.quotient(b, divided, y, signed), division.remainder(b, x, rest, y)


def _division(signed: bool, part: int) -> Rule:
    """The quotient (part 0) or the remainder."""

    def rule(ctx: Context, op: Operation, x: Fragment, y: Fragment) -> Fragment:
        if _is_regular(ctx, op, x):
            return _of_first_lanes(ctx, x, y, signed)[part]
        if op in ctx.nest_state.vectorisation.quotients.distances and isinstance(x, Affine):
            return _at_distances(ctx, ctx.nest_state.vectorisation.quotients.distances[op], x, y, signed, part)
        if _is_by_one_number(x, y):
            return _by_reciprocal(ctx, x, y, signed)[part]
        return lanewise(ctx.emitter, lambda b, *xs: _quotient_and_remainder(b, *xs, signed)[part], x, y)

    return rule


def _is_by_one_number(x: Fragment, y: Fragment) -> bool:
    """Whether all lanes are divided by a number that only the running program knows, and that a double holds."""
    is_one = isinstance(y, Uniform) and not isinstance(x, Uniform) and division.known_number(y.value) is None
    return is_one and _fits_double(y.value.type)


def _by_reciprocal(ctx: Context, x: Fragment, y: Uniform, signed: bool) -> tuple[Fragment, Fragment]:
    """The quotient is x * (1 + 2 ** -40) / y without its fraction; all but x is one number. Of a multiple of y the
    product is not below the quotient, whatever was rounded; of others it stays below the next, as |x| <= 2 ** 32.
    """
    b, level = ctx.emitter.at(y.level), level_of(x, y)
    divisor = division.safe_divisor(b, y.value, signed)
    to_float = Builder.sitofp if signed else Builder.uitofp
    reciprocal = b.fdiv(const("double", 1 + 2.0**-40), to_float(b, divisor, "double"), flags="")
    b, lanes = ctx.emitter.at(level), lanes_of(x)
    xs, ys, divisors = as_vector(ctx.emitter, x, lanes), b.splat(y.value, lanes), b.splat(divisor, lanes)
    product = b.fmul(to_float(b, xs, like(xs.type, "double")), b.splat(reciprocal, lanes), flags="")
    divided = (b.fptosi if signed else b.fptoui)(product, xs.type)
    whole, rest = division.quotient(b, divided, ys, signed), b.sub(xs, b.mul(divided, divisors))
    return of_value(whole, level), of_value(division.remainder(b, xs, rest, ys), level)


def _is_regular(ctx: Context, op: Operation, x: Fragment) -> bool:
    """Whether the quotient is the same in all lanes: see plan/vectors/quotients.py."""
    return op in ctx.nest_state.vectorisation.quotients.ops and isinstance(x, Affine)


def _of_first_lanes(ctx: Context, x: Affine, y: Uniform, signed: bool) -> tuple[Fragment, Fragment]:
    level = level_of(x, y)
    quotient, rest = _quotient_and_remainder(ctx.emitter.at(level), x.base, y.value, signed)
    return Uniform(quotient, level), Affine(rest, x.step, x.lanes, level)


def _at_distances(ctx: Context, known: Distances, x: Affine, y: Uniform, signed: bool, part: int) -> Fragment:
    """Of lanes at known distances, or of known numbers, what the first one has is computed."""
    level = level_of(x, y) if known.step else 0
    b, type = ctx.emitter.at(level), x.base.type
    if not known.step:
        return Vector(vector_const(type, known.distances), level)
    first = _quotient_and_remainder(b, x.base, y.value, signed)[part]
    apart = vector_const(type, [distance - known.distances[0] for distance in known.distances])
    return Vector(b.add(b.splat(first, x.lanes), apart), level)


def _floor_divide(b: Builder, x: Value, y: Value) -> Value:
    quotient, rest = _quotient_and_remainder(b, x, y, True)
    differs = b.and_(b.icmp("ne", rest, const(x.type, 0)), b.icmp("slt", b.xor(rest, y), const(x.type, 0)))
    return b.sub(quotient, b.zext(differs, x.type))


def _ceil_divide(signed: bool) -> Rule:
    def emit(b: Builder, x: Value, y: Value) -> Value:
        quotient, rest = _quotient_and_remainder(b, x, y, signed)
        above = b.icmp("ne", rest, const(x.type, 0))
        if signed:
            above = b.and_(above, b.icmp("sge", b.xor(rest, y), const(x.type, 0)))
        return b.add(quotient, b.zext(above, x.type))

    return _plain(emit)


def _multiply_high(b: Builder, x: Value, y: Value) -> Value:
    bits = bit_width(x.type)
    wide = like(x.type, f"i{2 * bits}")
    product = b.mul(b.zext(x, wide), b.zext(y, wide))
    return b.trunc(b.lshr(product, const(wide, bits)), x.type)


def _absolute(b: Builder, x: Value) -> Value:
    return b.intrinsic("llvm.abs", x.type, x, const("i1", False))


def compare(ctx: Context, op: Operation, x: Fragment, y: Fragment) -> Fragment:
    mask = _compared_in_bytes(ctx, op, x, y)
    if mask is None:
        mask = lanewise(ctx.emitter, lambda b, *values: b.icmp(op.predicate_name, *values), x, y)
    return mask_of(mask, where_comparison_is_full(ctx.emitter, op.predicate_name, x, y))


def _compared_in_bytes(ctx: Context, op: Operation, x: Fragment, y: Fragment) -> Fragment | None:
    """A range compared with one number: numbers of lanes, bytes, with how many of them are before it. Of more lanes
    than a register has words that is one comparison; None where it is not such a one.
    """
    sign, relation = op.predicate_name[:1], op.predicate_name[1:]
    if relation not in SWAPPED or sign != "s" or not ctx.target.masks_narrow:
        return None
    counted = op.operands[0]
    if isinstance(x, Uniform):
        x, y, relation, counted = y, x, SWAPPED[relation], op.operands[1]
    is_range = isinstance(ops.forwarded(counted).owner, MakeRangeOp)
    if not (is_range and isinstance(x, Affine) and x.step == 1 and x.elements is None and isinstance(y, Uniform)):
        return None
    lanes, level = x.lanes, level_of(x, y)
    if not ctx.target.vector_width(bit_width(x.base.type)) < lanes < 1 << 8:
        return None
    b = ctx.emitter.at(level)
    before = b.sub(b.sext(y.value, "i64"), b.sext(x.base, "i64"))
    if relation in ("le", "gt"):
        before = b.add(before, const("i64", 1))
    count = b.trunc(b.smin(b.smax(before, const("i64", 0)), const("i64", lanes)), "i8")
    predicate = "ult" if relation in ("lt", "le") else "uge"
    return Vector(b.icmp(predicate, vector_const("i8", range(lanes)), b.splat(count, lanes)), level)


def andi(ctx: Context, op: Operation, x: Fragment, y: Fragment) -> Fragment:
    for one, other in ((x, y), (y, x)):
        if (truth := known_truth(one)) is not None:
            return other if truth else one
    both = lanewise(ctx.emitter, Builder.and_, x, y)
    if element_type_of(op.result.type) != i1:
        return both
    return mask_of(both, where_both_are_full(ctx.emitter, x, y))


RULES: dict[str, Rule] = {
    "arith.addi": addi,
    "arith.subi": subi,
    "arith.muli": muli,
    "arith.divsi": _division(True, 0),
    "arith.divui": _division(False, 0),
    "arith.remsi": _division(True, 1),
    "arith.remui": _division(False, 1),
    "arith.floordivsi": _plain(_floor_divide),
    "arith.ceildivsi": _ceil_divide(True),
    "arith.ceildivui": _ceil_divide(False),
    "arith.minsi": _intrinsic("llvm.smin"),
    "arith.maxsi": _intrinsic("llvm.smax"),
    "arith.minui": _intrinsic("llvm.umin"),
    "arith.maxui": _intrinsic("llvm.umax"),
    "arith.andi": andi,
    "arith.ori": _plain(Builder.or_),
    "arith.xori": _plain(Builder.xor),
    "arith.shli": _shift(Builder.shl),
    "arith.shrui": _shift(Builder.lshr),
    "arith.shrsi": _shift(Builder.ashr),
    "arith.cmpi": compare,
    "math.absi": _plain(_absolute),
    "tt.mulhiui": _plain(_multiply_high),
}
