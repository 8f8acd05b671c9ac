"""Which of several buffers an index means: a constant, or steps around a ring from a number that a loop carries.

^bb0(%i: i32, %last: i32):                          %last wraps around: 2, 0, 1, 2, ...
  %next = "ttg.ring_next"(%last) <{slots = 3}>      BufferIndex(3, %last, 1): one after %last, never the same
  "scf.yield"(%next)                                in the next iteration, %last + 1 is called %last
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from deuteron.ir.arith import constant_value
from deuteron.ir.around import is_defined_in
from deuteron.ir.ttg.ring import RingNextOp

Indexed = TypeVar("Indexed")
"""A frozen dataclass with the field `index: BufferIndex | None`."""


@dataclass(frozen=True)
class BufferIndex:
    """`offset` steps, going round, from `start`; from buffer 0 where that is None."""

    count: int
    start: SSAValue | None
    offset: int

    def differs(self, other: BufferIndex) -> bool:
        """Whether it is certainly another buffer."""
        return self.count == other.count and self.start is other.start and self.offset != other.offset


def index_of(value: SSAValue, count: int) -> BufferIndex:
    """What an index is known to be."""
    steps = 0
    while (previous := _previous(value, count)) is not None:
        value, steps = previous, steps + 1
    number = constant_value(value)
    return BufferIndex(count, None if number is not None else value, (steps + (number or 0)) % count)


def _previous(value: SSAValue, count: int) -> SSAValue | None:
    """What the index is the next of."""
    step = value.owner
    is_step = isinstance(step, RingNextOp) and value is step.next_index and step.num_slots == count
    return step.index if is_step else None


def renamed_in_next_iteration(accesses: Iterable[Indexed], loop: Operation) -> frozenset[Indexed]:
    """Accesses, each of the buffer at its `index`, as the next iteration of a loop calls their buffers."""
    return _renamed(accesses, lambda index: in_next_iteration(index, loop))


def renamed_after(accesses: Iterable[Indexed], loop: Operation) -> frozenset[Indexed]:
    """The same after a loop."""
    return _renamed(accesses, lambda index: after(index, loop))


def _renamed(accesses: Iterable[Indexed], rename: Callable[[BufferIndex], BufferIndex | None]) -> frozenset[Indexed]:
    names: dict[BufferIndex | None, BufferIndex | None] = {None: None}
    for one in accesses:
        if one.index not in names:
            names[one.index] = rename(one.index)
    return frozenset(one if names[one.index] == one.index else replace(one, index=names[one.index]) for one in accesses)


def in_next_iteration(index: BufferIndex, loop: Operation) -> BufferIndex | None:
    """The same buffer, as the next iteration of a loop calls it; None where it has no name there."""
    start = index.start
    if start is None or not is_defined_in(start, loop):
        return index
    if not isinstance(loop, scf.ForOp) or start.owner is not loop.body.block or not start.index:
        return None
    following = index_of(loop.body.block.last_op.operands[start.index - 1], index.count)
    if following.start is not start:
        return None
    return replace(index, offset=(index.offset - following.offset) % index.count)


def after(index: BufferIndex, loop: Operation) -> BufferIndex | None:
    """The same buffer after a loop; None where it has no name there."""
    return None if index.start is not None and is_defined_in(index.start, loop) else index
