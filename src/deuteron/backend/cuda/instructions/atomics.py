"""Atomics by one instruction of PTX for each element, or for a few neighbours that are added to.

    @p atom.acq_rel.gpu.global.add.f32 old, [address], value;
    @p red.relaxed.gpu.global.add.v4.f32 [address], {a, b, c, d};          from sm_90 on; without a result
    fence.acq_rel.gpu;
    @p ld.acquire.gpu.global.b32 value, [address];

In assembly, since LLVM drops order and scope. bf16, which sm_80 to sm_89 cannot add, is added by a loop of
compare-and-swap; so are the extrema of 16-bit floats had, of which there are none.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from deuteron.backend.cuda.instructions import accesses
from deuteron.backend.gpu.elements import bits_type, register_type, to_bits
from deuteron.backend.gpu.words import CONSTRAINTS, pack, struct_members, struct_type, unpack
from deuteron.backend.llvm.builder import Builder, Touches
from deuteron.backend.llvm.types import Value, bit_width, const
from deuteron.errors import CompilationError
from deuteron.ir.tt.atomic import AtomicKind, MemoryScope, MemorySemantic
from deuteron.ir.types import bf16, element_type_of
from deuteron.machine.gpu import GPU

_SEMANTICS = {
    MemorySemantic.RELAXED: "relaxed",
    MemorySemantic.ACQUIRE: "acquire",
    MemorySemantic.RELEASE: "release",
    MemorySemantic.ACQUIRE_RELEASE: "acq_rel",
}
_OF_RED = (MemorySemantic.RELAXED, MemorySemantic.RELEASE)  # without a result nothing can be acquired
_NOT_OF_RED = ("exch", "cas")
_SCOPES = {MemoryScope.GPU: "gpu", MemoryScope.CTA: "cta", MemoryScope.SYSTEM: "sys"}
_OPERATIONS = {
    AtomicKind.AND: "and.b",
    AtomicKind.OR: "or.b",
    AtomicKind.XOR: "xor.b",
    AtomicKind.ADD: "add.u",
    AtomicKind.MAX: "max.s",
    AtomicKind.MIN: "min.s",
    AtomicKind.UMAX: "max.u",
    AtomicKind.UMIN: "min.u",
    AtomicKind.XCHG: "exch.b",
}
_EXTREMA = {AtomicKind.FMAX: "llvm.maxnum", AtomicKind.FMIN: "llvm.minnum"}
_PACKED_ADD = {"half": "add.noftz.f16x2", "bfloat": "add.noftz.bf16x2"}
_ZERO = const("i32", 0)
_FLOAT_ADD = {"half": "add.noftz.f16", "bfloat": "add.noftz.bf16", "float": "add.f32", "double": "add.f64"}


def width_of(op: Operation, machine: GPU) -> int:
    """How many neighbours `atomic_rmw` takes: in vectors from sm_90 on, as pairs of halves before."""
    if op.kind.value.data != AtomicKind.FADD:
        return 1
    vectors = {"float": 4, "half": 8, "bfloat": 8} if machine.has_vector_atomics else {"half": 2}
    return vectors.get(register_type(op.result.type), 1)


def atomic_rmw(
    b: Builder, machine: GPU, op: Operation, address: Value, values: Sequence[Value], guard: Value | None
) -> Sequence[Value]:
    """Update neighbouring elements; gives the bits that were there."""
    kind = AtomicKind(op.kind.value.data)
    if kind in _EXTREMA or (element_type_of(op.result.type) == bf16 and not machine.has_bf16_atomics):
        return [_by_compare_and_swap(b, op, address, values[0], guard)]
    bits = [to_bits(b, value, op.result.type) for value in values]
    if len(bits) == 1:
        return [_instruction(b, op, _operation(op, kind), address, bits, guard)]
    return _add_vector(b, op, address, bits, guard)


def atomic_cas(b: Builder, op: Operation, address: Value, compare: Value, value: Value, guard: Value | None) -> Value:
    """Compare and swap one element; gives the bits that were there."""
    bits = [to_bits(b, one, op.result.type) for one in (compare, value)]
    return _instruction(b, op, f"cas.b{bit_width(bits[0].type)}", address, bits, guard)


def atomic_load(b: Builder, op: Operation, address: Value, guard: Value | None) -> Value:
    """The bits of one element; 0 where the guard is off."""
    return accesses.load(b, bits_type(op.result.type), address, 1, guard, order=_order(op))[0]


def atomic_store(b: Builder, op: Operation, address: Value, value: Value, guard: Value | None) -> None:
    """Store one element."""
    accesses.store(b, [to_bits(b, value, op.value.type)], address, guard, order=_order(op))


def fence(b: Builder, op: Operation) -> None:
    """What the thread did before is in order with what it does after."""
    b.assembly(Touches.MEMORY, "void", f"fence.acq_rel.{_SCOPES[op.scope.value.data]};", "")


def _order(op: Operation) -> str:
    return f".{_SEMANTICS[op.sem.value.data]}.{_SCOPES[op.scope.value.data]}"


def _operation(op: Operation, kind: AtomicKind) -> str:
    type = register_type(op.result.type)
    if kind == AtomicKind.FADD:
        return _FLOAT_ADD[type]
    bits = bit_width(type)
    if bits not in (32, 64):
        raise CompilationError(f"an atomic works on elements of 32 or 64 bits, got {element_type_of(op.result.type)}.")
    return f"{_OPERATIONS[kind]}{bits}"


def _instruction(
    b: Builder, op: Operation, operation: str, address: Value, operands: Sequence[Value], guard: Value | None
) -> Value:
    """The bits that were there; 0 where the guard is off, or nobody asks."""
    word, type = CONSTRAINTS[operands[0].type], operands[0].type
    if not _gives_old(op) and not operation.startswith(_NOT_OF_RED):
        _reduction(b, op, operation, address, operands, guard)
        return const(type, 0)
    sources = ", ".join(f"${2 + index}" for index in range(len(operands)))
    text = f"atom{_order(op)}.global.{operation} $0, [$1], {sources};"
    constraints, inputs = [f"={word}", "l", *[word] * len(operands)], [address, *operands]
    if guard is not None:
        text = f"@${2 + len(operands)} {text}"
        constraints, inputs = [*constraints, "b", "0"], [*inputs, guard, const(type, 0)]
    return b.assembly(Touches.MEMORY, type, text, ",".join(constraints), *inputs)


def _add_vector(
    b: Builder, op: Operation, address: Value, bits: Sequence[Value], guard: Value | None
) -> Sequence[Value]:
    """Add neighbours, halves as pairs in words; gives the bits that were there, 0 where nobody asks."""
    words = pack(b, bits)
    operation, count = _vector_operation(register_type(op.result.type), len(words)), len(words)
    if not _gives_old(op):
        _reduction(b, op, operation, address, words, guard)
        return unpack(b, [_ZERO] * count, bits[0].type, len(bits))
    names = [f"${number}" for number in range(2 * count + 2)]
    old, place, sources, predicate = names[:count], names[count], names[count + 1 : -1], names[-1]
    text = f"atom{_order(op)}.global.{operation} {_braced(old)}, [{place}], {_braced(sources)};"
    constraints, inputs = ["=r"] * count + ["l"] + ["r"] * count, [address, *words]
    if guard is not None:
        text = f"@{predicate} {text}"
        constraints, inputs = [*constraints, "b", *map(str, range(count))], [*inputs, guard, *[_ZERO] * count]
    result = b.assembly(Touches.MEMORY, struct_type("i32", count), text, ",".join(constraints), *inputs)
    return unpack(b, struct_members(b, result, "i32", count), bits[0].type, len(bits))


def _gives_old(op: Operation) -> bool:
    return bool(op.result.uses) or op.sem.value.data not in _OF_RED


def _reduction(
    b: Builder, op: Operation, operation: str, address: Value, words: Sequence[Value], guard: Value | None
) -> None:
    """The update alone: nobody waits for it."""
    sources = [f"${number + 1}" for number in range(len(words))]
    text = f"red{_order(op)}.global.{operation} [$0], {_braced(sources)};"
    constraints, inputs = ["l", *(CONSTRAINTS[word.type] for word in words)], [address, *words]
    if guard is not None:
        text, constraints, inputs = f"@${len(words) + 1} {text}", [*constraints, "b"], [*inputs, guard]
    b.assembly(Touches.MEMORY, "void", text, ",".join(constraints), *inputs)


def _vector_operation(type: str, count: int) -> str:
    name, _, format = _PACKED_ADD.get(type, _FLOAT_ADD[type]).rpartition(".")
    return f"{name}.v{count}.{format}" if count > 1 else f"{name}.{format}"


def _braced(names: Sequence[str]) -> str:
    return "{" + ", ".join(names) + "}" if len(names) > 1 else names[0]


def _by_compare_and_swap(b: Builder, op: Operation, address: Value, value: Value, guard: Value | None) -> Value:
    """Of a 16-bit float: compare and swap until nothing came between, of the two bytes alone. LLVM's loop, of the word
    that they are in, reads past the end of an array of an odd number of elements. The first guess is 0, so that
    nothing is read before.

    The empty assembly keeps the value before the branch: LLVM would move a dot that only the branch uses
    into it, where mma.sync lacks the other threads.
    """
    type, extremum = value.type, _EXTREMA.get(AtomicKind(op.kind.value.data))
    value = b.bitcast(b.assembly(Touches.READS, "i16", "", "=h,0", b.bitcast(value, "i16")), type)
    with b.if_(guard if guard is not None else const("i1", True), "atomic") as branch:
        before, again, done = b.current_block, b.block("atomic_again"), b.block("atomic_done")
        b.br(again)
        b.position(again)
        guess = b.phi("i16", [(const("i16", 0), before)])
        held = b.bitcast(guess, type)
        combined = b.intrinsic(extremum, type, held, value) if extremum else b.fadd(held, value)
        old = _instruction(b, op, "cas.b16", address, [guess, b.bitcast(combined, "i16")], None)
        b.add_incoming(guess, old, again)
        b.cond_br(b.icmp("eq", old, guess), done, again)
        b.position(done)
        branch.yield_(old)
        branch.otherwise()
        branch.yield_(const("i16", 0))
    return branch.results[0]
