"""Functions of libdevice in float by the special function unit: one or two of its instructions, and a few products.

    exp     n = floor(x log2 e),  r = x log2 e - n in two parts:   2**n * ex2.approx(r)
    tanh    1 - 2 / (ex2.approx(2 |x| log2 e) + 1), below 0.625 a polynomial
    sinh    h - 1/4 / h with h = e**|x| / 2, below 1 a polynomial
    cosh    h + 1/4 / h

`near_quotient` and `near_root` are what other functions divide and take roots by (`backend/math/number.py`). Results of
exp and exp10 below 2**-126 are zero. docs/math.md has the errors, of all arguments, on an H200.
"""

from __future__ import annotations

from deuteron.backend.cuda.instructions import functions
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value
from deuteron.backend.math.coefficients import SINH, TANH
from deuteron.backend.math.number import Function, Number, fused, magnitude, polynomial, where, with_sign_of

# log2(e) and log2(10), each as a float and what that lacks
_LOG2_E = (1.4426950216293335, 1.925963033500011e-08)
_LOG2_10 = (3.321928024291992, 7.059536955011936e-08)
_ROUNDER = 1.5 * 2.0**23  # what is added to it, an integer, stands in the low bits of the sum


def approximate(name: str, *numbers: Number) -> Number:
    """An instruction of floats."""
    return numbers[0].make(numbers[0].b.call("float", f"llvm.nvvm.{name}", *(x.value for x in numbers)))


def near_quotient(b: Builder, x: Value, y: Value) -> Value:
    """x times the reciprocal of y, and what that lacks once more times the reciprocal."""
    inverse = b.call("float", "llvm.nvvm.rcp.approx.ftz.f", y)
    first = b.fmul(x, inverse, flags="")
    rest = b.intrinsic("llvm.fma", "float", b.fneg(first), y, x)
    return b.intrinsic("llvm.fma", "float", rest, inverse, first)


def near_root(b: Builder, x: Value) -> Value:
    return b.call("float", "llvm.nvvm.sqrt.approx.ftz.f", x)


def exp(x: Number) -> Number:
    power, r = _parts(x, _LOG2_E)
    return _exp2(r) * power


def exp10(x: Number) -> Number:
    power, r = _parts(x, _LOG2_10)
    return _exp2(r) * power


def tanh(x: Number) -> Number:
    size, square = magnitude(x), x * x
    grown = _exp2(size * (2.0 * _LOG2_E[0])) + 1.0
    small = fused(size * square, polynomial(square, TANH), size)
    return with_sign_of(where(size < 0.625, small, fused(_reciprocal(grown), -2.0, 1.0)), x)


def sinh(x: Number) -> Number:
    size, square = magnitude(x), x * x
    half_power, r = _parts(size, _LOG2_E, first=0, last=128, less=1)
    grown = _exp2(r)
    large = fused(grown, half_power, _reciprocal(grown * half_power) * -0.25)
    small = fused(size * square, polynomial(square, SINH), size)
    return with_sign_of(where(size < 1.0, small, large), x)


def cosh(x: Number) -> Number:
    half_power, r = _parts(magnitude(x), _LOG2_E, first=0, last=128, less=1)
    half = _exp2(r) * half_power
    return fused(_reciprocal(half), 0.25, half)


def _parts(
    x: Number, unit: tuple[float, float], first: int = -126, last: int = 127, less: int = 0
) -> tuple[Number, Number]:
    """2**(n - less) and r, where n + r is x times the unit, and 0 <= r < 1 but where n is the first or the last one, so
    that ex2 of what is beyond them overflows or is zero. `less` is 1 where n begins at 0.
    """
    count = float(last - first)
    place = approximate("saturate.f", fused(x, unit[0] / count, -first / count))
    shifted = approximate("fma.rm.f", place, x.number(count), x.number(_ROUNDER + 127.0 + first))
    r = fused(x, unit[1], fused(x, unit[0], -(shifted - (_ROUNDER + 127.0))))
    return ((shifted.bits() - less) << 23).as_float("float"), r


def _exp2(x: Number) -> Number:
    return approximate("ex2.approx.ftz.f32", x)


def _reciprocal(x: Number) -> Number:
    return approximate("rcp.approx.ftz.f", x)


def _of_language(name: str) -> Function:
    return lambda x: x.make(functions.FUNCTIONS[name](x.b, x.value))


# By their symbols, which those of double do not have.
FUNCTIONS: dict[str, Function] = {
    "sqrtf": _of_language("sqrt"),
    "rsqrtf": _of_language("rsqrt"),
    "tanhf": tanh,
    "sinhf": sinh,
    "coshf": cosh,
}
FLUSHING: dict[str, Function] = {"expf": exp, "exp2f": _exp2, "exp10f": exp10}
