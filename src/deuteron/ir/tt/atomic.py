"""Atomics: `tt.atomic_rmw`, `tt.atomic_cas`, `tt.atomic_load`, `tt.atomic_store`.

%old = "tt.atomic_rmw"(%p, %v, %mask) <{atomic_rmw_op = 5 : i32, sem = 4 : i32, scope = 1 : i32}> : (...) -> f32
"""

from __future__ import annotations

from enum import IntEnum

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_operand_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.effects import GLOBAL, ORDER, ORDER_OWN, Effect, orders, reads, writes
from deuteron.ir.member import member_of
from deuteron.ir.tt.memory import check_access
from deuteron.ir.types import bf16, element_type_of, f16, i32, is_float, is_integer, pointee_of, with_element_type


class AtomicKind(IntEnum):
    """What a read-modify-write does; U marks unsigned, F floating point. FMAX and FMIN are of 16 bits, as descriptors
    reduce them: a NaN gives way to a number, and -0 is less than 0.
    """

    AND = 1
    OR = 2
    XOR = 3
    ADD = 4
    FADD = 5
    MAX = 6
    MIN = 7
    UMAX = 8
    UMIN = 9
    XCHG = 10
    FMAX = 11
    FMIN = 12


class MemorySemantic(IntEnum):
    """The order of an atomic."""

    RELAXED = 1
    ACQUIRE = 2
    RELEASE = 3
    ACQUIRE_RELEASE = 4

    @property
    def acquires(self) -> bool:
        return self in (MemorySemantic.ACQUIRE, MemorySemantic.ACQUIRE_RELEASE)

    @property
    def releases(self) -> bool:
        return self in (MemorySemantic.RELEASE, MemorySemantic.ACQUIRE_RELEASE)


class MemoryScope(IntEnum):
    """Who sees the order of an atomic."""

    GPU = 1
    CTA = 2
    SYSTEM = 3


def _effects(op: AtomicRMWOp | AtomicCASOp) -> list[Effect]:
    return [reads(GLOBAL, op.ptr), writes(GLOBAL, op.ptr), *_order(op)]


def _order(op: AtomicOp) -> list[Effect]:
    """A relaxed atomic keeps nothing else in order, one for the threads of a program only what is its own."""
    if op.sem.value.data == MemorySemantic.RELAXED:
        return []
    return orders(ORDER_OWN if op.scope.value.data == MemoryScope.CTA else ORDER)


@irdl_op_definition
class AtomicRMWOp(IRDLOperation):
    """Combines values into memory atomically and gives what was there before."""

    name = "tt.atomic_rmw"
    ptr = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    result = result_def()
    kind = prop_def(member_of(AtomicKind), prop_name="atomic_rmw_op")
    sem = prop_def(member_of(MemorySemantic))
    scope = prop_def(member_of(MemoryScope))

    def __init__(
        self,
        kind: AtomicKind,
        ptr: SSAValue,
        value: SSAValue,
        mask: SSAValue | None = None,
        sem: MemorySemantic = MemorySemantic.ACQUIRE_RELEASE,
        scope: MemoryScope = MemoryScope.GPU,
    ):
        super().__init__(
            operands=[ptr, value, [mask] if mask else []],
            result_types=[value.type],
            properties={
                "atomic_rmw_op": IntegerAttr(kind, i32),
                "sem": IntegerAttr(sem, i32),
                "scope": IntegerAttr(scope, i32),
            },
        )

    def effects(self) -> list[Effect]:
        return _effects(self)

    def verify_(self) -> None:
        check_access(self, self.ptr, self.value.type, self.mask)
        kind = AtomicKind(self.kind.value.data)
        if not _fits(kind, self.value.type):
            raise VerifyException(f"tt.atomic_rmw does not do {kind.name} to {self.value.type}")
        if self.result.type != self.value.type:
            raise VerifyException(f"tt.atomic_rmw of {self.value.type} gives {self.result.type}")


def _fits(kind: AtomicKind, type: Attribute) -> bool:
    if kind in (AtomicKind.FMAX, AtomicKind.FMIN):
        return element_type_of(type) in (f16, bf16)
    return kind is AtomicKind.XCHG or (is_float(type) if kind is AtomicKind.FADD else is_integer(type))


