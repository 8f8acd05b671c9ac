"""Values of LLVM IR with Python's operators, for mathematics that reads as such; strict, lane by lane.

    x = Number(b, value)
    y = fused(x, x, 1.0)                    x * x + 1, rounded once where the machine can
    where(y < 2.0, y, x.bits() >> 23)       float operators on floats, integer operators on integers (>> logical)

A Python number takes the type of the other operand. Comparisons of floats are false where one is NaN; only `!=` and
`is_nan` are then true. Nothing here is contracted or reordered, whatever the kernel's options.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce as fold

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const, element, is_float, like
from deuteron.backend.math.conversions import float_to_int
from deuteron.backend.math.polynomial import Float

Emit = Callable[..., Value]


@dataclass(frozen=True)
class FloatUnit:
    """What a machine does in one instruction, x * y + z rounded once and rounding to a whole number; and whether it has
    doubles at half the speed of floats, as CPUs have, or may have very few, as GPUs. `near_quotient` and `near_root`
    are a machine's ways to what `ratio` and `near_root` promise, where a division takes much longer.
    """

    fuses: bool
    rounds: bool
    doubles: bool
    near_quotient: Emit | None = None
    near_root: Emit | None = None


@dataclass(frozen=True, eq=False)
class Number:
    """A value, where its instructions go, and what the machine can. Floats or integers, scalars or vectors."""

    b: Builder
    value: Value
    unit: FloatUnit

    @property
    def type(self) -> str:
        return self.value.type

    @property
    def is_float(self) -> bool:
        return is_float(self.type)

    @property
    def is_double(self) -> bool:
        return element(self.type) == "double"

    @property
    def format(self) -> Float:
        return Float.of(self.value)

    def make(self, value: Value) -> Number:
        """Another value of the same builder."""
        return Number(self.b, value, self.unit)

    def number(self, constant: float | int) -> Number:
        """A constant of the same type."""
        return self.make(const(self.type, constant))

    def _other(self, other: Number | float | int) -> Number:
        return other if isinstance(other, Number) else self.number(other)

    def _binary(self, float_op: str, integer_op: str, other: Number | float) -> Number:
        other = self._other(other)
        if self.is_float:
            return self.make(getattr(self.b, float_op)(self.value, other.value, flags=""))
        return self.make(getattr(self.b, integer_op)(self.value, other.value))

    def __add__(self, other: Number | float) -> Number:
        return self._binary("fadd", "add", other)

    def __sub__(self, other: Number | float) -> Number:
        return self._binary("fsub", "sub", other)

    def __mul__(self, other: Number | float) -> Number:
        return self._binary("fmul", "mul", other)

    def __truediv__(self, other: Number | float) -> Number:
        return self.make(self.b.fdiv(self.value, self._other(other).value, flags=""))

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: float) -> Number:
        return self._other(other) - self

    def __rtruediv__(self, other: float) -> Number:
        return self._other(other) / self

    def __neg__(self) -> Number:
        return self.make(self.b.fneg(self.value)) if self.is_float else self.number(0) - self

    def _logic(self, name: str, other: Number | int) -> Number:
        return self.make(getattr(self.b, name)(self.value, self._other(other).value))

    def __and__(self, other: Number | int) -> Number:
        return self._logic("and_", other)

    def __or__(self, other: Number | int) -> Number:
        return self._logic("or_", other)

    def __xor__(self, other: Number | int) -> Number:
        return self._logic("xor", other)

    def __lshift__(self, other: Number | int) -> Number:
        return self._logic("shl", other)

    def __rshift__(self, other: Number | int) -> Number:
        """Logical: zeros come in."""
        return self._logic("lshr", other)

    def arithmetic_shift(self, other: Number | int) -> Number:
        """To the right; the sign comes in."""
        return self._logic("ashr", other)

    def __invert__(self) -> Number:
        return self ^ -1

    def _compare(self, float_predicate: str, integer_predicate: str, other: Number | float) -> Number:
        other = self._other(other)
        if self.is_float:
            return self.make(self.b.fcmp(float_predicate, self.value, other.value))
        return self.make(self.b.icmp(integer_predicate, self.value, other.value))

    def __lt__(self, other: Number | float) -> Number:
        return self._compare("olt", "slt", other)

    def __le__(self, other: Number | float) -> Number:
        return self._compare("ole", "sle", other)

    def __gt__(self, other: Number | float) -> Number:
        return self._compare("ogt", "sgt", other)

    def __ge__(self, other: Number | float) -> Number:
        return self._compare("oge", "sge", other)

    def equals(self, other: Number | float) -> Number:
        return self._compare("oeq", "eq", other)

    def differs(self, other: Number | float) -> Number:
        return self._compare("une", "ne", other)

    def below(self, other: Number | int) -> Number:
        """Less, as unsigned integers."""
        return self.make(self.b.icmp("ult", self.value, self._other(other).value))

    def is_nan(self) -> Number:
        return self.make(self.b.fcmp("uno", self.value, self.value))

    # -- conversions, by LLVM's names of the element types ---

    def bits(self) -> Number:
        """The bits of a float as an integer."""
        return self.make(self.b.bitcast(self.value, like(self.type, self.format.integer)))

    def as_float(self, name: str) -> Number:
        """The float or double whose bits these are."""
        return self.make(self.b.bitcast(self.value, like(self.type, name)))

    def extend(self, name: str) -> Number:
        """A float as double; an integer with zeros above it."""
        emit = self.b.fpext if self.is_float else self.b.zext
        return self.make(emit(self.value, like(self.type, name)))

    def sign_extend(self, name: str) -> Number:
        return self.make(self.b.sext(self.value, like(self.type, name)))

    def narrow(self, name: str) -> Number:
        """A double as float; the low bits of an integer."""
        emit = self.b.fptrunc if self.is_float else self.b.trunc
        return self.make(emit(self.value, like(self.type, name)))

    def to_float(self, name: str, signed: bool = True) -> Number:
        """An integer, rounded to nearest."""
        emit = self.b.sitofp if signed else self.b.uitofp
        return self.make(emit(self.value, like(self.type, name)))

    def to_integer(self, name: str, signed: bool = True) -> Number:
        """A float, cut off; what does not fit becomes the nearest that does, NaN 0."""
        return self.make(float_to_int(self.b, self.value, name, signed))


Function = Callable[..., Number]


def intrinsic(name: str, *numbers: Number) -> Number:
    """An intrinsic of LLVM that is overloaded on its type."""
    first = numbers[0]
    return first.make(first.b.intrinsic(name, first.type, *(x.value for x in numbers)))


def where(condition: Number, x: Number | float, y: Number | float) -> Number:
    """x where the condition is true, else y; one of the two is a Number."""
    typed = x if isinstance(x, Number) else y
    first, second = (value if isinstance(value, Number) else typed.number(value) for value in (x, y))
    return condition.make(condition.b.select(condition.value, first.value, second.value))


def fused(x: Number, y: Number | float, z: Number | float) -> Number:
    """x * y + z, rounded once on a machine that can, else twice."""
    y, z = (value if isinstance(value, Number) else x.number(value) for value in (y, z))
    return intrinsic("llvm.fma" if x.unit.fuses else "llvm.fmuladd", x, y, z)


def polynomial(x: Number, coefficients: tuple[float, ...] | dict[str, tuple[float, ...]]) -> Number:
    """Lowest power first; a dict has them by the name of the type."""
    if isinstance(coefficients, dict):
        coefficients = coefficients[element(x.type)]
    result = x.number(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = fused(result, x, coefficient)
    return result


def magnitude(x: Number) -> Number:
    return intrinsic("llvm.fabs", x)


def with_sign_of(x: Number, sign: Number) -> Number:
    return intrinsic("llvm.copysign", x, sign)


def square_root(x: Number) -> Number:
    return intrinsic("llvm.sqrt", x)


def ratio(x: Number | float, y: Number) -> Number:
    """x / y within an ulp, where y is normal and below half the largest power of two, and the result is not subnormal;
    else anything.
    """
    x = x if isinstance(x, Number) else y.number(x)
    if y.unit.near_quotient is None:
        return x / y
    return y.make(y.unit.near_quotient(y.b, x.value, y.value))


def near_root(x: Number) -> Number:
    """The square root within an ulp, of a positive normal number; else anything."""
    if x.unit.near_root is None:
        return square_root(x)
    return x.make(x.unit.near_root(x.b, x.value))


def larger(x: Number, y: Number | float) -> Number:
    """NaN where x is."""
    return where(x._other(y) > x, y, x)


def smaller(x: Number, y: Number | float) -> Number:
    """NaN where x is."""
    return where(x._other(y) < x, y, x)


def any_of(*conditions: Number) -> Number:
    return fold(operator.or_, conditions)


def power_of_two(exponent: Number, name: str) -> Number:
    """2.0 ** exponent of integers as wide as the float, where that is a normal number."""
    format = exponent.make(const(name, 0.0)).format
    return ((exponent + format.bias) << format.mantissa_bits).as_float(name)


def nearest(x: Number) -> Number:
    """The nearest whole number, of halves the even one."""
    if x.unit.rounds:
        return intrinsic("llvm.rint", x)
    limit = x.number(2.0**x.format.mantissa_bits)
    whole = with_sign_of((magnitude(x) + limit) - limit, x)
    return where(magnitude(x) < limit, whole, x)


def toward_zero(x: Number) -> Number:
    if x.unit.rounds:
        return intrinsic("llvm.trunc", x)
    size = magnitude(x)
    whole = nearest(size)
    return with_sign_of(where(whole > size, whole - 1.0, whole), x)


def downward(x: Number) -> Number:
    if x.unit.rounds:
        return intrinsic("llvm.floor", x)
    whole = nearest(x)
    return with_sign_of(where(whole > x, whole - 1.0, whole), x)


def upward(x: Number) -> Number:
    if x.unit.rounds:
        return intrinsic("llvm.ceil", x)
    return -downward(-x)
