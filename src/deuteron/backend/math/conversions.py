"""Conversions between element types, on scalars and vectors alike, without calls of libgcc or libm.

    f32_to_bf16(b, x)                          float -> i16: rounded to nearest even, NaN stays NaN
    narrow(b, x, FP8E4NV), widen(b, y, FP8E4NV)        float -> i8, i8 -> float
    widen_through_half(b, y, FP8E4NV)          i8 -> half -> float: for CPUs that convert halves
    round_to_odd(b, x)                         double -> float, so that a second rounding is as good as one
    int_to_odd_f32(b, x, signed=True)          integer -> float, the same
    float_to_int(b, x, "i32", signed=True)     saturates; NaN gives 0

Values of fp16, bf16 and fp8 are held as their bits, i16 and i8. LLVM's own fptrunc is not used for them: on
x86-64-v3 it calls `__truncsfbf2` and `__truncdfhf2`, and the bf16 instruction of AVX-512 flushes
subnormals. fp16 has F16C where the CPU converts it: 2 instructions against 20.
"""

from __future__ import annotations

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, bit_width, const, element, is_float, like, width
from deuteron.dtypes import FP16, FP32, FloatType

_MOST_WHOLE = {"float": 1 << 24, "double": 1 << 53}  # up to these all whole numbers are floats
_SPARE = 64 - 53  # bits of an integer that a double has none for


def f32_to_bf16(b: Builder, x: Value, toward_zero: bool = False) -> Value:
    """float -> i16."""
    bits_type = like(x.type, "i32")
    bits = b.bitcast(x, bits_type)
    odd = b.and_(b.lshr(bits, const(bits_type, 16)), const(bits_type, 1))
    rounded = bits if toward_zero else b.add(b.add(bits, const(bits_type, 0x7FFF)), odd)
    quiet = b.or_(bits, const(bits_type, 0x400000))
    result = b.select(b.fcmp("uno", x, x), quiet, rounded)
    return b.trunc(b.lshr(result, const(bits_type, 16)), like(x.type, "i16"))


def bf16_to_f32(b: Builder, x: Value) -> Value:
    """i16 -> float, exactly."""
    bits_type = like(x.type, "i32")
    return b.bitcast(b.shl(b.zext(x, bits_type), const(bits_type, 16)), like(x.type, "float"))


def f32_to_f16(b: Builder, x: Value, converts_half: bool, toward_zero: bool = False) -> Value:
    """float -> i16; `converts_half` is whether the CPU can do it (CPU.converts_half)."""
    if not converts_half or toward_zero:
        return narrow(b, x, FP16, toward_zero)
    return b.bitcast(b.fptrunc(x, like(x.type, "half")), like(x.type, "i16"))


def f16_to_f32(b: Builder, x: Value, converts_half: bool) -> Value:
    """i16 -> float, exactly."""
    if not converts_half:
        return widen(b, x, FP16)
    return b.fpext(b.bitcast(x, like(x.type, "half")), like(x.type, "float"))


def narrow(b: Builder, x: Value, format: FloatType, toward_zero: bool = False) -> Value:
    """float -> the bits of a small format, rounded to nearest even or towards zero."""
    type = like(x.type, "i32")
    bits = b.bitcast(x, type)
    magnitude = b.and_(bits, const(type, 0x7FFFFFFF))
    is_subnormal = b.icmp("ult", magnitude, const(type, 128 - format.bias << 23))
    subnormal = (_truncate_subnormal if toward_zero else _round_subnormal)(b, magnitude, format)
    code = b.select(is_subnormal, subnormal, _round_normal(b, magnitude, format, toward_zero))
    code = _limit(b, code, magnitude, format, toward_zero)
    sign = b.and_(b.lshr(bits, const(type, 32 - format.bits)), const(type, format.sign_code))
    if not format.has_minus_zero:
        sign = b.select(b.icmp("eq", code, const(type, 0)), code, sign)
    return b.trunc(b.or_(code, sign), like(x.type, f"i{format.bits}"))


def _shift(format: FloatType) -> int:
    """How many more bits the mantissa of a float has."""
    return FP32.mantissa_bits - format.mantissa_bits


def _round_normal(b: Builder, magnitude: Value, format: FloatType, toward_zero: bool) -> Value:
    """Exponent rebased, mantissa cut off with rounding; a carry goes into the exponent, where it belongs."""
    type, shift = magnitude.type, const(magnitude.type, _shift(format))
    rebased = b.add(magnitude, const(type, (format.bias - 127) << 23))
    if not toward_zero:
        odd = b.and_(b.lshr(magnitude, shift), const(type, 1))
        rebased = b.add(b.add(rebased, const(type, (1 << (_shift(format) - 1)) - 1)), odd)
    return b.lshr(rebased, shift)


