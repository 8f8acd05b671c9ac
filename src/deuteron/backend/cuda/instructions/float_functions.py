"""Functions of libdevice in float by the special function unit: one or two of its instructions, and a few products.

    exp     n = floor(x log2 e),  r = x log2 e - n in two parts:   2**n * ex2.approx(r)
    tanh    1 - 2 / (ex2.approx(2 |x| log2 e) + 1), below 0.625 a polynomial

Results of exp and exp10 below 2**-126 are zero. docs/math.md has the errors, of all arguments, on an H200.
"""

from __future__ import annotations

from deuteron.backend.math.coefficients import TANH
from deuteron.backend.math.logarithms import LOG2_E_FLOAT
from deuteron.backend.math.number import Function, Number, fused, magnitude, polynomial, where, with_sign_of

_LOG2_10 = (3.321928024291992, 7.059536955011936e-08)  # log2(10) as a float, and what that lacks
_FIRST, _POWERS = -126.0, 253.0  # of two, that are normal numbers
_ROUNDER = 1.5 * 2.0**23  # what is added to it, an integer, stands in the low bits of the sum


def instruction(name: str, *numbers: Number) -> Number:
    """An instruction of PTX, by the name of its intrinsic, whose result has the type of its first operand."""
    first = numbers[0]
    return first.make(first.b.call(first.type, f"llvm.nvvm.{name}", *(x.value for x in numbers)))


def exp(x: Number) -> Number:
    power, r = _parts(x, LOG2_E_FLOAT)
    return exp2(r) * power


def exp10(x: Number) -> Number:
    power, r = _parts(x, _LOG2_10)
    return exp2(r) * power


def tanh(x: Number) -> Number:
    size, square = magnitude(x), x * x
    grown = exp2(size * (2.0 * LOG2_E_FLOAT[0])) + 1.0
    small = fused(size * square, polynomial(square, TANH), size)
    return with_sign_of(where(size < 0.625, small, fused(reciprocal(grown), -2.0, 1.0)), x)


def _parts(x: Number, unit: tuple[float, float]) -> tuple[Number, Number]:
    """2**n and r, where n + r is x times the unit, and 0 <= r < 1 but where n is the first or the last one that a float
    has, so that ex2 of what is beyond them overflows or is zero.
    """
    place = instruction("saturate.f", fused(x, unit[0] / _POWERS, -_FIRST / _POWERS))
    shifted = instruction("fma.rm.f", place, x.number(_POWERS), x.number(_ROUNDER + 127.0 + _FIRST))
    r = fused(x, unit[1], fused(x, unit[0], -(shifted - (_ROUNDER + 127.0))))
    return (shifted.bits() << 23).as_float("float"), r


def exp2(x: Number) -> Number:
    return instruction("ex2.approx.ftz.f32", x)


def reciprocal(x: Number) -> Number:
    return instruction("rcp.approx.ftz.f", x)


FUNCTIONS: dict[str, Function] = {"tanhf": tanh}  # by their symbols, which those of double do not have
FLUSHING: dict[str, Function] = {"expf": exp, "exp2f": exp2, "exp10f": exp10}
