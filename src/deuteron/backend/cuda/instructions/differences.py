"""Differences of fields of a few bits as f16 or bf16, two at a time, without conversions (see exponents.py).

    weight - zero, both of 4 bits      x = prmt(weight0 - (zero - 0x6600), weight1 - (zero - 0x6600))     1536 + both
                                       x - (1536, 1536)

A half of the range below the exponent is added, so that no difference is negative there. Every step is exact.
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.fields import number_of
from deuteron.backend.llvm.types import Value, const, vector, vector_const

# Bits below the exponent, and the bits and the value of a number with the highest of them: the last one counts 1.
_MIDDLES = {"half": (10, 0x6600, 1536), "bfloat": (7, 0x4340, 192)}
_LOW_HALVES = 0x5410


def differences_below_exponents(b: Builder, values: Sequence[Value], type: str, is_signed: bool) -> dict[Value, Value]:
    """What those of the values become, by twos, that are such differences."""
    digits, bits, middle = _MIDDLES[type]
    taken = [value for value in dict.fromkeys(values) if is_signed and _has_room(b, value, digits)]
    moved: dict[Value, Value] = {}  # what is subtracted, once for all from which it is
    results: dict[Value, Value] = {}
    for pair in zip(taken[::2], taken[1::2], strict=False):
        low, high = (_above(b, *b.differences[value], bits, moved) for value in pair)
        word = b.call("i32", "llvm.nvvm.prmt", low, high, const("i32", _LOW_HALVES))
        made = b.fadd(b.bitcast(word, vector(type, 2)), vector_const(type, [-middle] * 2), flags="")
        results.update((value, b.extractelement(made, index)) for index, value in enumerate(pair))
    return results


def _has_room(b: Builder, value: Value, digits: int) -> bool:
    """Whether a word is a difference of which less than so many bits are known to be needed, with its sign."""
    if value.type != "i32" or value not in b.differences:
        return False
    first, second = (number_of(b, operand, is_signed=True) for operand in b.differences[value])
    half = 1 << digits - 1
    return -half <= first.least - second.most and first.most - second.least < half


def _above(b: Builder, first: Value, second: Value, bits: int, moved: dict[Value, Value]) -> Value:
    if second not in moved:
        moved[second] = b.sub(second, const("i32", bits))
    return b.sub(first, moved[second])