def _round_subnormal(b: Builder, magnitude: Value, format: FloatType) -> Value:
    """Adding the float whose last place is the format's smallest number makes the adder round."""
    type = magnitude.type
    magic = const(type, 128 - format.bias - format.mantissa_bits + 23 << 23)
    float_type = like(type, "float")
    total = b.fadd(b.bitcast(magnitude, float_type), b.bitcast(magic, float_type), flags="")
    return b.sub(b.bitcast(total, type), magic)


def _truncate_subnormal(b: Builder, magnitude: Value, format: FloatType) -> Value:
    """The whole part of the number counted in the format's smallest numbers. Large ones are not used."""
    float_type = like(magnitude.type, "float")
    unit = const(float_type, 2.0 ** (format.bias - 1 + format.mantissa_bits))
    return float_to_int(b, b.fmul(b.bitcast(magnitude, float_type), unit, flags=""), "i32", signed=True)


def _limit(b: Builder, code: Value, magnitude: Value, format: FloatType, toward_zero: bool) -> Value:
    """The code with NaN, infinity and what is too large put right."""
    type = code.type
    infinity, largest = const(type, format.end_code), const(type, format.largest_code)
    is_too_large = b.icmp("ugt", code, largest)
    overflow = largest if format.saturates or toward_zero else infinity
    code = b.select(is_too_large, overflow, code)
    f32_infinity = const(type, 0x7F800000)
    if not format.saturates and toward_zero:
        code = b.select(b.icmp("eq", magnitude, f32_infinity), infinity, code)
    return b.select(b.icmp("ugt", magnitude, f32_infinity), const(type, format.nan_code), code)


def widen(b: Builder, x: Value, format: FloatType) -> Value:
    """The bits of a small format -> float, exactly: bits in place, then times a power of two to move the exponent."""
    type, float_type = like(x.type, "i32"), like(x.type, "float")
    wide = b.zext(x, type)
    code = b.and_(wide, const(type, format.sign_code - 1))
    moved = b.bitcast(b.shl(code, const(type, _shift(format))), float_type)
    finite = b.bitcast(b.fmul(moved, const(float_type, 2.0 ** (127 - format.bias)), flags=""), type)
    sign = b.shl(b.and_(wide, const(type, format.sign_code)), const(type, 32 - format.bits))
    bits = b.or_(_special(b, wide, code, moved, finite, format), sign)
    return b.bitcast(bits, float_type)


def is_part_of_half(format: FloatType) -> bool:
    """Whether the codes of a format of 8 bits are codes of fp16 with less mantissa, or, where none is infinite, with
    less exponent as well.
    """
    missing = FP16.exponent_bits - format.exponent_bits
    return format.bits == 8 and (missing == 0 if format.has_infinity else missing > 0)


def widen_through_half(b: Builder, x: Value, format: FloatType) -> Value:
    """The same as `widen`, of a format that is part of fp16: bits in place, converted, then times a power of two.

    `widen` multiplies subnormal floats, which takes some processors 150 cycles; that takes fp16 as it is.
    """
    type = like(x.type, "i16")
    wide = b.zext(x, type)
    code = b.and_(wide, const(type, format.sign_code - 1))
    moved = b.shl(code, const(type, FP16.mantissa_bits - format.mantissa_bits))
    sign = b.shl(b.and_(wide, const(type, format.sign_code)), const(type, 8))
    bits = b.or_(_special_half(b, wide, code, moved, format), sign)
    half = b.fpext(b.bitcast(bits, like(x.type, "half")), like(x.type, "float"))
    if format.bias == FP16.bias:
        return half
    return b.fmul(half, const(half.type, 2.0 ** (FP16.bias - format.bias)), flags="")


def _special_half(b: Builder, wide: Value, code: Value, moved: Value, format: FloatType) -> Value:
    """The bits of fp16, or those of NaN where the code has them; infinity and NaN of fp8e5 are those of fp16."""
    if format.has_infinity or not format.has_nan:
        return moved
    tested = code if format.has_minus_zero else wide
    nan = b.or_(moved, const(moved.type, 0x7E00))
    return b.select(b.icmp("eq", tested, const(wide.type, format.nan_code)), nan, moved)


def _special(b: Builder, wide: Value, code: Value, moved: Value, finite: Value, format: FloatType) -> Value:
    """The bits of a finite float, or those of infinity and NaN where the code has them."""
    type = wide.type
    if not format.has_nan:
        return finite
    if not format.has_minus_zero:
        return b.select(b.icmp("eq", wide, const(type, format.nan_code)), const(type, 0x7FC00000), finite)
    infinite = b.or_(b.bitcast(moved, type), const(type, 0x7F800000))
    return b.select(b.icmp("ult", code, const(type, format.end_code)), finite, infinite)


