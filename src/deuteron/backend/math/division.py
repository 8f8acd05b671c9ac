"""Integer division as the language defines it, which LLVM leaves open and a CPU traps at: by 0 is by 1, and it wraps.

    x // 0 = x      x % 0 = 0      INT_MIN // -1 = INT_MIN      INT_MIN % -1 = 0

    divisor = safe_divisor(b, y, signed=True)           y; 1 where y is 0 or -1
    with_sign(b, b.sdiv(x, divisor), y)                 x // y: the quotient, or -x where y is -1
    b.srem(x, divisor)                                  x % y

What is done beside the division depends on the divisor alone, but for a multiplication by 1 or -1: a divisor that is
one number for a whole tile costs once. A number that is known costs nothing.
"""

from __future__ import annotations

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const, element

_NUMBERS = {"true": -1, "false": 0, "zeroinitializer": 0}


def safe_divisor(b: Builder, y: Value, signed: bool) -> Value:
    """y, or 1 where a division by y may be undefined."""
    one, number = const(y.type, 1), known_number(y)
    if number is not None:
        return one if number == 0 or (signed and number == -1) else y
    if signed:
        return b.select(b.icmp("ult", b.add(y, one), const(y.type, 2)), one, y)
    return b.select(b.icmp("eq", y, const(y.type, 0)), one, y)


def with_sign(b: Builder, quotient: Value, y: Value) -> Value:
    """-quotient where y is -1."""
    number, minus_one = known_number(y), const(y.type, -1)
    if number is not None:
        return b.sub(const(y.type, 0), quotient) if number == -1 else quotient
    return b.mul(quotient, b.select(b.icmp("eq", y, minus_one), minus_one, const(y.type, 1)))


def known_number(y: Value) -> int | None:
    """The number that a constant is, in all lanes."""
    text = y.text.removeprefix(f"splat ({element(y.type)} ").removesuffix(")")
    return int(text) if text.lstrip("-").isdigit() else _NUMBERS.get(text)
