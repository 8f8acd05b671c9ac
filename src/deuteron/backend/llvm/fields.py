"""Integers that are some bits of a word: what shifts, masks and casts leave of it.

    field_of(b, b.and_(b.lshr(word, 12), 15))                  bits 12 to 15 of the word, no sign
    field_of(b, b.ashr(b.shl(b.trunc(word, "i8"), 4), 4))      bits 0 to 3, the last of them the sign
    field_of(b, b.and_(word, 0xF0))                            bits 4 to 7, moved up by 4
    field_of(b, b.sub(b.and_(word, 15), 8))                    bits 0 to 3, and -8

An instruction that takes the bits of several such integers from their words need not compute the integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from deuteron.backend.llvm.arithmetic import Arithmetic
from deuteron.backend.llvm.types import Value, bit_width


@dataclass(frozen=True)
class Field:
    """`width` bits of a word from bit `shift` on, moved up by `up` in an integer of `size` bits, plus an offset.

    Above them are copies of the highest one, or zeros; where they reach the top of the integer, how it is read says
    whether that is the sign.
    """

    word: Value
    shift: int
    width: int
    size: int
    is_signed: bool = False
    up: int = 0
    offset: int = 0

    @property
    def reaches_top(self) -> bool:
        return self.width + self.up == self.size

    def read_as(self, is_signed: bool) -> Field | None:
        """The field of the number that the integer is; None where that is not the field's plus the offset."""
        if not self.reaches_top and self.is_signed and not is_signed:
            return None
        found = replace(self, is_signed=is_signed) if self.reaches_top else self
        least = -1 << self.size - 1 if is_signed else 0
        return found if least <= found.least and found.most < least + (1 << self.size) else None

    @property
    def least(self) -> int:
        return (-1 << self.width - 1 << self.up if self.is_signed else 0) + self.offset

    @property
    def most(self) -> int:
        return ((1 << self.width - self.is_signed) - 1 << self.up) + self.offset


def number_of(b: Arithmetic, value: Value, is_signed: bool) -> Field:
    """The field that a scalar integer is, read with a sign or without: at the least all bits of itself."""
    size = bit_width(value.type)
    return field_of(b, value).read_as(is_signed) or Field(value, 0, size, size, is_signed)


def field_of(b: Arithmetic, value: Value) -> Field:
    """The field that a scalar integer is, whose sign may be open."""
    size = bit_width(value.type)
    definition = b.definitions.get(value)
    if definition is not None:
        opcode, source, number = definition
        field = _RULES[opcode](field_of(b, source), number, size)
        if field is not None and field.width > 0:
            return field
    return Field(value, 0, size, size)


def _truncated(field: Field, _: int, size: int) -> Field | None:
    return None if field.offset else replace(field, width=min(field.width, size - field.up), size=size)


def _extended(is_signed: bool) -> Callable[[Field, int, int], Field | None]:
    def rule(field: Field, _: int, size: int) -> Field | None:
        if field.offset or (field.is_signed and not is_signed and not field.reaches_top):
            return None
        return replace(field, is_signed=is_signed if field.reaches_top else field.is_signed, size=size)

    return rule


def _masked(field: Field, mask: int, size: int) -> Field | None:
    """By a mask of neighbouring bits, all of them below copies of the highest bit."""
    mask &= (1 << size) - 1
    first, end = max((mask & -mask).bit_length() - 1, 0), mask.bit_length()
    top = field.width + field.up
    has_copies = field.is_signed and end > top and not field.reaches_top
    if not mask or field.offset or mask != (1 << end) - (1 << first) or has_copies:
        return None
    low = max(first, field.up)
    return replace(field, shift=field.shift + low - field.up, width=min(end, top) - low, is_signed=False, up=low)


def _shifted_left(field: Field, count: int, size: int) -> Field | None:
    if field.offset or count >= size:
        return None
    up = field.up + count
    return replace(field, width=min(field.width, size - up), up=up)


def _shifted_right(is_signed: bool) -> Callable[[Field, int, int], Field | None]:
    def rule(field: Field, count: int, size: int) -> Field | None:
        copies = is_signed if field.reaches_top else field.is_signed
        if field.offset or count >= size or copies != (is_signed and copies):
            return None
        lost = max(count - field.up, 0)
        up = max(field.up - count, 0)
        return replace(field, shift=field.shift + lost, width=field.width - lost, is_signed=copies, up=up)

    return rule


def _offset(sign: int) -> Callable[[Field, int, int], Field | None]:
    def rule(field: Field, number: int, _: int) -> Field | None:
        return replace(field, offset=field.offset + sign * number)

    return rule


_RULES: dict[str, Callable[[Field, int, int], Field | None]] = {
    "trunc": _truncated,
    "zext": _extended(False),
    "sext": _extended(True),
    "and": _masked,
    "shl": _shifted_left,
    "lshr": _shifted_right(False),
    "ashr": _shifted_right(True),
    "add": _offset(1),
    "sub": _offset(-1),
}
