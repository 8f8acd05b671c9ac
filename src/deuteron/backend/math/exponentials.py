"""exp, exp2 and tanh of float and double, expanded in line for scalars and vectors.

    exp:  n = round(x / ln 2),  r = x - n ln 2,  |r| <= 0.35,  2**n * (1 + r + r**2 P(r))
    exp2: n = round(x),         r = x - n,                     2**n * (1 + r Q(r))
    tanh: with m = exp(2 |x|) - 1, of which only r + r**2 P(r) is added to 2**n - 1: m / (m + 2)

Multiplying by 2**n is done in two steps, so that results that are subnormal are rounded once and those that
are too large become infinite. A product that underflows takes a Zen 5 about 10 ns, so that on CPUs 0 is selected. For
AVX-512 see `backend/cpu/math/powers.py`. Worst
error found in 2**21 arguments, in ulp: exp 0.99 (double 0.98), exp2 0.97 (0.88), tanh 2.4 (2.6); without fused
multiply-add exp2 1.2.
ns an element with AVX-512, AVX2 and in NumPy on the same machine: exp 0.24, 0.34, 0.42 (double 0.63, 0.96, 0.67), exp2
0.23, 0.29, 0.25, tanh 0.34, 0.43, 0.30.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const, like
from deuteron.backend.math.polynomial import (
    FLOAT,
    Float,
    at_least,
    at_most,
    bits_of,
    evaluate,
    fused,
    number,
)

LOG2_E = 1.4426950408889634
Power = Callable[[Builder, Value], Value]
Scale = Callable[[Builder, Value, Value, Value], Value]


@dataclass(frozen=True)
class _Constants:
    """ln 2 as a sum whose first part times any n is exact; P and Q; beyond which x results are 0, infinite or 1."""

    ln2: tuple[float, float]
    exp: tuple[float, ...]
    exp2: tuple[float, ...]
    exp_range: tuple[float, float]
    exp2_range: tuple[float, float]
    tanh_limit: float


_FLOAT = _Constants(
    ln2=(0.693359375, -0.00021219444170128554),
    exp=(0.4999999403953552, 0.1666652262210846, 0.041668348014354706, 0.00836851354688406, 0.0013815716374665499),
    exp2=(
        0.6931471824645996,
        0.24022647738456726,
        0.05550336092710495,
        0.009618444368243217,
        0.001339784124866128,
        0.00015350415196735412,
    ),
    exp_range=(-104.0, 89.0),
    exp2_range=(-151.0, 129.0),
    tanh_limit=10.0,
)

_DOUBLE = _Constants(
    ln2=(0.6931471806019545, -4.2009150726810846e-11),
    exp=(
        0.5,
        0.16666666666666682,
        0.041666666666666165,
        0.008333333333318165,
        0.0013888888889097906,
        0.0001984126989405373,
        2.4801586944703996e-05,
        2.7557236858946396e-06,
        2.7557574389583554e-07,
        2.5111427030303794e-08,
        2.0827416359961795e-09,
    ),
    exp2=(
        0.6931471805599453,
        0.24022650695910072,
        0.055504108664821666,
        0.009618129107628342,
        0.0013333558146396715,
        0.0001540353039363115,
        1.5252733850980759e-05,
        1.3215486596875737e-06,
        1.0178053186727543e-07,
        7.054975212634041e-09,
        4.4563987737643607e-10,
        2.562297645208743e-11,
    ),
    exp_range=(-746.0, 710.0),
    exp2_range=(-1076.0, 1025.0),
    tanh_limit=20.0,
)


def constants_of(x: Value) -> _Constants:
    return _FLOAT if Float.of(x) is FLOAT else _DOUBLE


def exp(b: Builder, x: Value) -> Value:
    low, high = constants_of(x).exp_range
    return _exp(b, at_least(b, at_most(b, x, high), low))


def exp2(b: Builder, x: Value) -> Value:
    low, high = constants_of(x).exp2_range
    return _exp2(b, at_least(b, at_most(b, x, high), low))


def exp_or_zero(b: Builder, x: Value) -> Value:
    """exp for processors that take long over products that underflow, as of the -inf of lanes that are masked off."""
    return _unless_zero(b, x, constants_of(x).exp_range, _exp)


def exp2_or_zero(b: Builder, x: Value) -> Value:
    """exp2, likewise."""
    return _unless_zero(b, x, constants_of(x).exp2_range, _exp2)


def exp_by(b: Builder, x: Value, scale: Scale) -> Value:
    """exp where `scale(b, y, n, is_kept)` is y * 2**n, rounded once, in lanes that are kept, and 0 in others."""
    limited, is_kept = _limited(b, x, constants_of(x).exp_range)
    n, _ = _round(b, limited, LOG2_E)
    y = b.fadd(_expm1_polynomial(b, _reduce(b, limited, n)), number(x, 1.0), flags="")
    return scale(b, y, n, is_kept)


def exp2_by(b: Builder, x: Value, scale: Scale) -> Value:
    """exp2, likewise."""
    limited, is_kept = _limited(b, x, constants_of(x).exp2_range)
    n, _ = _round(b, limited, 1.0)
    r = b.fsub(limited, n, flags="")
    return scale(b, fused(b, r, evaluate(b, r, constants_of(x).exp2), number(x, 1.0)), n, is_kept)


def _limited(b: Builder, x: Value, limits: tuple[float, float]) -> tuple[Value, Value]:
    """What the result is infinite for at most, and whether it is not 0."""
    low, high = limits
    return at_most(b, x, high), b.fcmp("uge", x, number(x, low))


def _unless_zero(b: Builder, x: Value, limits: tuple[float, float], power: Power) -> Value:
    """A power of x; that of 0 is computed, and not used, where the result is 0."""
    low, high = limits
    is_zero, zero = b.fcmp("olt", x, number(x, low)), number(x, 0.0)
    return b.select(is_zero, zero, power(b, b.select(is_zero, zero, at_most(b, x, high))))


def _exp(b: Builder, x: Value) -> Value:
    """exp where x is in its range."""
    n, shifted = _round(b, x, LOG2_E)
    y = b.fadd(_expm1_polynomial(b, _reduce(b, x, n)), number(x, 1.0), flags="")
    return _scale(b, y, shifted)


def _exp2(b: Builder, x: Value) -> Value:
    """exp2, likewise."""
    n, shifted = _round(b, x, 1.0)
    r = b.fsub(x, n, flags="")
    return _scale(b, fused(b, r, evaluate(b, r, constants_of(x).exp2), number(x, 1.0)), shifted)


def tanh(b: Builder, x: Value) -> Value:
    doubled = at_most(b, b.fabs(x), constants_of(x).tanh_limit)
    doubled = b.fadd(doubled, doubled, flags="")
    n, shifted = _round(b, doubled, LOG2_E)
    power = _scale_normal(b, number(x, 1.0), shifted)
    rest = b.fsub(power, number(x, 1.0), flags="")
    m = fused(b, power, _expm1_polynomial(b, _reduce(b, doubled, n)), rest)
    y = b.fdiv(m, b.fadd(m, number(x, 2.0), flags=""), flags="")
    return b.copysign(y, x)


def exp_of_limited(b: Builder, x: Value) -> Value:
    """exp where its result is known to be neither subnormal nor infinite."""
    n, shifted = _round(b, x, LOG2_E)
    return _scale_normal(b, b.fadd(_expm1_polynomial(b, _reduce(b, x, n)), number(x, 1.0), flags=""), shifted)


def _round(b: Builder, x: Value, factor: float) -> tuple[Value, Value]:
    """n, the whole number nearest to x * factor, and the float in whose low bits n stands."""
    rounder = number(x, Float.of(x).rounder)
    shifted = b.fadd(x, rounder, flags="") if factor == 1.0 else fused(b, x, number(x, factor), rounder)
    return b.fsub(shifted, rounder, flags=""), shifted


def _reduce(b: Builder, x: Value, n: Value) -> Value:
    """x - n ln 2."""
    high, low = constants_of(x).ln2
    return fused(b, n, number(x, -low), fused(b, n, number(x, -high), x))


def _expm1_polynomial(b: Builder, r: Value) -> Value:
    """exp(r) - 1 for |r| <= 0.35."""
    p = evaluate(b, r, constants_of(r).exp)
    return fused(b, b.fmul(r, r, flags=""), p, r)


def _scale(b: Builder, y: Value, shifted: Value) -> Value:
    """y * 2**n, as a product with two powers whose exponents are halves of n."""
    f = Float.of(y)
    type = like(y.type, f.integer)
    biased = b.sub(bits_of(b, shifted), const(type, f.rounder_bits - 2 * f.bias))
    first = b.lshr(biased, const(type, 1))
    for exponent in (first, b.sub(biased, first)):
        power = b.bitcast(b.shl(exponent, const(type, f.mantissa_bits)), y.type)
        y = b.fmul(y, power, flags="")
    return y


def _scale_normal(b: Builder, y: Value, shifted: Value) -> Value:
    """y * 2**n where that is neither subnormal nor infinite: n more in the exponent."""
    f = Float.of(y)
    moved = b.shl(bits_of(b, shifted), const(like(y.type, f.integer), f.mantissa_bits))
    return b.bitcast(b.add(bits_of(b, y), moved), y.type)
