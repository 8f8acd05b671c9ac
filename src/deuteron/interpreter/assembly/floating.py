"""Instructions on floats, and conversions.

add.rn.f32       rounded by itself: fma(a, 1, b), which is not fused with a product; add.f32 may be
ex2.approx.f32   math.exp2: what is approximate on a GPU is as good as the target has it
.ftz             denormals are 0, before and after
"""

from __future__ import annotations

import functools
import math as numbers
from collections.abc import Callable, Sequence

from xdsl.dialects import arith, math
from xdsl.ir import Attribute, SSAValue

from deuteron.interpreter.assembly import control, dots, integers, predicates
from deuteron.interpreter.assembly.integers import INTEGER_RULES, by_kind
from deuteron.interpreter.assembly.predicates import compare, flushed
from deuteron.interpreter.assembly.registers import BITS, INTEGERS, PAIRS, TYPES, Registers, Rule
from deuteron.interpreter.assembly.scales import SCALES, from_scales, to_scales
from deuteron.interpreter.assembly.small_floats import SMALL_FLOATS, SmallFloat, decoded, encoded
from deuteron.ir.casts import FPToSIOp, FPToUIOp, SIToFPOp, UIToFPOp
from deuteron.ir.tt.convert import FpToFpOp, PreciseDivFOp, PreciseSqrtOp, RoundingMode
from deuteron.ir.types import bf16, bit_width_of, f8e4m3, f8e5m2, f16, f32, f64, i32
from deuteron.ptx.syntax import Operand

Emit = Callable[..., SSAValue]
_FP8 = {"e4m3x2": f8e4m3, "e5m2x2": f8e5m2}
_HALVES = ("f16x2", "bf16x2")
_EXACT = {f32: 23, f64: 52}


