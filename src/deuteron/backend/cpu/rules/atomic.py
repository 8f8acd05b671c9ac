"""tt.atomic_rmw, _cas, _load, _store, one element at a time. What takes LLVM more than an instruction loops on cmpxchg.

fp16 add:   do: old = *p; new = round(old + x) while not cmpxchg(p, old, new)
"""

from __future__ import annotations

from xdsl.ir import Attribute, Operation

from deuteron.backend.cpu.context import Context
from deuteron.backend.cpu.elements import NARROW_FLOATS, memory_type
from deuteron.backend.cpu.formats import from_memory, to_memory
from deuteron.backend.cpu.fragment import Fragment, Uniform
from deuteron.backend.cpu.rules.bounds import check_access
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, bit_width, is_float, zero
from deuteron.errors import CompilationError
from deuteron.ir.tt.atomic import AtomicKind, MemorySemantic
from deuteron.ir.types import element_type_of

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
}
_ORDERINGS = {
    MemorySemantic.RELAXED: "monotonic",
    MemorySemantic.ACQUIRE: "acquire",
    MemorySemantic.RELEASE: "release",
    MemorySemantic.ACQUIRE_RELEASE: "acq_rel",
}
# a compare-exchange that fails stores nothing, and so releases nothing
_ORDERINGS_OF_FAILURE = {"release": "monotonic", "acq_rel": "acquire"}


def atomic_rmw(
    ctx: Context, op: Operation, index: tuple, pointer: Fragment, value: Fragment, mask: Fragment | None = None
) -> Fragment:
    """The element before; 0 where the mask is off."""
    check_access(ctx, op, index, ctx.emitter.depth, pointer, mask)
    b = ctx.emitter.innermost()
    if mask is None:
        old = _update(ctx, op, b, pointer.value, value.value)
    else:
        with b.if_(mask.value, "on") as branch:
            branch.yield_(_update(ctx, op, b, pointer.value, value.value))
            branch.otherwise()
            branch.yield_(zero(value.value.type))
        old = branch.results[0]
    return Uniform(old, ctx.emitter.depth)


def _update(ctx: Context, op: Operation, b: Builder, pointer: Value, value: Value) -> Value:
    kind = AtomicKind(op.kind.value.data)
    ordering = _ORDERINGS[MemorySemantic(op.sem.value.data)]
    type = element_type_of(op.result.type)
    if type in NARROW_FLOATS:
        return _update_narrow(ctx, b, pointer, value, type, kind, ordering)
    if is_float(value.type) and kind not in (AtomicKind.FADD, AtomicKind.XCHG):
        raise CompilationError(f"an atomic {kind.name.lower()} of {type}: only add and xchg take floats")
    return b.atomicrmw(_OPCODES[kind], pointer, value, ordering)


def _update_narrow(
    ctx: Context, b: Builder, pointer: Value, value: Value, type: Attribute, kind: AtomicKind, ordering: str
) -> Value:
    """Addition of elements that are narrower than what is computed with."""
    if kind == AtomicKind.XCHG:
        bits = b.atomicrmw("xchg", pointer, to_memory(b, value, type, ctx.target), ordering)
        return from_memory(b, bits, type, ctx.target)
    if kind != AtomicKind.FADD:
        raise CompilationError(f"an atomic {kind.name.lower()} of {type}: only add and xchg take floats")
    memory = memory_type(type)
    first, before = b.load(memory, pointer), b.current_block
    again, end = b.block("again"), b.block("added")
    b.br(again)
    b.position(again)
    expected = b.phi(memory, [(first, before)])
    old = from_memory(b, expected, type, ctx.target)
    new = to_memory(b, b.fadd(old, value), type, ctx.target)
    found = _exchange(b, pointer, expected, new, ordering)
    b.add_incoming(expected, found, b.current_block)
    b.cond_br(b.icmp("eq", found, expected), end, again)
    b.position(end)
    return old


def atomic_cas(
    ctx: Context, op: Operation, index: tuple, pointer: Fragment, compare: Fragment, value: Fragment
) -> Fragment:
    """The element before; compared bit by bit."""
    check_access(ctx, op, index, ctx.emitter.depth, pointer, None)
    b, type = ctx.emitter.innermost(), element_type_of(op.result.type)
    ordering = _ORDERINGS[MemorySemantic(op.sem.value.data)]
    bits = [_bits(ctx, b, fragment.value, type) for fragment in (compare, value)]
    found = _exchange(b, pointer.value, *bits, ordering)
    if is_float(value.value.type) and type not in NARROW_FLOATS:
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
