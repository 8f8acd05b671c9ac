"""tt.atomic_rmw, _cas, _load, _store, one element at a time; what updates neighbours does several (`wide_atomics.py`).
What takes LLVM more than an instruction loops on cmpxchg.

fp16 add:   do: old = *p; new = round(old + x) while not cmpxchg(p, old, new)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from xdsl.ir import Attribute, Operation

from deuteron.backend.cpu.algebra import as_vector
from deuteron.backend.cpu.context import Context
from deuteron.backend.cpu.fragment import Affine, Fragment, Uniform, Vector, lanes_of
from deuteron.backend.cpu.memory.element_access import has_masked_moves
from deuteron.backend.cpu.memory.elements import memory_type
from deuteron.backend.cpu.memory.formats import from_memory, to_memory
from deuteron.backend.cpu.memory.updates import Update, in_order, update_one
from deuteron.backend.cpu.memory.wide_atomics import update_lanes, update_neighbours
from deuteron.backend.cpu.memory.wraps import is_straight, may_wrap
from deuteron.backend.cpu.rules.bounds import check_access
from deuteron.backend.cpu.rules.memory import straight_unless_moved
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, bit_width, byte_width, const, is_float, vector, zero
from deuteron.backend.math.vectors import any_lane
from deuteron.errors import CompilationError
from deuteron.ir.tt.atomic import AtomicKind, MemoryScope, MemorySemantic
from deuteron.ir.types import FLOAT_TYPES, element_type_of, is_narrow_float
from deuteron.machine.cpu import CPU

_OPCODES = {
    AtomicKind.AND: "and",
    AtomicKind.OR: "or",
    AtomicKind.XOR: "xor",
    AtomicKind.ADD: "add",
    AtomicKind.FADD: "fadd",
    AtomicKind.MAX: "max",
    AtomicKind.MIN: "min",
    AtomicKind.UMAX: "umax",
    AtomicKind.UMIN: "umin",
    AtomicKind.XCHG: "xchg",
    AtomicKind.FMAX: "fmax",
    AtomicKind.FMIN: "fmin",
}
_COMBINATIONS = {
    AtomicKind.AND: Builder.and_,
    AtomicKind.OR: Builder.or_,
    AtomicKind.XOR: Builder.xor,
    AtomicKind.ADD: Builder.add,
    AtomicKind.FADD: partial(Builder.fadd, flags=""),  # of a product that is rounded, as by an instruction
    AtomicKind.MAX: Builder.smax,
    AtomicKind.MIN: Builder.smin,
    AtomicKind.UMAX: Builder.umax,
    AtomicKind.UMIN: Builder.umin,
    AtomicKind.XCHG: lambda b, old, new: new,
    AtomicKind.FMAX: lambda b, old, new: b.intrinsic("llvm.maximumnum", old.type, old, new),
    AtomicKind.FMIN: lambda b, old, new: b.intrinsic("llvm.minimumnum", old.type, old, new),
}
_OF_FLOATS = (AtomicKind.FADD, AtomicKind.FMAX, AtomicKind.FMIN, AtomicKind.XCHG)
_ORDERINGS = {
    MemorySemantic.RELAXED: "monotonic",
    MemorySemantic.ACQUIRE: "acquire",
    MemorySemantic.RELEASE: "release",
    MemorySemantic.ACQUIRE_RELEASE: "acq_rel",
}
LINE = 64  # bytes that a processor fetches together
# a compare-exchange that fails stores nothing, and so releases nothing
_ORDERINGS_OF_FAILURE = {"release": "monotonic", "acq_rel": "acquire"}


def atomic_rmw(
    ctx: Context, op: Operation, index: tuple, pointer: Fragment, value: Fragment, mask: Fragment | None = None
) -> Fragment | None:
    """The elements before; 0 where the mask is off. None of several that nobody reads."""
    pointer = straight_unless_moved(op, pointer)
    check_access(ctx, op, index, ctx.emitter.depth, pointer, mask)
    b, update = ctx.emitter.innermost(), _update_of(op, ctx.target)
    lanes = lanes_of(pointer, value, *([mask] if mask else []))
    watch = _watch_of(ctx, op)
    with in_order(b, update.ordering, watch):
        if lanes > 1:
            return _update_tile(ctx, op, update, lanes, (pointer, value, mask), watch)
        if mask is None:
            return Uniform(update_one(b, update, pointer.value, value.value, watch), ctx.emitter.depth)
        with b.if_(mask.value, "on") as branch:
            branch.yield_(update_one(b, update, pointer.value, value.value, watch))
            branch.otherwise()
            branch.yield_(zero(value.value.type))
        return Uniform(branch.results[0], ctx.emitter.depth)


def fetch_updated(ctx: Context, op: Operation, pointer: Fragment, mask: Fragment | None) -> None:
    """Ask for the lines of neighbours that are going to be updated, where any is on.

    An atomic waits until its line is there, and what follows waits for it: rows of 768 floats at random in 98 MB took
    20 ms, and 8 where all lines of one are asked for first.
    """
    if not _are_neighbours(pointer, element_type_of(op.result.type)):
        return
    b = ctx.emitter.innermost()
    num_bytes = pointer.lanes * pointer.step
    any_on = const("i1", True)
    if mask is not None:
        on = as_vector(ctx.emitter, mask, pointer.lanes)
        any_on = any_lane(b, on)
    with b.if_(any_on, "any_on"):
        for offset in range(0, num_bytes, LINE):
            b.prefetch_to_write(b.gep("i8", pointer.base, const("i64", offset)))


def _are_neighbours(pointer: Fragment, type: Attribute) -> bool:
    return isinstance(pointer, Affine) and pointer.step == byte_width(memory_type(type))


def _update_tile(
    ctx: Context,
    op: Operation,
    update: _Update,
    lanes: int,
    operands: tuple[Fragment, Fragment, Fragment | None],
    watch: Value | None,
) -> Vector | None:
    (pointer, value, mask), b, is_read = operands, ctx.emitter.innermost(), bool(op.result.uses)
    on = const(vector("i1", lanes), True) if mask is None else as_vector(ctx.emitter, mask, lanes)
    values = as_vector(ctx.emitter, value, lanes)

    def as_neighbours() -> list[Value]:
        old = update_neighbours(b, update, pointer.base, values, on, is_read, watch)
        return [old] if is_read else []

    def as_lanes() -> list[Value]:
        old = update_lanes(b, update, as_vector(ctx.emitter, pointer, lanes), values, on, is_read, watch)
        return [old] if is_read else []

    if not _are_neighbours(pointer, update.type):
        old = as_lanes()
    elif not may_wrap(pointer, mask):
        old = as_neighbours()
    else:
        with b.if_(is_straight(b, pointer), "straight") as branch:
            branch.yield_(*as_neighbours())
            branch.otherwise()
            branch.yield_(*as_lanes())
        old = branch.results
    return Vector(old[0], ctx.emitter.depth) if is_read else None


def _watch_of(ctx: Context, op: Operation) -> Value | None:
    """What says that nobody else of the process updates anything; other processes count only with the scope "sys"."""
    is_for_all = op.scope.value.data == MemoryScope.SYSTEM
    return ctx.stops.countdown.watch if ctx.stops.countdown and not is_for_all else None


@dataclass(frozen=True)
class _Update(Update):
    """What a tt.atomic_rmw does to elements of a type."""

    kind: AtomicKind
    type: Attribute
    ordering: str
    target: CPU

    @property
    def name(self) -> str:
        return f"{_OPCODES[self.kind]}.{self.ordering}.{self.type}"

    @property
    def memory(self) -> str:
        return memory_type(self.type)

    @property
    def has_masked_moves(self) -> bool:
        return has_masked_moves(self.target, byte_width(self.memory))

    def one(self, b: Builder, pointer: Value, value: Value) -> Value:
        if not is_narrow_float(self.type):
            return b.atomicrmw(_OPCODES[self.kind], pointer, value, self.ordering)
        if self.kind != AtomicKind.XCHG:
            return self._loop(b, pointer, value)
        bits = b.atomicrmw("xchg", pointer, to_memory(b, value, self.type, self.target), self.ordering)
        return from_memory(b, bits, self.type, self.target)

    def combined(self, b: Builder, bits: Value, value: Value) -> tuple[Value, Value]:
        old = from_memory(b, bits, self.type, self.target)
        return old, to_memory(b, _COMBINATIONS[self.kind](b, old, value), self.type, self.target)

    def exchange(self, b: Builder, pointer: Value, expected: Value, new: Value) -> Value:
        return _exchange(b, pointer, expected, new, self.ordering)

    def _loop(self, b: Builder, pointer: Value, value: Value) -> Value:
        """Of an element that is narrower than what is computed with."""
        memory = self.memory
        first, before = b.load(memory, pointer), b.current_block
        again, end = b.block("again"), b.block("added")
        b.br(again)
        b.position(again)
        expected = b.phi(memory, [(first, before)])
        old, new = self.combined(b, expected, value)
        found = self.exchange(b, pointer, expected, new)
        b.add_incoming(expected, found, b.current_block)
        b.cond_br(b.icmp("eq", found, expected), end, again)
        b.position(end)
        return old


def _update_of(op: Operation, target: CPU) -> _Update:
    kind, type = AtomicKind(op.kind.value.data), element_type_of(op.result.type)
    if type in FLOAT_TYPES and kind not in _OF_FLOATS:
        raise CompilationError(f"an atomic {kind.name.lower()} of {type}, which are floats")
    return _Update(kind, type, _ORDERINGS[MemorySemantic(op.sem.value.data)], target)


def atomic_cas(
    ctx: Context, op: Operation, index: tuple, pointer: Fragment, compare: Fragment, value: Fragment
) -> Fragment:
    """The element before; compared bit by bit."""
    check_access(ctx, op, index, ctx.emitter.depth, pointer, None)
    b, type = ctx.emitter.innermost(), element_type_of(op.result.type)
    ordering = _ORDERINGS[MemorySemantic(op.sem.value.data)]
    bits = [_bits(ctx, b, fragment.value, type) for fragment in (compare, value)]
    found = _exchange(b, pointer.value, *bits, ordering)
    if is_float(value.value.type) and not is_narrow_float(type):
        found = b.bitcast(found, value.value.type)
    return Uniform(from_memory(b, found, type, ctx.target), ctx.emitter.depth)


def atomic_load(ctx: Context, op: Operation, index: tuple, pointer: Fragment, mask: Fragment | None = None) -> Fragment:
    """The element; 0 where the mask is off."""
    check_access(ctx, op, index, ctx.emitter.depth, pointer, mask)
    b, type = ctx.emitter.innermost(), element_type_of(op.result.type)
    memory, ordering = _integer_type(memory_type(type)), _ORDERINGS[MemorySemantic(op.sem.value.data)]
    if mask is None:
        bits = b.load_atomic(memory, pointer.value, ordering)
    else:
        with b.if_(mask.value, "on") as branch:
            branch.yield_(b.load_atomic(memory, pointer.value, ordering))
            branch.otherwise()
            branch.yield_(zero(memory))
        bits = branch.results[0]
    found = bits if memory == memory_type(type) else b.bitcast(bits, memory_type(type))
    return Uniform(from_memory(b, found, type, ctx.target), ctx.emitter.depth)


def atomic_store(
    ctx: Context, op: Operation, index: tuple, pointer: Fragment, value: Fragment, mask: Fragment | None = None
) -> None:
    check_access(ctx, op, index, ctx.emitter.depth, pointer, mask)
    b, ordering = ctx.emitter.innermost(), _ORDERINGS[MemorySemantic(op.sem.value.data)]
    bits = _bits(ctx, b, value.value, element_type_of(op.value.type))
    if mask is None:
        b.store_atomic(bits, pointer.value, ordering)
        return
    with b.if_(mask.value, "on"):
        b.store_atomic(bits, pointer.value, ordering)


def _integer_type(memory: str) -> str:
    return f"i{bit_width(memory)}"


def _bits(ctx: Context, b: Builder, value: Value, type: Attribute) -> Value:
    value = to_memory(b, value, type, ctx.target)
    return b.bitcast(value, f"i{bit_width(value.type)}") if is_float(value.type) else value


def _exchange(b: Builder, pointer: Value, expected: Value, new: Value, ordering: str) -> Value:
    failure = _ORDERINGS_OF_FAILURE.get(ordering, ordering)
    return b.cmpxchg(pointer, expected, new, ordering, failure)


LANE_RULES = {
    "tt.atomic_rmw": atomic_rmw,
    "tt.atomic_cas": atomic_cas,
    "tt.atomic_load": atomic_load,
    "tt.atomic_store": atomic_store,
}
