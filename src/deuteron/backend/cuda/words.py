"""Elements packed into words, the registers of memory and shuffle instructions.

    four i16  ->  two i32          (a half is an i16 of bits)
    one i8    ->  one i16          the smallest register of PTX
    one i64   ->  one i64, or two i32 where an instruction takes no more
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, bit_width, poison, vector


def pack(b: Builder, elements: Sequence[Value]) -> list[Value]:
    """Integers of one type as words of 32 bits, of 64 for i64; less than 32 bits are one i16."""
    bits, total = bit_width(elements[0].type), bit_width(elements[0].type) * len(elements)
    if bits >= 32:
        return list(elements)
    if total == 8:
        return [b.zext(elements[0], "i16")]
    joined = join(b, elements)
    if total < 32:
        return [b.bitcast(joined, "i16")]
    count = total // 32
    words = b.bitcast(joined, vector("i32", count))
    return [words] if count == 1 else [b.extractelement(words, index) for index in range(count)]


def unpack(b: Builder, words: Sequence[Value], type: str, count: int) -> list[Value]:
    """The elements, of an integer type, that `pack` put into words."""
    bits = bit_width(type)
    if bits >= 32:
        return list(words)
    if bits * count == 8:
        return [b.trunc(words[0], type)]
    joined = words[0] if len(words) == 1 else join(b, words)
    return split(b, b.bitcast(joined, vector(type, count)), count)


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
