"""Atomic updates of neighbouring elements, 16 bytes of them at a time, as functions of the module.

    define internal <16 x float> @update_fadd.monotonic.f32.v16f32(ptr %first, <16 x float> %values, <16 x i1> %mask)

    first = 8 (mod 16)     | - - a b | c d e f | g h i j | ...      windows: multiples of 16
                             one by   cmpxchg of 16 bytes            where all elements of one are on
                             one

A processor takes as long for 16 bytes as for 4 (Zen 5: 5.7 and 5.0 ns). It updates a window as a whole, so that no
update of a part of it by another thread is lost, whatever its size. What is off is not touched. Elements that are not
at multiples of their size are updated one by one: a window has to be at a multiple of its own. So is what is scattered.
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron.backend.cpu.memory.lane_loops import lane_function, lanes_on, put_in_memory
from deuteron.backend.cpu.memory.updates import WINDOW, Update, is_alone, lanes_of, update_masked, update_plainly
from deuteron.backend.llvm.builder import Builder, mangle
from deuteron.backend.llvm.types import Value, byte_width, const, element, vector, width, zero
from deuteron.backend.math.vectors import all_lanes


def update_neighbours(
    b: Builder, update: Update, first: Value, values: Value, mask: Value, is_read: bool, watch: Value | None
) -> Value | None:
    """Update elements that follow one another, of those the ones that are on; returns what they were, 0 of others.

    None where it is not read: an atomic waits for the stores before it, also for those of what elements were. `watch`
    says whether nobody else updates anything, where that may be (`updates.py`).
    """
    name = _name(update, "", values, is_read, watch)
    result = values.type if is_read else "void"
    if not b.module.has_function(name):
        _Definition(b, name, update, values.type, result, watch is not None).emit()
    old = b.call(result, name, first, values, mask, *([watch] if watch else []))
    return old if is_read else None


def update_lanes(
    b: Builder, update: Update, pointers: Value, values: Value, mask: Value, is_read: bool, watch: Value | None
) -> Value | None:
    """Update elements anywhere, one after the other, of those the ones that are on; returns what they were."""
    name = _name(update, "_lanes", values, is_read, watch)
    result = values.type if is_read else "void"
    if not b.module.has_function(name):
        given = [watch.type] if watch else []
        _define_lanes(b, name, update, [pointers.type, values.type, mask.type, *given], result)
    old = b.call(result, name, pointers, values, mask, *([watch] if watch else []))
    return old if is_read else None


def _name(update: Update, what: str, values: Value, is_read: bool, watch: Value | None) -> str:
    return f"{'update' if is_read else 'set'}{what}_{update.name}.{mangle(values.type)}{'.or_alone' if watch else ''}"


def _define_lanes(outer: Builder, name: str, update: Update, types: Sequence[str], result: str) -> None:
    b, (pointers, values, mask, *watch) = lane_function(outer, name, result, types)
    lanes = lanes_of(b, update, values, result != "void")
    places = put_in_memory(b, pointers)
    if watch:
        with b.if_(is_alone(b, *watch), "alone"):
            lanes.update_alone(mask, lambda lane: b.load("ptr", b.gep("ptr", places, lane)))
    with lanes_on(b, mask) as lane:
        lanes.keep(lane, update.one(b, b.load("ptr", b.gep("ptr", places, lane)), lanes.value(lane)))
    b.ret(lanes.found())


class _Definition:
    """The function while it is emitted. Values, what is on, and results are on the stack, with a window around them."""

    def __init__(self, outer: Builder, name: str, update: Update, type: str, result: str, may_be_alone: bool):
        self.is_read = result != "void"
        self.update, self.type, self.lanes, self.register = update, type, width(type), element(type)
        types = [("ptr", "first"), (type, "values"), (vector("i1", self.lanes), "mask")]
        types += [("ptr", "watch")] if may_be_alone else []
        self.b = outer.module.function(name, result, types, attributes="noinline nounwind")
        self.count = self.lanes + 2 * update.per_window
        self.values, self.results = (self.b.alloca(self.register, self.count) for _ in range(2))
        self.on = self.b.alloca("i8", self.count)

    def emit(self) -> None:
        b, per, bytes = self.b, self.update.per_window, byte_width(self.update.memory)
        first = b.parameters[0]
        values, mask = (
            Value(type, value.text)
            for type, value in zip((self.type, vector("i1", self.lanes)), b.parameters[1:3], strict=True)
        )
        for watch in b.parameters[3:]:
            with b.if_(is_alone(b, watch), "alone"):
                self._update_alone(first, values, mask)
        start = const("i64", per)
        b.store(zero(vector("i8", self.count)), self.on, 1)
        b.store(b.zext(mask, vector("i8", self.lanes)), b.gep("i8", self.on, start), 1)
        self._put(self.values, start, values)
        within = b.and_(b.ptrtoint(first), const("i64", WINDOW - 1))
        is_aligned = b.icmp("eq", b.and_(within, const("i64", bytes - 1)), const("i64", 0))
        before = b.udiv(within, const("i64", bytes))
        end = b.add(before, const("i64", self.lanes))
        with b.loop(const("i64", 0), end, start, hint="window") as loop:
            number = b.sub(loop.index, before)
            self._update_window(b.gep(self.update.memory, first, number), b.add(number, start), is_aligned)
        b.ret(b.load(self.type, self._at(self.results, start), self._alignment) if self.is_read else None)

    def _update_alone(self, first: Value, values: Value, mask: Value) -> None:
        b = self.b
        are_on = all_lanes(b, mask)
        with b.if_(are_on, "all_on"):
            old = update_plainly(b, self.update, first, values)
            b.ret(old if self.is_read else None)
        if self.update.has_masked_moves:
            old = update_masked(b, self.update, first, values, mask)
            b.ret(old if self.is_read else None)
        else:
            lanes = lanes_of(b, self.update, values, self.is_read)
            lanes.update_alone(mask, lambda lane: b.gep(self.update.memory, first, lane))

    def _update_window(self, pointer: Value, number: Value, is_aligned: Value) -> None:
        """That at an address, whose elements have numbers from this one on."""
        b, per = self.b, self.update.per_window
        bits = b.load(vector("i8", per), b.gep("i8", self.on, number), 1)
        on = b.icmp("ne", bits, zero(bits.type))
        are_on = all_lanes(b, on)
        with b.if_(b.and_(are_on, is_aligned), "all_on") as branch:
            self._keep(number, self._exchange(pointer, number))
            branch.otherwise()
            with b.loop(const("i64", 0), const("i64", per), const("i64", 1), hint="lane") as loop:
                self._update_one(b.gep(self.update.memory, pointer, loop.index), b.add(number, loop.index))

    def _exchange(self, pointer: Value, number: Value) -> Value:
        """Update a whole window; returns what it was."""
        b, update = self.b, self.update
        value = b.load(vector(self.register, update.per_window), self._at(self.values, number), self._alignment)
        halves = [b.load_atomic("i64", b.gep("i64", pointer, const("i64", half)), "monotonic") for half in range(2)]
        both = b.insertelement(b.splat(halves[0], 2), halves[1], 1)
        first, start = b.bitcast(both, "i128"), b.current_block
        again, end = b.block("again"), b.block("updated")
        b.br(again)
        b.position(again)
        expected = b.phi("i128", [(first, start)])
        old, new = update.combined(b, b.bitcast(expected, vector(update.memory, update.per_window)), value)
        found = update.exchange(b, pointer, expected, b.bitcast(new, "i128"))
        b.add_incoming(expected, found, b.current_block)
        b.cond_br(b.icmp("eq", found, expected), end, again)
        b.position(end)
        return old

    def _update_one(self, pointer: Value, number: Value) -> None:
        b = self.b
        on = b.icmp("ne", b.load("i8", b.gep("i8", self.on, number)), const("i8", 0))
        with b.if_(on, "on") as branch:
            branch.yield_(self.update.one(b, pointer, b.load(self.register, self._at(self.values, number))))
            branch.otherwise()
            branch.yield_(zero(self.register))
        self._keep(number, branch.results[0])

    def _keep(self, number: Value, old: Value) -> None:
        if self.is_read:
            self._put(self.results, number, old)

    def _put(self, place: Value, number: Value, elements: Value) -> None:
        self.b.store(elements, self._at(place, number), self._alignment)

    def _at(self, place: Value, number: Value) -> Value:
        return self.b.gep(self.register, place, number)

    @property
    def _alignment(self) -> int:
        return byte_width(self.register)
