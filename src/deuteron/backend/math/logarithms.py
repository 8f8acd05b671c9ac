"""log and log2 of float and double, expanded in line for scalars and vectors.

    x = 2**e * (1 + f),  0.7 < 1 + f < 1.42

    float:  log(1 + f) = f - f**2 / 2 + f**3 P(f)          log2(1 + f) = f / ln 2 + f**2 Q(f)
    double: with s = f / (2 + f):  log(1 + f) = f - (f**2 / 2 - s (f**2 / 2 + s**2 R(s**2)))

Subnormals are scaled up first. Zero gives -inf, negative numbers NaN. Worst error found in 2**21
arguments, in ulp: log 0.81 (double 0.81), log2 0.97 (0.78), without fused multiply-add 1.9. ns an element with AVX-512,
AVX2 and in NumPy: log 0.36, 0.74, 0.39 (double 0.85, 1.5, 0.80), log2 0.33, 0.72, 0.27.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const, like
from deuteron.backend.math.polynomial import FLOAT, Float, bits_of, evaluate, fused, number

_P = (
    0.33333316445350647,
    -0.2500077486038208,
    0.20002271234989166,
    -0.16625641286373138,
    0.14181871712207794,
    -0.13119758665561676,
    0.1287483274936676,
    -0.07874368131160736,
)
_Q = (
    -0.7213473916053772,
    0.48089799284935,
    -0.3606933355331421,
    0.2885804772377014,
    -0.23969362676143646,
    0.2043875753879547,
    -0.19028322398662567,
    0.18724864721298218,
    -0.11306491494178772,
)
_R = (
    0.6666666666666691,
    0.39999999999664837,
    0.28571428692665424,
    0.22222203232847088,
    0.18183339951719163,
    0.15319424705576953,
    0.1474521530825977,
)
# sums whose first part has few bits: times an exponent (ln 2), or times 21 bits (1 / ln 2 in double), it is exact
_LN2_FLOAT = (0.693359375, -0.00021219444170128554)
_LN2_DOUBLE = (0.6931471806019545, -4.2009150726810846e-11)
LOG2_E_FLOAT = (1.4426950216293335, 1.925963033500011e-08)
_LOG2_E_DOUBLE = (1.4426950407214463, 1.6751713164886512e-10)


Divide = Callable[[Builder, Value, Value], Value]


def exactly_rounded(b: Builder, x: Value, y: Value) -> Value:
    return b.fdiv(x, y, flags="")


def log(b: Builder, x: Value, divide: Divide = exactly_rounded) -> Value:
    """`divide` as `ratio` does (number.py)."""
    e, f = _split(b, x)
    if Float.of(x) is FLOAT:
        y = _log_float(b, e, f)
    else:
        half_square, inner = _log1p_parts(b, f, divide)
        low = fused(b, e, number(x, _LN2_DOUBLE[1]), inner)
        low = b.fsub(b.fsub(half_square, low, flags=""), f, flags="")
        y = fused(b, e, number(x, _LN2_DOUBLE[0]), b.fneg(low))
    return _special_cases(b, x, y)


def log2(b: Builder, x: Value, divide: Divide = exactly_rounded) -> Value:
    e, f = _split(b, x)
    y = _log2_float(b, e, f) if Float.of(x) is FLOAT else _log2_double(b, e, f, divide)
    return _special_cases(b, x, y)


def _log_float(b: Builder, e: Value, f: Value) -> Value:
    square = b.fmul(f, f, flags="")
    y = b.fmul(b.fmul(evaluate(b, f, _P), f, flags=""), square, flags="")
    y = fused(b, e, number(f, _LN2_FLOAT[1]), y)
    y = fused(b, square, number(f, -0.5), y)
    return fused(b, e, number(f, _LN2_FLOAT[0]), b.fadd(f, y, flags=""))


def _log2_float(b: Builder, e: Value, f: Value) -> Value:
    low = fused(b, f, evaluate(b, f, _Q), number(f, LOG2_E_FLOAT[1]))
    fraction = fused(b, f, number(f, LOG2_E_FLOAT[0]), b.fmul(f, low, flags=""))
    return b.fadd(e, fraction, flags="")


def _log2_double(b: Builder, e: Value, f: Value, divide: Divide) -> Value:
    """log(1 + f) as a sum of which the first part has 21 bits, times 1 / ln 2, plus e; all with the errors kept."""
    half_square, inner = _log1p_parts(b, f, divide)
    type = like(f.type, "i64")
    difference = b.fsub(f, half_square, flags="")
    high = b.bitcast(b.and_(bits_of(b, difference), const(type, -(1 << 32))), f.type)
    low = b.fadd(b.fsub(b.fsub(f, high, flags=""), half_square, flags=""), inner, flags="")
    main = b.fmul(high, number(f, _LOG2_E_DOUBLE[0]), flags="")
    rest = b.fmul(b.fadd(low, high, flags=""), number(f, _LOG2_E_DOUBLE[1]), flags="")
    rest = fused(b, low, number(f, _LOG2_E_DOUBLE[0]), rest)
    total = b.fadd(e, main, flags="")
    lost = b.fadd(b.fsub(e, total, flags=""), main, flags="")
    return b.fadd(b.fadd(rest, lost, flags=""), total, flags="")


def _log1p_parts(b: Builder, f: Value, divide: Divide) -> tuple[Value, Value]:
    """h = f**2 / 2 and s (h + s**2 R(s**2)): log(1 + f) is f - (h - that)."""
    s = divide(b, f, b.fadd(f, number(f, 2.0), flags=""))
    square = b.fmul(s, s, flags="")
    half_square = b.fmul(b.fmul(f, f, flags=""), number(f, 0.5), flags="")
    inner = fused(b, square, evaluate(b, square, _R), half_square)
    return half_square, b.fmul(s, inner, flags="")


def _split(b: Builder, x: Value) -> tuple[Value, Value]:
    """The exponent e as a float, and f."""
    kind = Float.of(x)
    bits, type = kind.mantissa_bits, like(x.type, kind.integer)
    is_small = b.fcmp("olt", x, number(x, kind.smallest_normal))
    x = b.select(is_small, b.fmul(x, number(x, 2.0**bits), flags=""), x)
    # 1 + f lies around 1 when what is added carries into the exponent from sqrt(1/2) on
    from_root = (kind.bias << bits) - _sqrt_half_bits(kind)
    biased = b.lshr(b.add(bits_of(b, x), const(type, from_root)), const(type, bits))
    fraction_bits = b.sub(bits_of(b, x), b.shl(b.sub(biased, const(type, kind.bias)), const(type, bits)))
    f = b.fsub(b.bitcast(fraction_bits, x.type), number(x, 1.0), flags="")
    # the whole number in the low bits of 2**bits, minus that and the bias
    shifted = b.bitcast(b.or_(biased, const(type, kind.bias + bits << bits)), x.type)
    offset = [number(x, 2.0**bits + kind.bias), number(x, 2.0**bits + kind.bias + bits)]
    return b.fsub(shifted, b.select(is_small, offset[1], offset[0]), flags=""), f


def _sqrt_half_bits(kind: Float) -> int:
    """The bits of the square root of 1/2."""
    return (kind.bias - 1 << kind.mantissa_bits) + int((math.sqrt(2.0) - 1.0) * 2.0**kind.mantissa_bits)


def _special_cases(b: Builder, x: Value, y: Value) -> Value:
    y = b.select(b.fcmp("olt", x, number(x, math.inf)), y, x)
    y = b.select(b.fcmp("olt", x, number(x, 0.0)), number(x, math.nan), y)
    return b.select(b.fcmp("oeq", x, number(x, 0.0)), number(x, -math.inf), y)
