"""Integer division as the language defines it, which LLVM leaves open and a CPU traps at: 0 by 0, and it wraps.

    x // 0 = 0      x % 0 = x      INT_MIN // -1 = INT_MIN      INT_MIN % -1 = 0

    divisor = safe_divisor(b, y, signed=True)                      y; 1 where y is 0 or -1
    quotient(b, divided(b, x, divisor, True), y, signed=True)      x // y: 0 where y is 0, -x where it is -1
    remainder(b, x, rest(b, x, divisor, True), y)                  x % y: x where y is 0

Bits have no signs: true // true is true, which no division of -1 by -1 could give in one bit.

So x is x // y * y + x % y for all numbers, and what is known of quotients and remainders of neighbours by multiples of
16 is true of 0, which is one of them: x % 0 counts up as x does. What is done beside the division depends on the
divisor alone, but for a multiplication by 1, 0 or -1, or a choice: a divisor that is one number for a whole tile costs
once. A number that is known costs nothing. Where x is certainly not negative:

    divisor = natural_divisor(b, y)              |y|, and 2**31 where y is 0
    natural_quotient(b, b.udiv(x, divisor), y)   x // y;  b.urem(x, divisor) is x % y
"""

from __future__ import annotations

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, bit_width, const, element

_NUMBERS = {"true": -1, "false": 0, "zeroinitializer": 0}


def safe_divisor(b: Builder, y: Value, signed: bool) -> Value:
    """y, or 1 where a division by y may be undefined."""
    signed = has_signs(y.type, signed)
    one, number = const(y.type, 1), known_number(y)
    if number is not None:
        return one if number == 0 or (signed and number == -1) else y
    if signed:
        return b.select(b.icmp("ult", b.add(y, one), const(y.type, 2)), one, y)
    return b.select(b.icmp("eq", y, const(y.type, 0)), one, y)


def divided(b: Builder, x: Value, divisor: Value, signed: bool) -> Value:
    """x by a safe divisor."""
    return (b.sdiv if has_signs(x.type, signed) else b.udiv)(x, divisor)


def rest(b: Builder, x: Value, divisor: Value, signed: bool) -> Value:
    """What a safe divisor leaves of x."""
    return (b.srem if has_signs(x.type, signed) else b.urem)(x, divisor)


def quotient(b: Builder, divided: Value, y: Value, signed: bool) -> Value:
    """x // y, of x divided by the safe divisor for y."""
    signed = has_signs(y.type, signed)
    number, zero, minus_one = known_number(y), const(y.type, 0), const(y.type, -1)
    if number == 0:
        return zero
    if number is not None:
        return b.sub(zero, divided) if signed and number == -1 else divided
    is_zero = b.icmp("eq", y, zero)
    if not signed:
        return b.select(is_zero, zero, divided)
    factor = b.select(is_zero, zero, const(y.type, 1))
    return b.mul(divided, b.select(b.icmp("eq", y, minus_one), minus_one, factor))


def remainder(b: Builder, x: Value, rest: Value, y: Value) -> Value:
    """x % y, of what the safe divisor for y leaves."""
    number = known_number(y)
    if number is not None:
        return rest if number else x
    return b.select(b.icmp("eq", y, const(y.type, 0)), x, rest)


def natural_divisor(b: Builder, y: Value) -> Value:
    """What to divide by, without signs, where x is not negative: the absolute value of y, and what is more than any x
    where y is 0, so that 0 times it goes into x and x is left.
    """
    size = b.intrinsic("llvm.abs", y.type, y, const("i1", False))
    return b.select(b.icmp("eq", y, const(y.type, 0)), const(y.type, -(1 << bit_width(y.type) - 1)), size)


def natural_quotient(b: Builder, divided: Value, y: Value) -> Value:
    """x // y, of x divided by the natural divisor for y."""
    return b.mul(divided, b.select(b.icmp("slt", y, const(y.type, 0)), const(y.type, -1), const(y.type, 1)))


def known_number(y: Value) -> int | None:
    """The number that a constant is, in all lanes."""
    text = y.text.removeprefix(f"splat ({element(y.type)} ").removesuffix(")")
    return int(text) if text.lstrip("-").isdigit() else _NUMBERS.get(text)


def has_signs(type: str, signed: bool) -> bool:
    """Whether numbers of a type are divided with their signs."""
    return signed and bit_width(type) > 1
