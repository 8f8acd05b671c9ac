"""The exact remainder of floats, as C's fmod has it, without libm: by integer division of the mantissas.

    x = 24-bit mantissa * 2^ex, y likewise:  r = mx mod my, then for each of ex - ey bits: r = 2 r mod my

64-bit integers take 40 of those bits at a time for float, 11 for double. Lane by lane, in a function that is shared by
all uses of a type: `%` on floats is rare.
"""

from __future__ import annotations

from dataclasses import dataclass

from deuteron.backend.llvm.builder import Builder, mangle
from deuteron.backend.llvm.types import Value, const, element, width, zero


@dataclass(frozen=True)
class _Layout:
    """The bits of a floating type; all integers here are i64."""

    bits: int
    mantissa_bits: int

    @property
    def infinity(self) -> int:
        return (1 << (self.bits - 1)) - (1 << self.mantissa_bits)


_LAYOUTS = {"float": _Layout(32, 23), "double": _Layout(64, 52)}


def remainder(b: Builder, x: Value, y: Value) -> Value:
    """x - trunc(x / y) * y; with the sign of x."""
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
    signed = b.intrinsic("llvm.copysign", x.type, magnitude, x)
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
