"""Moves elements between the lanes of a warp: any integer type, several narrow ones in one instruction.

exchange(b, isa, [x, y], 4)          each lane gets x and y of the lane whose number differs in bit 2
fetch(b, isa, [x, y], lane)          x and y of another lane
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deuteron.backend.gpu.isa import ISA
from deuteron.backend.gpu.words import join, pack, unpack
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, bit_width


def exchange(b: Builder, isa: ISA, elements: Sequence[Value], lane_mask: int) -> list[Value]:
    """The elements (integers of one type) of the lane whose number is XORed with a mask."""
    return _move(b, elements, lambda word: isa.shuffle_xor(b, word, lane_mask))


def fetch(b: Builder, isa: ISA, elements: Sequence[Value], lane: Value) -> list[Value]:
    """The elements (integers of one type) of a lane."""
    return _move(b, elements, lambda word: isa.shuffle(b, word, lane))


def _move(b: Builder, elements: Sequence[Value], shuffle: Callable[[Value], Value]) -> list[Value]:
    per_word = max(32 // bit_width(elements[0].type), 1)
    moved: list[Value] = []
    for begin in range(0, len(elements), per_word):
        moved += _move_group(b, list(elements[begin : begin + per_word]), shuffle)
    return moved


def _move_group(b: Builder, group: list[Value], shuffle: Callable[[Value], Value]) -> list[Value]:
    """What fits into one word of 32 bits, or one element of 64."""
    type, count, wanted = group[0].type, len(group), len(group)
    if bit_width(type) == 64:
        halves = b.bitcast(group[0], "<2 x i32>")
        return [b.bitcast(join(b, [shuffle(b.extractelement(halves, index)) for index in range(2)]), type)]
    while bit_width(type) * count < 32 and count & (count - 1):
        group, count = [*group, group[0]], count + 1
    words = pack(b, group)
    moved = [b.trunc(shuffle(b.zext(word, "i32")), word.type) for word in words]
    return unpack(b, moved, type, count)[:wanted]
