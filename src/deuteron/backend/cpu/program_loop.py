"""The programs that a call of a kernel's function runs, as its loop counts them.

grid (5, 3), from 4 to 12, x fastest        (4, 0), (0, 1), (1, 1) ... (1, 2)
where every second along x does something   (4, 0), (0, 1), (2, 1), (4, 1), (0, 2): counted as 2, 3, 4, 5, 6 of (3, 3)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from deuteron.backend.cpu.plan.programs.grid_order import FROM_X, Order
from deuteron.backend.cpu.plan.programs.idle_programs import EVERY_PROGRAM, Stride
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const


@dataclass(frozen=True)
class Programs:
    """Those with `begin <= number < end` of a grid; their ids are multiples of `stride` along the first dimension."""

    begin: Value
    end: Value
    sizes: list[Value]
    order: Order
    stride: Value | None = None

    def every(self, b: Builder, stride: Stride) -> Programs:
        """Of these, those that do something, along the first dimension."""
        if stride == EVERY_PROGRAM:
            return self
        fast = self.order[0]
        size, one = self._extent(b, fast), const("i64", 1)
        are_few = b.icmp("slt", self.sizes[fast], const("i32", stride.least))
        apart = b.select(are_few, one, const("i64", stride.count))

        def num_before(place: Value) -> Value:
            return b.udiv(b.add(place, b.sub(apart, one)), apart)

        def number_of(program: Value) -> Value:
            return b.add(b.mul(b.udiv(program, size), count), num_before(b.urem(program, size)))

        count, narrow = num_before(size), [b.trunc(value, "i32") for value in (num_before(size), apart)]
        sizes = [narrow[0] if axis == fast else self.sizes[axis] for axis in FROM_X]
        return replace(self, begin=number_of(self.begin), end=number_of(self.end), sizes=sizes, stride=narrow[1])

    def _extent(self, b: Builder, axis: int) -> Value:
        """An empty grid has no programs, and must not divide by zero."""
        return b.zext(b.intrinsic("llvm.umax", "i32", self.sizes[axis], const("i32", 1)), "i64")

    def first(self, b: Builder) -> list[Value]:
        """Where the first one is."""
        fast, middle = (self._extent(b, axis) for axis in self.order[:2])
        rest = b.udiv(self.begin, fast)
        places = (b.urem(self.begin, fast), b.urem(rest, middle), b.udiv(rest, middle))
        return [b.trunc(places[self.order.index(axis)], "i32") for axis in FROM_X]

    def after(self, b: Builder, places: list[Value]) -> list[Value]:
        """Where the next one is: a counter with three digits."""
        following, carry = list(places), const("i32", 1)
        for axis in self.order[:2]:
            counted = b.add(places[axis], carry)
            wraps = b.icmp("eq", counted, self.sizes[axis])
            following[axis], carry = b.select(wraps, const("i32", 0), counted), b.zext(wraps, "i32")
        following[self.order[2]] = b.add(places[self.order[2]], carry)
        return following

    def ids(self, b: Builder, places: list[Value]) -> list[Value]:
        """The ids of the program at a place."""
        if self.stride is None:
            return places
        fast = self.order[0]
        return [b.mul(place, self.stride) if axis == fast else place for axis, place in enumerate(places)]
