"""log and log2 of floats on vectors of AVX-512, by pieces, which instructions for exponents and mantissas find.

    x = m 2**e,  0.75 <= m < 1.5;  k = round(32 m);  f = m r - 1, where r = _RECIPROCALS[k] is near 32 / k
    log x = (e ln 2 + (-log r)) + log(1 + f),  |f| < 1/37, near x = 1 less than 1/58

r has so few bits that f is exact near x = 1. What is in parentheses is a sum of two, of which the first has few bits:
it is exact, also where it is 0. VGETMANTPS is NaN of negative numbers, VGETEXPPS -inf of 0, and both know subnormals,
so that nothing is special: 22 operations for a vector in the place of 31. Worst error found, all floats from 1/4 to 4
and a sample of the others: 0.71 ulp (log), 0.80 (log2). Doubles, and narrower registers: `math/logarithms.py`.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from deuteron.backend.cpu.math.functions import FUNCTIONS
from deuteron.backend.cpu.math.pieces import LANES, Table, by_registers, has_pieces, looked_up
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.intrinsics import GETEXP_PS, GETMANT_PS
from deuteron.backend.llvm.types import Value, const, zero
from deuteron.backend.math.polynomial import bits_of, evaluate, fused, number
from deuteron.machine.cpu import CPU

_FROM_THREE_QUARTERS, _NAN_IF_NEGATIVE = 3, 2 << 2
_ROUNDS_AS_SET = 4
_TO_32NDS = 1.5 * 2.0**18  # what is added to this is rounded to multiples of 1/32

_QUANTUM = 2.0**-14  # of what is added exactly: the logarithms of all floats fit 22 bits


def _reciprocal(k: int) -> float:
    return round(32 * 128 / k) / 128 if k > 32 else round(32 * 64 / k) / 64


def _parts(value: float) -> tuple[float, float]:
    """A sum of two, the first a multiple of the quantum."""
    high = round(value / _QUANTUM) * _QUANTUM
    return high, ctypes.c_float(value - high).value


def _pieces(base: float) -> tuple[Table, Table]:
    high, low = zip(*(_parts(-math.log(r) / math.log(base)) for r in _RECIPROCALS), strict=True)
    return high, low


_RECIPROCALS = [_reciprocal(k) if k <= 48 else _reciprocal(k - 32) if k >= 56 else 1.0 for k in range(32, 64)]


@dataclass(frozen=True)
class _Base:
    """`unit`: the logarithm of 2, and `slope`, that of e, each as a sum of two. `pieces`: those of 1 / r. The
    logarithm of 1 + f is f (slope + f (c0 + f (c1 + ...))).
    """

    unit: tuple[float, float]
    slope: tuple[float, float]
    pieces: tuple[Table, Table]
    coefficients: Sequence[float]


_LOG = _Base(
    (0.693115234375, 3.194618329871446e-05),
    (1.0, 0.0),
    _pieces(math.e),
    (-0.5, 0.33338263630867004, -0.2500431537628174),
)
_LOG2 = _Base(
    (1.0, 0.0),
    (1.4426950216293335, 1.925963033500011e-08),
    _pieces(2.0),
    (-0.7213475108146667, 0.48096948862075806, -0.36077508330345154),
)


def log(b: Builder, x: Value, target: CPU) -> Value:
    return by_registers(b, x, partial(_logarithm, _LOG)) if has_pieces(x.type, target) else FUNCTIONS["log"](b, x)


def log2(b: Builder, x: Value, target: CPU) -> Value:
    return by_registers(b, x, partial(_logarithm, _LOG2)) if has_pieces(x.type, target) else FUNCTIONS["log2"](b, x)


def _logarithm(base: _Base, b: Builder, x: Value) -> Value:
    m = _by_instruction(b, GETMANT_PS, x, const("i32", _FROM_THREE_QUARTERS | _NAN_IF_NEGATIVE))
    e = b.fsub(_by_instruction(b, GETEXP_PS, x), _by_instruction(b, GETEXP_PS, m), flags="")
    k = bits_of(b, b.fadd(m, number(x, _TO_32NDS), flags=""))
    f = fused(b, m, looked_up(b, k, _RECIPROCALS), number(x, -1.0))
    high, low = (looked_up(b, k, table) for table in base.pieces)
    high = fused(b, e, number(x, base.unit[0]), high)
    low = fused(b, e, number(x, base.unit[1]), low) if base.unit[1] else low
    low = fused(b, f, evaluate(b, f, (base.slope[1], *base.coefficients)), low)
    return _sum(b, high, *_times(b, f, base.slope[0]), low)


def _times(b: Builder, f: Value, slope: float) -> tuple[Value, Value | None]:
    """The product, and what its rounding loses."""
    if slope == 1:
        return f, None
    product = b.fmul(f, number(f, slope), flags="")
    return product, fused(b, f, number(f, slope), b.fneg(product))


def _sum(b: Builder, high: Value, middle: Value, lost: Value | None, low: Value) -> Value:
    """`high` is 0 or larger than `middle`; of an infinite one the rest is NaN."""
    total = b.fadd(high, middle, flags="")
    rest = b.fsub(middle, b.fsub(total, high, flags=""), flags="")
    rest = rest if lost is None else b.fadd(rest, lost, flags="")
    rest = b.fadd(rest, low, flags="")
    return b.select(b.fcmp("ord", rest, rest), b.fadd(total, rest, flags=""), total)


def _by_instruction(b: Builder, intrinsic: str, x: Value, *immediate: Value) -> Value:
    """All lanes of a register."""
    return b.call(x.type, intrinsic, x, *immediate, zero(x.type), const(f"i{LANES}", -1), const("i32", _ROUNDS_AS_SET))