def round_to_odd(b: Builder, x: Value) -> Value:
    """double -> float: exact ones as they are, others the neighbour with an odd mantissa.

    Rounding that to 22 bits or fewer gives what rounding the double would: the odd bit says on which side
    of a tie it was.
    """
    type = like(x.type, "i32")
    nearest = b.fptrunc(x, like(x.type, "float"))
    back = b.fpext(nearest, x.type)
    truncated = _step_back(b, b.bitcast(nearest, type), back, x)
    odd = b.or_(truncated, b.zext(b.fcmp("one", back, x), type))
    return b.bitcast(odd, like(x.type, "float"))


def sum_to_odd(b: Builder, x: Value, y: Value) -> Value:
    """The sum of two doubles: an exact one as it is, others the neighbour with an odd mantissa."""
    total = b.fadd(x, y, flags="")
    from_y = b.fsub(total, x, flags="")
    lost = b.fadd(b.fsub(x, b.fsub(total, from_y, flags=""), flags=""), b.fsub(y, from_y, flags=""), flags="")
    type, none = like(x.type, "i64"), const(x.type, 0.0)
    is_too_large = b.fcmp("olt", b.fmul(b.copysign(const(x.type, 1.0), total), lost, flags=""), none)
    truncated = b.sub(b.bitcast(total, type), b.zext(is_too_large, type))
    return b.bitcast(b.or_(truncated, b.zext(b.fcmp("one", lost, none), type)), x.type)


def truncate_to_f32(b: Builder, x: Value) -> Value:
    """double -> float, rounded towards zero."""
    type = like(x.type, "i32")
    nearest = b.fptrunc(x, like(x.type, "float"))
    return b.bitcast(_step_back(b, b.bitcast(nearest, type), b.fpext(nearest, x.type), x), nearest.type)


def _step_back(b: Builder, bits: Value, rounded: Value, x: Value) -> Value:
    """The bits of a float, or of the one next towards zero where it was rounded up in magnitude from x."""
    magnitude, limit = b.fabs(rounded), b.fabs(x)
    return b.sub(bits, b.zext(b.fcmp("ogt", magnitude, limit), bits.type))


def float_to_int(b: Builder, x: Value, int_type: str, signed: bool) -> Value:
    """float or double -> integer, towards zero; what does not fit becomes the nearest that does, NaN 0."""
    name = "llvm.fptosi.sat" if signed else "llvm.fptoui.sat"
    type = like(x.type, int_type)
    if width(x.type) > 1:
        return _saturated(b, x, type, signed)
    return b.intrinsic(name, type, x, overloads=(type, x.type))


def _saturated(b: Builder, x: Value, type: str, signed: bool) -> Value:
    """Of a vector: LLVM does that intrinsic of a vector with branches for each lane."""
    bits = bit_width(type)
    low, limit = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
    if limit <= _MOST_WHOLE[element(x.type)]:
        number = b.select(b.fcmp("ord", x, x), _clamped(b, x, low, limit - 1), const(x.type, 0))
        return (b.fptosi if signed else b.fptoui)(number, type)
    fits = b.and_(b.fcmp("oge", x, const(x.type, low)), b.fcmp("olt", x, const(x.type, limit)))
    cut = (b.fptosi if signed else b.fptoui)(b.select(fits, x, const(x.type, 0)), type)
    most = const(type, limit - 1 if signed else -1)
    saturated = b.select(b.fcmp("oge", x, const(x.type, limit)), most, cut)
    return b.select(b.fcmp("olt", x, const(x.type, low)), const(type, low), saturated) if signed else saturated


def _clamped(b: Builder, x: Value, low: int, high: int) -> Value:
    """The nearest number between two whole ones; of NaN either."""
    lowest, highest = const(x.type, low), const(x.type, high)
    raised = b.select(b.fcmp("ogt", x, lowest), x, lowest)
    return b.select(b.fcmp("olt", raised, highest), raised, highest)


def int_to_float(b: Builder, x: Value, float_type: str, signed: bool) -> Value:
    """integer -> float or double, rounded to nearest even."""
    assert is_float(float_type)
    type = like(x.type, float_type)
    return b.sitofp(x, type) if signed else b.uitofp(x, type)


def int_to_odd_f32(b: Builder, x: Value, signed: bool) -> Value:
    """integer -> float, rounded to odd."""
    if bit_width(x.type) == 64:
        x = _without_last_bits(b, x, signed)
    return round_to_odd(b, int_to_float(b, x, "double", signed))


def _without_last_bits(b: Builder, x: Value, signed: bool) -> Value:
    """What a double has all bits of: of large ones the last are gone, and one before them says that there were any."""
    type, least = x.type, const(x.type, 1 << _SPARE)
    rest = b.and_(x, const(type, (1 << _SPARE) - 1))
    odd = b.or_(b.sub(x, rest), b.select(b.icmp("ne", rest, const(type, 0)), least, const(type, 0)))
    size = b.intrinsic("llvm.abs", type, x, const("i1", False)) if signed else x
    return b.select(b.icmp("ult", size, const(type, _MOST_WHOLE["double"])), x, odd)