def elementwise(emit: Emit, *known: str) -> Rule:
    """An instruction on each value of its type; `emit(r, is_rounded, *values)`."""

    def rule(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
        *rest, type = modifiers
        r.only(rest, "ftz", "sat", *known)
        flush = "ftz" in rest
        columns = zip(*(r.parts(operand, type) for operand in operands[1:]), strict=True)
        results = []
        for column in columns:
            values = [flushed(r, value) for value in column] if flush else column
            result = emit(r, "rn" in rest, *values)
            result = flushed(r, result) if flush else result
            result = _not_negative(r, result) if "relu" in rest else result
            results.append(saturated(r, result) if "sat" in rest else result)
        r.write_parts(operands[0], results, type)

    return rule


def saturated(r: Registers, x: SSAValue) -> SSAValue:
    """In [0, 1]; NaN is 0."""
    type = _element(x)
    return r.op(arith.MinnumfOp, r.op(arith.MaxnumfOp, x, r.constant(0.0, type)), r.constant(1.0, type))


def _not_negative(r: Registers, x: SSAValue) -> SSAValue:
    """.relu: 0 for what is below; NaN stays."""
    return r.op(arith.MaximumfOp, x, r.constant(0.0, _element(x)))


def _element(x: SSAValue) -> Attribute:
    return getattr(x.type, "element_type", x.type)


def _one(r: Registers, x: SSAValue, sign: int = 1) -> SSAValue:
    return r.constant(float(sign), _element(x))


def _add(r: Registers, is_rounded: bool, a: SSAValue, b: SSAValue) -> SSAValue:
    return r.op(math.FmaOp, a, _one(r, a), b) if is_rounded else r.op(arith.AddfOp, a, b)


def _subtract(r: Registers, is_rounded: bool, a: SSAValue, b: SSAValue) -> SSAValue:
    return r.op(math.FmaOp, b, _one(r, b, -1), a) if is_rounded else r.op(arith.SubfOp, a, b)


def _multiply(r: Registers, is_rounded: bool, a: SSAValue, b: SSAValue) -> SSAValue:
    return r.op(math.FmaOp, a, b, r.constant(-0.0, _element(a))) if is_rounded else r.op(arith.MulfOp, a, b)


def _divide(r: Registers, is_rounded: bool, a: SSAValue, b: SSAValue) -> SSAValue:
    return r.op(PreciseDivFOp if is_rounded and _element(a) == f32 else arith.DivfOp, a, b)


def _with_sign(r: Registers, is_rounded: bool, sign: SSAValue, x: SSAValue) -> SSAValue:
    """copysign: its first operand has the sign."""
    bits = bit_width_of(_element(x))
    mask = -(1 << bits - 1)
    signed = r.op(arith.AndIOp, r.bits(sign, BITS[bits]), r.constant(mask, BITS[bits]))
    magnitude = r.op(arith.AndIOp, r.bits(x, BITS[bits]), r.constant(~mask, BITS[bits]))
    return r.bits(r.op(arith.OrIOp, signed, magnitude), _element(x))


def _reciprocal(r: Registers, is_rounded: bool, x: SSAValue) -> SSAValue:
    return _divide(r, is_rounded, _one(r, x), x)


def _square_root(r: Registers, is_rounded: bool, x: SSAValue) -> SSAValue:
    return r.op(PreciseSqrtOp if is_rounded and _element(x) == f32 else math.SqrtOp, x)


def simple(op: type) -> Emit:
    return lambda r, is_rounded, *values: r.op(op, *values)


def in_f32(op: type) -> Emit:
    """A function that narrow types have through f32."""

    def emit(r: Registers, is_rounded: bool, x: SSAValue) -> SSAValue:
        type = _element(x)
        return narrowed(r, r.op(op, widened(r, x)), type) if type in (f16, bf16) else r.op(op, x)

    return emit


def folded(op: type) -> Emit:
    return lambda r, is_rounded, *values: functools.reduce(functools.partial(r.op, op), values)


def extreme(quiet: type, propagating: type) -> Rule:
    """min, max, of three values as well: a NaN loses, unless `.NaN` is there."""
    rules = {False: elementwise(folded(quiet)), True: elementwise(folded(propagating), "NaN")}
    return lambda r, modifiers, operands: rules["NaN" in modifiers](r, modifiers, operands)


# -- conversions ---


def widened(r: Registers, x: SSAValue, wide: Attribute = f32) -> SSAValue:
    return r.cast(arith.ExtFOp, x, wide)


def narrowed(r: Registers, x: SSAValue, type: Attribute, rounding: RoundingMode = RoundingMode.RTNE) -> SSAValue:
    return r.value(FpToFpOp(x, type, rounding))


def convert(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    *rest, target, source = modifiers
    is_pair = target in (*_HALVES, *_FP8, *SMALL_FLOATS, SCALES) and source == "f32"
    if len(operands) != (3 if is_pair else 2):
        raise r.refusal(f"{len(operands)} operands")
    if target == SCALES:
        to_scales(r, rest, source, operands)
    elif source == SCALES:
        from_scales(r, rest, target, operands)
    elif target in SMALL_FLOATS:
        _convert_to_small(r, [*rest, source], SMALL_FLOATS[target], operands)
    elif source in SMALL_FLOATS:
        _convert_from_small(r, [*rest, target], SMALL_FLOATS[source], operands)
    elif target in (*_HALVES, *_FP8):
        _convert_pair(r, rest, target, source, operands)
    elif target == "tf32":
        r.only([source], "f32")
        (mode,) = rest
        r.write(operands[0], _to_tf32(r, r.read(operands[1], "f32"), mode), "b32")
    elif target not in TYPES or source not in TYPES:
        raise r.refusal(f"'.{target}.{source}' here")
    else:
        x = r.read(operands[1], source)
        x = flushed(r, x) if "ftz" in rest and source == "f32" else x
        rest = [modifier for modifier in rest if modifier != "ftz"]
        r.write(operands[0], _converted(r, rest, x, target, source), target)


def _converted(r: Registers, rest: list[str], x: SSAValue, target: str, source: str) -> SSAValue:
    if source in INTEGERS and target in INTEGERS:
        r.only(rest, "sat")
        x = _inside(r, x, target, source) if rest else x
        return r.resized(x, bit_width_of(TYPES[target]), source.startswith("s"))
    if source in INTEGERS:
        r.only(rest, "rn")
        return _from_integer(r, x, TYPES[target], source.startswith("s"))
    if target in INTEGERS:
        return _to_integer(r, rest, x, target)
    return _float_to_float(r, rest, x, TYPES[target])


def _inside(r: Registers, x: SSAValue, target: str, source: str) -> SSAValue:
    """The nearest of the integers that both types have."""
    (low, high), (least, most) = (_range_of(type) for type in (target, source))
    clip = (arith.MaxSIOp, arith.MinSIOp) if source.startswith("s") else (arith.MaxUIOp, arith.MinUIOp)
    x = r.op(clip[0], x, r.constant(max(low, least), TYPES[source]))
    return r.op(clip[1], x, r.constant(min(high, most), TYPES[source]))


def _range_of(type: str) -> tuple[int, int]:
    bits = bit_width_of(TYPES[type])
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if type.startswith("s") else (0, (1 << bits) - 1)


def _from_integer(r: Registers, x: SSAValue, type: Attribute, is_signed: bool) -> SSAValue:
    """To a narrow type through f64, which has every integer of 32 bits, so that it is rounded once."""
    op = SIToFPOp if is_signed else UIToFPOp
    if type in (f32, f64):
        return r.cast(op, x, type)
    if bit_width_of(x.type) == 64:
        raise r.refusal("integers of 64 bits to 16")
    return narrowed(r, narrowed_once(r, r.cast(op, x, f64)), type)


def narrowed_once(r: Registers, x: SSAValue) -> SSAValue:
    """An f64 with at most 32 digits as an f32 that rounds on to 16 bits as it does itself: the last digit says that
    there were others.
    """
    near = r.cast(arith.TruncFOp, x, f32)
    is_exact = compare(r, "eq", widened(r, near, f64), x, "f64")
    is_less = compare(r, "lt", widened(r, near, f64), x, "f64")
    bits = r.bits(near, i32)
    is_even = compare(r, "eq", r.op(arith.AndIOp, bits, r.constant(1, i32)), r.constant(0, i32), "u32")
    positive = compare(r, "gt", near, r.constant(0.0, f32), "f32")
    up = r.op(arith.AddiOp, bits, r.constant(1, i32))
    down = r.op(arith.SubiOp, bits, r.constant(1, i32))
    grows = compare(r, "eq", r.resized(positive, 8), r.resized(is_less, 8), "u8")
    odd = r.select(is_even, r.select(grows, up, down), bits)
    return r.bits(r.select(is_exact, bits, odd), f32)


def whole(r: Registers, mode: str, x: SSAValue) -> SSAValue:
    """Rounded to an integer, as a float: rni, rzi, rmi, rpi."""
    if mode == "rmi":
        return r.op(math.FloorOp, x)
    if mode == "rpi":
        return r.op(math.CeilOp, x)
    type = _element(x)
    if mode == "rzi":
        is_negative = compare(r, "lt", x, r.constant(0.0, type), "f32")
        return r.select(is_negative, r.op(math.CeilOp, x), r.op(math.FloorOp, x))
    # Half of a number that has no digits after the point: what is added to it is rounded there.
    large = r.constant(2.0 ** _EXACT[type], type)
    size = r.op(math.AbsFOp, x)
    near = r.op(math.FmaOp, r.op(math.FmaOp, size, _one(r, x), large), _one(r, x), r.op(arith.NegfOp, large))
    near = r.select(compare(r, "lt", size, large, "f32"), near, size)
    bits = BITS[bit_width_of(type)]
    sign = r.op(arith.AndIOp, r.bits(x, bits), r.constant(-(1 << bit_width_of(type) - 1), bits))
    return r.bits(r.op(arith.OrIOp, r.bits(near, bits), sign), type)


def _to_integer(r: Registers, rest: list[str], x: SSAValue, target: str) -> SSAValue:
    """What is too large is the largest; NaN is 0, or, where a type has 64 bits, the highest bit alone."""
    modes = [mode for mode in rest if mode != "sat"]
    r.only(modes, "rni", "rzi", "rmi", "rpi")
    x = widened(r, x) if _element(x) in (f16, bf16) else x
    type, bits, is_signed = _element(x), bit_width_of(TYPES[target]), target.startswith("s")
    rounded = whole(r, modes[0] if modes else "rzi", x)
    low, high = _range_of(target)
    below = numbers.ldexp(1.0, bits - is_signed)  # the least that is too large
    of_nan = -(1 << bits - 1) if 64 in (bits, bit_width_of(type)) else 0
    is_number = compare(r, "num", x, x, "f32")
    fits = r.select(is_number, rounded, r.constant(0.0, type))
    wide = BITS[max(bits, 32)]
    inside = r.select(compare(r, "lt", fits, r.constant(below, type), "f32"), fits, r.constant(0.0, type))
    inside = r.select(compare(r, "ge", inside, r.constant(float(low), type), "f32"), inside, r.constant(0.0, type))
    found = r.cast(FPToSIOp if is_signed else FPToUIOp, inside, wide)
    found = r.select(compare(r, "ge", fits, r.constant(below, type), "f32"), r.constant(high, wide), found)
    found = r.select(compare(r, "lt", fits, r.constant(float(low), type), "f32"), r.constant(low, wide), found)
    found = r.select(is_number, found, r.constant(of_nan, wide))
    return r.resized(found, bits)


def _float_to_float(r: Registers, rest: list[str], x: SSAValue, type: Attribute) -> SSAValue:
    modes = [mode for mode in rest if mode != "sat"]
    source = _element(x)
    if source == type and modes:
        r.only(modes, "rni", "rzi", "rmi", "rpi")
        x = whole(r, modes[0], x) if type in _EXACT else narrowed(r, whole(r, modes[0], widened(r, x)), type)
    elif bit_width_of(type) > bit_width_of(source):
        r.only(modes)
        x = widened(r, x, type)
    elif source != type:
        r.only(modes, "rn", "rz")
        if modes == ["rz"] and source != f32:
            raise r.refusal("'.rz' here")
        x = narrowed(r, x, type, RoundingMode.RTZ if modes == ["rz"] else RoundingMode.RTNE)
    return saturated(r, x) if "sat" in rest else x


def _to_tf32(r: Registers, x: SSAValue, mode: str) -> SSAValue:
    """To ten digits: to nearest, halves away from zero (rna) or to even (rn), or cut (rz); infinities and NaN stay."""
    r.only([mode], "rna", "rn", "rz")
    bits = r.bits(x, i32)
    extra = r.constant(0x1000 if mode == "rna" else 0, i32)
    if mode == "rn":
        is_odd = r.op(arith.AndIOp, r.op(arith.ShRUIOp, bits, r.constant(13, i32)), r.constant(1, i32))
        extra = r.op(arith.AddiOp, is_odd, r.constant(0xFFF, i32))
    up = r.op(arith.AndIOp, r.op(arith.AddiOp, bits, extra), r.constant(~0x1FFF, i32))
    exponent = r.op(arith.AndIOp, bits, r.constant(0x7F800000, i32))
    return r.select(compare(r, "eq", exponent, r.constant(0x7F800000, i32), "u32"), bits, up)


def _convert_pair(r: Registers, rest: list[str], target: str, source: str, operands: Sequence[Operand]) -> None:
    """Two values into one register: of two floats the first goes to the upper half."""
    if source in _FP8:
        r.only([*rest, target], "rn", "f16x2")
        bytes = r.split(r.read(operands[1], "b16"), 2)
        values = [narrowed_fp8(r, byte, _FP8[source]) for byte in bytes]
        r.write_parts(operands[0], values, "f16x2")
        return
    r.only(rest, "rn", "rz", "satfinite", "relu")
    r.only([source], "f32", "f16x2")
    values = r.parts(operands[1], source) if source == "f16x2" else [r.read(o, "f32") for o in operands[2:0:-1]]
    values = [_not_negative(r, x) for x in values] if "relu" in rest else values
    mode = RoundingMode.RTZ if "rz" in rest else RoundingMode.RTNE
    if target in _FP8:
        halves = [_to_fp8(r, x, _FP8[target]) for x in values]
        r.write(operands[0], r.joined([r.bits(half, BITS[8]) for half in halves]), "b16")
        return
    if "satfinite" in rest or source != "f32":
        raise r.refusal("this conversion")
    r.write_parts(operands[0], [narrowed(r, x, TYPES[PAIRS[target]], mode) for x in values], target)


def _convert_to_small(r: Registers, modifiers: list[str], format: SmallFloat, operands: Sequence[Operand]) -> None:
    """Two floats into a register, the first into its upper half."""
    r.only(modifiers, "rn", "satfinite", "f32")
    high, low = (encoded(r, r.read(operand, "f32"), format) for operand in operands[1:])
    pair = r.op(arith.OrIOp, r.op(arith.ShLIOp, high, r.constant(format.place_bits, i32)), low)
    r.write(operands[0], r.resized(pair, 2 * format.place_bits), f"b{2 * format.place_bits}")


def _convert_from_small(r: Registers, modifiers: list[str], format: SmallFloat, operands: Sequence[Operand]) -> None:
    """Two codes into the halves of a register."""
    r.only(modifiers, "rn", "f16x2")
    low = r.resized(r.read(operands[1], f"b{2 * format.place_bits}"), 32)
    high = r.op(arith.ShRUIOp, low, r.constant(format.place_bits, i32))
    r.write_parts(operands[0], [decoded(r, code, format) for code in (low, high)], "f16x2")


def narrowed_fp8(r: Registers, byte: SSAValue, type: Attribute) -> SSAValue:
    return r.value(FpToFpOp(r.bits(byte, type), f16))


def _to_fp8(r: Registers, x: SSAValue, type: Attribute) -> SSAValue:
    """What is too large, infinities too, is the largest number; NaN stays."""
    x = widened(r, x) if _element(x) == f16 else x
    most = 448.0 if type == f8e4m3 else 57344.0
    inside = r.op(arith.MaximumfOp, r.op(arith.MinimumfOp, x, r.constant(most, f32)), r.constant(-most, f32))
    return narrowed(r, inside, type)


_ROUNDING = ("rn", "approx", "full")
FLOAT_RULES: dict[str, Rule] = {
    "add": elementwise(_add, "rn"),
    "sub": elementwise(_subtract, "rn"),
    "mul": elementwise(_multiply, "rn"),
    "div": elementwise(_divide, *_ROUNDING),
    "min": extreme(arith.MinnumfOp, arith.MinimumfOp),
    "max": extreme(arith.MaxnumfOp, arith.MaximumfOp),
    "neg": elementwise(simple(arith.NegfOp)),
    "abs": elementwise(simple(math.AbsFOp)),
}
ALL_RULES: dict[str, Rule] = {
    **integers.RULES,
    **predicates.RULES,
    **dots.RULES,
    **control.RULES,
    **INTEGER_RULES,
    **{name: by_kind(INTEGER_RULES[name], rule) for name, rule in FLOAT_RULES.items()},
    "fma": elementwise(simple(math.FmaOp), "rn", "relu"),
    "copysign": elementwise(_with_sign),
    "rcp": elementwise(_reciprocal, *_ROUNDING),
    "sqrt": elementwise(_square_root, *_ROUNDING),
    "rsqrt": elementwise(simple(math.RsqrtOp), "approx"),
    "ex2": elementwise(in_f32(math.Exp2Op), "approx"),
    "lg2": elementwise(simple(math.Log2Op), "approx"),
    "sin": elementwise(simple(math.SinOp), "approx"),
    "cos": elementwise(simple(math.CosOp), "approx"),
    "tanh": elementwise(in_f32(math.TanhOp), "approx"),
    "cvt": convert,
}
