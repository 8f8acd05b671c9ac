"""Moves elements between the lanes of a warp: any integer type, several narrow ones in one instruction.

exchange(b, [x, y], 4)          each lane gets x and y of the lane whose number differs in bit 2 (shfl.sync.bfly)
fetch(b, [x, y], lane)          x and y of another lane (shfl.sync.idx)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deuteron.backend.gpu.words import join, pack, unpack
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, bit_width, const

ALL_LANES, LAST_LANE = const("i32", -1), const("i32", 31)


def exchange(b: Builder, elements: Sequence[Value], lane_mask: int) -> list[Value]:
    """The elements (integers of one type) of the lane whose number is XORed with a mask."""
    return _move(b, elements, "llvm.nvvm.shfl.sync.bfly.i32", const("i32", lane_mask))


def fetch(b: Builder, elements: Sequence[Value], lane: Value) -> list[Value]:
    """The elements (integers of one type) of a lane."""
    return _move(b, elements, "llvm.nvvm.shfl.sync.idx.i32", lane)


def _move(b: Builder, elements: Sequence[Value], name: str, lane: Value) -> list[Value]:
    def shuffle(word: Value) -> Value:
        return b.call("i32", name, ALL_LANES, word, lane, LAST_LANE)

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
