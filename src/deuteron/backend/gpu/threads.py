"""What depends on the thread: its lane and warp, the coordinates of its registers, which of its elements it owns.

    threads.coordinates(layout)         for each dimension the part that lane and warp contribute, an Index
    index.at(b, 8)                      that XOR 8; where no bits meet, `or disjoint`, which folds into addresses
    threads.owner(layout)               i1: no other thread with a lower lane or warp holds the same elements

The part of the thread is computed once for each layout, in the function's first block; the part of a register is a
constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from deuteron.backend.gpu.isa import ISA
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.control_flow import Block
from deuteron.backend.llvm.types import Value, const
from deuteron.layout.linear import LANE, REGISTER, WARP, LinearLayout, log2


@dataclass(frozen=True)
class Index:
    """An i32 that depends on the thread and of which only some bits can be set."""

    value: Value
    bits: int

    def at(self, b: Builder, constant: int) -> Value:
        """The index XOR a constant."""
        if constant == 0:
            return self.value
        if self.bits == 0:
            return const("i32", constant)
        other = const("i32", constant)
        return b.xor(self.value, other) if self.bits & constant else b.or_(self.value, other, "disjoint")


def apply_columns(b: Builder, value: Value, columns: Sequence[int]) -> Index:
    """The product of a matrix over F2 with the bits of a value: bits that move alike are moved together."""
    moves: dict[int, int] = {}
    for bit, column in enumerate(columns):
        for target in range(column.bit_length()):
            if column >> target & 1:
                moves[target - bit] = moves.get(target - bit, 0) | 1 << bit
    total = Index(const("i32", 0), 0)
    for shift, mask in sorted(moves.items()):
        part = value if mask == (1 << len(columns)) - 1 else b.and_(value, const("i32", mask))
        amount = const("i32", abs(shift))
        moved = part if not shift else b.shl(part, amount) if shift > 0 else b.lshr(part, amount)
        total = xor(b, total, Index(moved, mask << shift if shift > 0 else mask >> -shift))
    return total


def xor(b: Builder, x: Index, y: Index) -> Index:
    if not x.bits:
        return y
    if not y.bits:
        return x
    joined = b.xor(x.value, y.value) if x.bits & y.bits else b.or_(x.value, y.value, "disjoint")
    return Index(joined, x.bits | y.bits)


class Threads:
    """The threads of one kernel, or of a part of its warps, and the values that depend on the thread; these are emitted
    into a block that comes before all others, when first asked for.
    """

    def __init__(
        self, b: Builder, isa: ISA, warp_size: int, num_warps: int, first_warp: int = 0, barrier: int | None = None
    ):
        """From `first_warp` on; they wait for each other at that barrier, None: the one of all warps."""
        self._b, self._isa, self.warp_size, self.num_warps, self.barrier = b, isa, warp_size, num_warps, barrier
        self._entry: Block = b.current_block
        self._known: dict = {}
        with self.in_entry():
            index = isa.thread_index(b)
            self.index = b.sub(index, const("i32", warp_size * first_warp)) if first_warp else index
            self.lane = b.and_(self.index, const("i32", warp_size - 1)) if num_warps > 1 else self.index
            self.warp = b.lshr(self.index, const("i32", log2(warp_size))) if num_warps > 1 else const("i32", 0)

    @property
    def count(self) -> int:
        return self.warp_size * self.num_warps

    @contextmanager
    def in_entry(self) -> Iterator[None]:
        """Within, code goes to the block that comes before all others."""
        current = self._b.current_block
        self._b.position(self._entry)
        yield
        self._b.position(current)

    def image(self, lane_columns: Sequence[int], warp_columns: Sequence[int]) -> Index:
        """A linear function of lane and warp."""
        key = (tuple(lane_columns), tuple(warp_columns))
        if key not in self._known:
            with self.in_entry():
                lane = apply_columns(self._b, self.lane, lane_columns)
                warp = apply_columns(self._b, self.warp, warp_columns)
                self._known[key] = xor(self._b, lane, warp)
        return self._known[key]

    def uniform_image(self, warp_columns: Sequence[int]) -> Value | None:
        """A linear function of the warp, known to be equal in all its lanes; None where it is 0."""
        if not any(warp_columns):
            return None
        key = ("uniform", tuple(warp_columns))
        if key not in self._known:
            warp = self.uniform_warp
            with self.in_entry():
                self._known[key] = apply_columns(self._b, warp, warp_columns).value
        return self._known[key]

    @property
    def uniform_warp(self) -> Value:
        """The warp, known to be equal in all its lanes."""
        if "uniform warp" not in self._known:
            with self.in_entry():
                self._known["uniform warp"] = self._isa.uniform(self._b, self.warp)
        return self._known["uniform warp"]

    def coordinates(self, layout: LinearLayout) -> list[Index]:
        """For each dimension, the part of the coordinate that lane and warp contribute."""
        return [
            self.image([basis[axis] for basis in layout.of(LANE)], [basis[axis] for basis in layout.of(WARP)])
            for axis in range(len(layout.shape))
        ]

    def owner(self, layout: LinearLayout | None) -> Value | None:
        """Whether the thread is the one of those with equal elements that stores them; None if all are.

        Without a layout: the one thread that stores a scalar.
        """
        if layout is None:
            return self.zero_bits((1 << (self.count - 1).bit_length()) - 1)
        free = layout.free_bits()
        return self.zero_bits(free[LANE], free[WARP])

    def zero_bits(self, lane_mask: int, warp_mask: int = 0) -> Value | None:
        """Whether these bits of the thread's number (those of the lane, then those of the warp) are all 0."""
        mask = lane_mask | warp_mask << log2(self.warp_size)
        if not mask:
            return None
        if ("zero", mask) not in self._known:
            b = self._b
            with self.in_entry():
                masked = b.and_(self.index, const("i32", mask))
                self._known["zero", mask] = b.icmp("eq", masked, const("i32", 0))
        return self._known["zero", mask]


def owned_registers(layout: LinearLayout) -> list[int]:
    """The registers that hold no replica of another register of the thread."""
    free = layout.free_bits()[REGISTER]
    return [register for register in range(layout.in_size(REGISTER)) if not register & free]
