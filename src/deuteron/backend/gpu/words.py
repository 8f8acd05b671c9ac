"""Elements packed into words, the registers of memory and shuffle instructions.

four i16  ->  two i32          (a half is an i16 of bits)
one i8    ->  one i16          the smallest register of PTX
one i64   ->  one i64, or two i32 where an instruction takes no more
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, bit_width, const, poison, vector


def pack(b: Builder, elements: Sequence[Value]) -> list[Value]:
    """Integers of one type as words of 32 bits, of 64 for i64; less than 32 bits are one i16."""
    type, count = elements[0].type, len(elements)
    if bit_width(type) >= 32:
        return list(elements)
    word, per_word = word_type(type, count), min(32 // bit_width(type), count)
    return [_pack_one(b, elements[begin : begin + per_word], word) for begin in range(0, count, per_word)]


def _pack_one(b: Builder, elements: Sequence[Value], word: str) -> Value:
    """Halves as a vector, which is one instruction; bytes by shifts, since vectors of bytes have no instructions."""
    if elements[0].type == "i16":
        return b.bitcast(join(b, elements), word)
    total = b.zext(elements[0], word)
    for index, element in enumerate(elements[1:], 1):
        total = b.or_(total, b.shl(b.zext(element, word), const(word, 8 * index)), "disjoint")
    return total


def unpack(b: Builder, words: Sequence[Value], type: str, count: int) -> list[Value]:
    """The elements, of an integer type, that `pack` put into words."""
    if bit_width(type) >= 32:
        return list(words)
    return [element for word in words for element in _unpack_one(b, word, type, count // len(words))]


def _unpack_one(b: Builder, word: Value, type: str, count: int) -> list[Value]:
    if type == "i16":
        return split(b, b.bitcast(word, vector(type, count)), count)
    shifted = [b.lshr(word, const(word.type, 8 * index)) if index else word for index in range(count)]
    return [b.trunc(part, type) for part in shifted]


def word_type(type: str, count: int) -> str:
    """The type of the words of `count` elements."""
    return type if bit_width(type) >= 32 else "i32" if bit_width(type) * count >= 32 else "i16"


def join(b: Builder, elements: Sequence[Value]) -> Value:
    """A vector; one element stays as it is."""
    if len(elements) == 1:
        return elements[0]
    joined = poison(vector(elements[0].type, len(elements)))
    for index, element in enumerate(elements):
        joined = b.insertelement(joined, element, index)
    return joined


def split(b: Builder, joined: Value, count: int) -> list[Value]:
    return [joined] if count == 1 else [b.extractelement(joined, index) for index in range(count)]


def struct_members(b: Builder, result: Value, type: str, count: int) -> list[Value]:
    """What an instruction with several results gives; one is no struct."""
    return [result] if count == 1 else [b.extractvalue(result, index, type) for index in range(count)]


def struct_type(type: str, count: int) -> str:
    return type if count == 1 else "{ " + ", ".join([type] * count) + " }"


CONSTRAINTS = {"i16": "h", "i32": "r", "i64": "l", "float": "f", "double": "d", "i1": "b"}
