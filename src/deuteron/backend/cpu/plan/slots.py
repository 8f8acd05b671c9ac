"""Where tiles are in the scratch memory: a *slot* is a buffer, a *place* is a view of one.

acc: 64 x 64 of float       Place(Slot("float", 4096, 16384), (64, 64))
a reshape of it             the same slot, of another shape
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from xdsl.ir import SSAValue

from deuteron.backend.cpu.plan.products.operand_layout import OperandLayout

TABLE_WORDS, ENTRY_WORDS = 5, 3  # of a table of keys, and of each of its entries, beside keys (`rules/key_table.py`)


def dense_strides(shape: tuple[int, ...], innermost: int | None = None) -> tuple[int, ...]:
    """The strides of a shape, in elements: row-major, but for the dimension whose neighbours are neighbours in memory.

    (64, 4)     (4, 1)      innermost=0     (1, 64)
    """
    axes = [axis for axis in range(len(shape)) if axis != innermost]
    strides, stride = [0] * len(shape), 1
    for axis in reversed(axes if innermost is None else [*axes, innermost]):
        strides[axis] = stride
        stride *= shape[axis]
    return tuple(strides)


@dataclass(eq=False)
class Slot:
    """A buffer: `count` elements of an LLVM type. Slots that were coalesced share `merged`; `offset` comes last.

    `innermost`: the dimension along which neighbours are neighbours in memory, of a tile that is not row-major.
    `layout`: of an operand of a product, which has the slot for itself; `reuse`: what programs find packed in it.
    """

    type: str
    count: int
    num_bytes: int
    innermost: int | None = None
    layout: OperandLayout | None = None
    reuse: Reuse | None = None
    offset: int = -1
    merged: Slot | None = None

    @property
    def representative(self) -> Slot:
        slot = self
        while slot.merged is not None:
            slot = slot.merged
        return slot


@dataclass(eq=False)
class Reuse:
    """What is found packed, under what the scalars of the `key` were, the last ones: at most `most_entries`. There is
    room for `groups` of `steps` steps each, of `group_bytes`, and for one more. The table of keys begins at the word of
    the number `word`; `is_eager`: the first key is kept at once.
    """

    slot: Slot
    key: tuple[SSAValue, ...]
    steps: int
    groups: int
    group_bytes: int
    word: int
    most_entries: int = 1
    is_eager: bool = True

    @property
    def num_words(self) -> int:
        return TABLE_WORDS + 2 * len(self.key) + self.most_entries * (ENTRY_WORDS + len(self.key))


@dataclass(frozen=True)
class Place:
    """Where a tile of `shape` is: its elements, in row-major order, are `offset`, `offset + step`, ... of a slot.

    A tile that is computed has a slot of its own, with a step of 1. What shows the memory of another tile keeps this
    form: of the halves that tt.split gives, each has every second element, and a reshape leaves the order as it is.
    Another order than row-major is for tiles that nothing else shows the memory of: see orders.py.
    """

    slot: Slot
    shape: tuple[int, ...]
    step: int = 1
    offset: int = 0

    @property
    def strides(self) -> tuple[int, ...]:
        """How far apart neighbours along each dimension are, in elements."""
        if self.slot.layout is not None:
            return self.slot.layout.strides
        return tuple(self.step * stride for stride in dense_strides(self.shape, self.slot.innermost))

    @property
    def is_whole(self) -> bool:
        """Whether the tile is all that its slot holds."""
        return self.slot.layout is None and self.step == 1 and prod(self.shape) == self.slot.count

    def reshaped(self, shape: tuple[int, ...]) -> Place:
        """The same elements in the same order, as another shape."""
        return replace(self, shape=shape)

    def half(self, number: int) -> Place:
        """The elements that have this number in the last dimension, whose extent is 2."""
        offset = self.offset + number * self.step
        return replace(self, shape=self.shape[:-1], step=2 * self.step, offset=offset)

    def part(self, number: int, shape: tuple[int, ...]) -> Place:
        """The part of this number, of parts of this shape that follow one another along the first dimension."""
        return replace(self, shape=shape, offset=self.offset + number * prod(shape) * self.step)