@irdl_op_definition
class AtomicCASOp(IRDLOperation):
    """Replaces `compare` in memory by `value`, atomically, and gives what was there before."""

    name = "tt.atomic_cas"
    ptr = operand_def()
    compare = operand_def()
    value = operand_def()
    result = result_def()
    sem = prop_def(member_of(MemorySemantic))
    scope = prop_def(member_of(MemoryScope))

    def __init__(
        self,
        ptr: SSAValue,
        compare: SSAValue,
        value: SSAValue,
        sem: MemorySemantic = MemorySemantic.ACQUIRE_RELEASE,
        scope: MemoryScope = MemoryScope.GPU,
    ):
        super().__init__(
            operands=[ptr, compare, value],
            result_types=[value.type],
            properties={"sem": IntegerAttr(sem, i32), "scope": IntegerAttr(scope, i32)},
        )

    def effects(self) -> list[Effect]:
        return _effects(self)

    def verify_(self) -> None:
        check_access(self, self.ptr, self.value.type, None)
        if not self.compare.type == self.value.type == self.result.type:
            raise VerifyException(f"tt.atomic_cas: types differ, {self.compare.type} and {self.value.type}")


@irdl_op_definition
class AtomicLoadOp(IRDLOperation):
    """Loads atomically: at one moment, and in order with what is accessed after it if it acquires."""

    name = "tt.atomic_load"
    ptr = operand_def()
    mask = opt_operand_def()
    result = result_def()
    sem = prop_def(member_of(MemorySemantic))
    scope = prop_def(member_of(MemoryScope))

    def __init__(
        self,
        ptr: SSAValue,
        mask: SSAValue | None = None,
        sem: MemorySemantic = MemorySemantic.ACQUIRE,
        scope: MemoryScope = MemoryScope.GPU,
    ):
        super().__init__(
            operands=[ptr, [mask] if mask else []],
            result_types=[with_element_type(ptr.type, pointee_of(ptr.type))],
            properties={"sem": IntegerAttr(sem, i32), "scope": IntegerAttr(scope, i32)},
        )

    def effects(self) -> list[Effect]:
        """It is read to see what others write meanwhile: a relaxed one is done in its place, too."""
        return [reads(GLOBAL, self.ptr), *orders()]

    def verify_(self) -> None:
        check_access(self, self.ptr, self.result.type, self.mask)
        _check_semantic(self, MemorySemantic.RELAXED, MemorySemantic.ACQUIRE)


@irdl_op_definition
class AtomicStoreOp(IRDLOperation):
    """Stores atomically: at one moment, and in order with what was accessed before it if it releases."""

    name = "tt.atomic_store"
    ptr = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    sem = prop_def(member_of(MemorySemantic))
    scope = prop_def(member_of(MemoryScope))

    def __init__(
        self,
        ptr: SSAValue,
        value: SSAValue,
        mask: SSAValue | None = None,
        sem: MemorySemantic = MemorySemantic.RELEASE,
        scope: MemoryScope = MemoryScope.GPU,
    ):
        super().__init__(
            operands=[ptr, value, [mask] if mask else []],
            properties={"sem": IntegerAttr(sem, i32), "scope": IntegerAttr(scope, i32)},
        )

    def effects(self) -> list[Effect]:
        return [writes(GLOBAL, self.ptr), *_order(self)]

    def verify_(self) -> None:
        check_access(self, self.ptr, self.value.type, self.mask)
        _check_semantic(self, MemorySemantic.RELAXED, MemorySemantic.RELEASE)


def _check_semantic(op: AtomicLoadOp | AtomicStoreOp, *semantics: MemorySemantic) -> None:
    if op.sem.value.data not in semantics:
        raise VerifyException(f"{op.name} has no order {op.sem.value.data}")


AtomicOp = AtomicRMWOp | AtomicCASOp | AtomicLoadOp | AtomicStoreOp
OPS = [AtomicRMWOp, AtomicCASOp, AtomicLoadOp, AtomicStoreOp]
