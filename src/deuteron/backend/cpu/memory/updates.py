"""What atomics do to elements, and plain updates in their place while the launch finds its thread alone.

    in_order(b, ordering, watch)              what comes before and after stays there, for those that only read, too
    is_alone(b, watch)                        nobody else of the process updates anything (`pool_updates.py`)
    update_plainly(b, update, first, values)  load, combine, store: neighbours, all on; some of them: `update_masked`

Lanes that are chosen at run time may have one address: they are updated one after the other, the first one first. No
update moves over a look of the launch's (`countdown.py`), after which the thread may be alone no more: in a kernel with
atomics looks may touch all memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from deuteron.backend.cpu.launch.pool_layout import ALONE, WATCH
from deuteron.backend.cpu.memory.lane_loops import lanes_on, put_in_memory
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, byte_width, const, element, vector, width, zero

WINDOW = 16  # bytes


class Update(ABC):
    """What is done to the elements. `name` tells it from others; `memory`: their type as they lie in memory, of which
    there are masked loads and stores or not (`has_masked_moves`).
    """

    name: str
    memory: str
    has_masked_moves: bool

    @abstractmethod
    def one(self, b: Builder, pointer: Value, value: Value) -> Value:
        """Update an element; returns what it was."""

    @abstractmethod
    def combined(self, b: Builder, bits: Value, value: Value) -> tuple[Value, Value]:
        """What elements were, and what they are to be in memory, of their bits."""

    @abstractmethod
    def exchange(self, b: Builder, pointer: Value, expected: Value, new: Value) -> Value:
        """A compare-exchange of integers; returns what was there."""

    @property
    def per_window(self) -> int:
        return WINDOW // byte_width(self.memory)


@contextmanager
def in_order(b: Builder, ordering: str, watch: Value | None) -> Iterator[None]:
    """Around updates that may be plain. Who reads them without atomics is not counted: a flag is seen after what it
    tells of. On x86-64 that takes no instruction.
    """
    if watch and ordering in ("release", "acq_rel"):
        b.fence("release")
    yield
    if watch and ordering in ("acquire", "acq_rel"):
        b.fence("acquire")


def is_alone(b: Builder, watch: Value) -> Value:
    word = b.gep("i64", watch, const("i64", WATCH.index("alone")))
    return b.icmp("eq", b.load_atomic("i64", word, "monotonic"), const("i64", ALONE))


def update_plainly(b: Builder, update: Update, pointer: Value, values: Value) -> Value:
    """Of one element, or of neighbours; returns what they were. They may be at any address."""
    lanes = width(values.type)
    type = vector(update.memory, lanes) if lanes > 1 else update.memory
    old, new = update.combined(b, b.load(type, pointer, 1), values)
    b.store(new, pointer, 1)
    return old


def update_masked(b: Builder, update: Update, pointer: Value, values: Value, mask: Value) -> Value:
    """Of neighbours of which some are on; returns what they were, 0 of others."""
    old, new = update.combined(b, b.masked_load(vector(update.memory, width(values.type)), pointer, 1, mask), values)
    b.masked_store(new, pointer, 1, mask)
    return old


def update_one(b: Builder, update: Update, pointer: Value, value: Value, watch: Value | None) -> Value:
    """Of one element, locked or not; returns what it was."""
    if watch is None:
        return update.one(b, pointer, value)
    with b.if_(is_alone(b, watch), "alone") as branch:
        branch.yield_(update_plainly(b, update, pointer, value))
        branch.otherwise()
        branch.yield_(update.one(b, pointer, value))
    return branch.results[0]


@dataclass(frozen=True)
class Lanes:
    """Of a function: values in memory, and, if they are read, what elements were."""

    b: Builder
    update: Update
    values: Value
    type: str
    results: Value | None

    def value(self, lane: Value) -> Value:
        return self.b.load(element(self.type), self._at(self.values, lane), self._alignment)

    def keep(self, lane: Value, old: Value) -> None:
        if self.results is not None:
            self.b.store(old, self._at(self.results, lane), self._alignment)

    def found(self) -> Value | None:
        return None if self.results is None else self.b.load(self.type, self.results, self._alignment)

    def update_alone(self, mask: Value, address_of: Callable[[Value], Value]) -> None:
        """Update those that are on, and return."""
        with lanes_on(self.b, mask) as lane:
            self.keep(lane, update_plainly(self.b, self.update, address_of(lane), self.value(lane)))
        self.b.ret(self.found())

    def _at(self, place: Value, lane: Value) -> Value:
        return self.b.gep(element(self.type), place, lane)

    @property
    def _alignment(self) -> int:
        return byte_width(element(self.type))


def lanes_of(b: Builder, update: Update, values: Value, is_read: bool) -> Lanes:
    """In the entry block."""
    results = put_in_memory(b, zero(values.type)) if is_read else None
    return Lanes(b, update, put_in_memory(b, values), values.type, results)
