"""The exact remainder of floats, as C's fmod has it, without libm.

Where doubles are divided and multiply-adds fused in instructions, by division, if x / y < 2**52 in all lanes:

    q = trunc(x / y) in double, one too many at most;  r = x - q y, rounded once, which is exact;  r + y where r < 0

Else by integer division of the mantissas, lane by lane, in a function that is shared by all uses of a type:

    x = 24-bit mantissa * 2^ex, y likewise:  r = mx mod my, then for each of ex - ey bits: r = 2 r mod my

64-bit integers take 40 of those bits at a time for float, 11 for double.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from deuteron.backend.llvm.builder import Builder, mangle
from deuteron.backend.llvm.types import Value, const, element, like, width, zero
from deuteron.backend.math.vectors import any_lane


@dataclass(frozen=True)
class _Layout:
    """The bits of a floating type; all integers here are i64."""

    bits: int
    mantissa_bits: int

    @property
    def infinity(self) -> int:
        return (1 << (self.bits - 1)) - (1 << self.mantissa_bits)


_LAYOUTS = {"float": _Layout(32, 23), "double": _Layout(64, 52)}


_MOST_QUOTIENT = 2.0**52


def remainder(b: Builder, x: Value, y: Value, divides: bool = False) -> Value:
    """x - trunc(x / y) * y; with the sign of x. `divides`: doubles, and fuses multiply-adds."""
    if not divides:
        return _by_mantissas(b, x, y)
    size, unit = (_widened(b, b.fabs(value)) for value in (x, y))
    with b.if_(_any_far(b, size, unit), "far") as branch:
        branch.yield_(_by_mantissas(b, x, y))
        branch.otherwise()
        rest = _by_division(b, size, unit)
        rest = rest if rest.type == x.type else b.fptrunc(rest, x.type)
        branch.yield_(b.copysign(rest, x))
    return branch.results[0]


def _widened(b: Builder, x: Value) -> Value:
    return x if element(x.type) == "double" else b.fpext(x, like(x.type, "double"))


def _any_far(b: Builder, size: Value, unit: Value) -> Value:
    """Whether a quotient of finite numbers may have more digits than a double."""
    far = b.fcmp("oge", size, b.fmul(unit, const(unit.type, _MOST_QUOTIENT), flags=""))
    far = b.and_(far, b.fcmp("olt", size, const(size.type, math.inf)))
    far = b.and_(far, b.fcmp("ogt", unit, const(unit.type, 0.0)))
    return any_lane(b, far) if width(size.type) > 1 else far


def _by_division(b: Builder, size: Value, unit: Value) -> Value:
    """Of magnitudes. An infinite unit leaves all of a finite size."""
    whole = b.intrinsic("llvm.trunc", size.type, b.fdiv(size, unit, flags=""))
    rest = b.fma(b.fneg(whole), unit, size)
    rest = b.select(b.fcmp("olt", rest, const(rest.type, 0.0)), b.fadd(rest, unit, flags=""), rest)
    return b.select(b.fcmp("olt", size, unit), size, rest)


def _by_mantissas(b: Builder, x: Value, y: Value) -> Value:
    name = f"remainder.{mangle(x.type)}"
    if not b.module.has_function(name):
        _define(b, name, x.type)
    return b.call(x.type, name, x, y)


def _define(outer: Builder, name: str, type: str) -> None:
    b = outer.module.function(name, type, [(type, "x"), (type, "y")], attributes="noinline nounwind")
    x, y = (Value(type, value.text) for value in b.parameters)
    if width(type) == 1:
        b.ret(_remainder(b, x, y))
        return
    with b.loop(const("i64", 0), const("i64", width(type)), const("i64", 1), [zero(type)], "lane") as loop:
        result = _remainder(b, b.extractelement(x, loop.index), b.extractelement(y, loop.index))
        loop.next(b.insertelement(loop.carried[0], result, loop.index))
    b.ret(loop.results[0])


def _remainder(b: Builder, x: Value, y: Value) -> Value:
    layout = _LAYOUTS[element(x.type)]
    ax, ay = (_magnitude(b, value, layout) for value in (x, y))
    infinity = const("i64", layout.infinity)
    magnitude = _float(b, _magnitude_remainder(b, ax, ay, layout), layout, x.type)
    signed = b.copysign(magnitude, x)
    result = b.select(b.icmp("ult", ax, ay), x, signed)
    undefined = b.or_(b.icmp("uge", ax, infinity), b.icmp("eq", ay, const("i64", 0)))
    undefined = b.or_(undefined, b.icmp("ugt", ay, infinity))
    return b.select(undefined, const(x.type, float("nan")), result)


def _magnitude(b: Builder, x: Value, layout: _Layout) -> Value:
    bits = b.zext(b.bitcast(x, f"i{layout.bits}"), "i64")
    return b.and_(bits, const("i64", (1 << (layout.bits - 1)) - 1))


def _float(b: Builder, bits: Value, layout: _Layout, type: str) -> Value:
    return b.bitcast(b.trunc(bits, f"i{layout.bits}"), type)


def _magnitude_remainder(b: Builder, ax: Value, ay: Value, layout: _Layout) -> Value:
    """Of the bits of non-negative numbers the bits of the remainder."""
    (ex, mx), (ey, my) = (_split(b, value, layout) for value in (ax, ay))
    my = b.intrinsic("llvm.umax", "i64", my, const("i64", 1))
    step = 63 - layout.mantissa_bits
    start = b.urem(mx, my)
    with b.loop(const("i64", 0), b.sub(ex, ey), const("i64", step), [start], "bits") as loop:
        left = b.sub(b.sub(ex, ey), loop.index)
        shift = b.intrinsic("llvm.smin", "i64", left, const("i64", step))
        loop.next(b.urem(b.shl(loop.carried[0], shift), my))
    return _join(b, loop.results[0], ey, layout)


def _split(b: Builder, bits: Value, layout: _Layout) -> tuple[Value, Value]:
    """Exponent (1 for subnormals) and mantissa with its leading bit."""
    one = const("i64", 1)
    exponent = b.lshr(bits, const("i64", layout.mantissa_bits))
    normal = b.icmp("ne", exponent, const("i64", 0))
    mantissa = b.and_(bits, const("i64", (1 << layout.mantissa_bits) - 1))
    implicit = b.select(normal, const("i64", 1 << layout.mantissa_bits), const("i64", 0))
    return b.select(normal, exponent, one), b.or_(mantissa, implicit)


def _join(b: Builder, mantissa: Value, exponent: Value, layout: _Layout) -> Value:
    """The bits of mantissa * 2^exponent; the mantissa may have leading zeros."""
    zeros = b.intrinsic("llvm.ctlz", "i64", mantissa, const("i1", False))
    zeros = b.sub(zeros, const("i64", 63 - layout.mantissa_bits))
    shift = b.intrinsic("llvm.smin", "i64", zeros, b.sub(exponent, const("i64", 1)))
    shifted = b.shl(mantissa, shift)
    # the leading bit, where there is one, adds 1 to the exponent
    above = b.shl(b.sub(b.sub(exponent, shift), const("i64", 1)), const("i64", layout.mantissa_bits))
    return b.select(b.icmp("eq", mantissa, const("i64", 0)), mantissa, b.add(above, shifted))
