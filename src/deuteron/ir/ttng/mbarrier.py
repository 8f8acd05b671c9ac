"""Barriers in shared memory that count arrivals, and bytes of copies, phase by phase: mbarriers.

    %bars = "ttg.local_alloc"() : () -> !ttg.memdesc<3x1xi64, ...>       three of them, one after the other
    %bar = "ttg.memdesc_index"(%bars, %i)
    "ttng.init_barrier"(%bar) <{count = 1 : i32}>                       a phase ends with that many arrivals
    "ttng.fence_mbarrier_init_release_cluster"()                        initialised, for copies of other blocks and TMA
    "ttng.barrier_expect"(%bar, %pred) <{size = 4096 : i32}>            one arrival; and so many bytes have to come
    "ttng.arrive_barrier"(%bar, %read) <{count = 8 : i32}>              done with the buffer %read
    "ttng.async_copy_mbarrier_arrive"(%bar) <{noIncrement}>             each thread, when its cp.async are done
    "ttng.wait_barrier"(%bar, %phase, %buffer)                          until the phase of that parity is over

The phases have the parities 0, 1, 0, ...; the wait for parity 1 passes a barrier whose first phase has not ended. An
arrival with a count of n is done by n of the threads that execute it, each for its neighbours: one of all, one of each
warp, or every thread. The neighbours within a warp are waited for; whoever places the op sees to the others. `deps` are
the buffers whose contents are there after a wait, or free after an arrival.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, TensorType, UnitAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.effects import OTHER, SHARED, Effect, orders, reads, writes
from deuteron.ir.ttg.layout import MemDescType, SharedLinearEncodingAttr
from deuteron.ir.types import i1, i32, shape_of
from deuteron.layout.linear import LinearLayout, dim_names

MAX_COUNT = (1 << 20) - 1
BARRIER_BYTES = 8


def barrier_type() -> MemDescType:
    """The descriptor of one barrier."""
    layout = LinearLayout.make({"offset": [], "block": []}, {dim_names(1)[0]: 1})
    return MemDescType(TensorType(i64, [1], SharedLinearEncodingAttr(layout, BARRIER_BYTES)))


def check_barrier(op: IRDLOperation, type: Attribute) -> None:
    """Raise VerifyException unless it is the descriptor of one barrier."""
    if not isinstance(type, MemDescType) or type.tile.element_type != i64 or shape_of(type.tile) != (1,):
        raise VerifyException(f"{op.name} needs a barrier, !ttg.memdesc<1xi64, ...>, got {type}")


def _check_count(op: IRDLOperation, count: int) -> None:
    if not 1 <= count <= MAX_COUNT:
        raise VerifyException(f"{op.name} counts from 1 to {MAX_COUNT}, got {count}")


@irdl_op_definition
class InitBarrierOp(IRDLOperation):
    """Begins a barrier's first phase; one thread of the program does it."""

    name = "ttng.init_barrier"
    alloc = operand_def(MemDescType)
    count = prop_def(IntegerAttr)

    def __init__(self, alloc: SSAValue, count: int):
        super().__init__(operands=[alloc], properties={"count": IntegerAttr(count, i32)})

    def effects(self) -> list[Effect]:
        return [writes(SHARED, self.alloc)]

    def verify_(self) -> None:
        check_barrier(self, self.alloc.type)
        _check_count(self, self.count.value.data)


@irdl_op_definition
class InvalBarrierOp(IRDLOperation):
    """Ends a barrier: its memory may be used for something else."""

    name = "ttng.inval_barrier"
    alloc = operand_def(MemDescType)

    def __init__(self, alloc: SSAValue):
        super().__init__(operands=[alloc])

    def effects(self) -> list[Effect]:
        return [writes(SHARED, self.alloc)]

    def verify_(self) -> None:
        check_barrier(self, self.alloc.type)


@irdl_op_definition
class FenceMBarrierInitOp(IRDLOperation):
    """Makes barriers that were initialised visible to the cluster and to TMA."""

    name = "ttng.fence_mbarrier_init_release_cluster"

    def __init__(self) -> None:
        super().__init__()

    def effects(self) -> list[Effect]:
        return [writes(OTHER), *orders(resources=[SHARED])]


@irdl_op_definition
class BarrierExpectOp(IRDLOperation):
    """One thread arrives, where `pred` is on, and says how many bytes have to come before the phase ends."""

    name = "ttng.barrier_expect"
    alloc = operand_def(MemDescType)
    pred = operand_def(i1)
    size = prop_def(IntegerAttr)

    def __init__(self, alloc: SSAValue, pred: SSAValue, size: int):
        super().__init__(operands=[alloc, pred], properties={"size": IntegerAttr(size, i32)})

    def effects(self) -> list[Effect]:
        return [reads(SHARED, self.alloc), writes(OTHER, self.alloc)]

    def verify_(self) -> None:
        check_barrier(self, self.alloc.type)
        _check_count(self, self.size.value.data)


@irdl_op_definition
class WaitBarrierOp(IRDLOperation):
    """Every thread waits until the phase of that parity is over."""

    name = "ttng.wait_barrier"
    alloc = operand_def(MemDescType)
    phase = operand_def(i32)
    deps = var_operand_def(MemDescType)

    def __init__(self, alloc: SSAValue, phase: SSAValue, deps: Sequence[SSAValue] = ()):
        super().__init__(operands=[alloc, phase, list(deps)])

    def effects(self) -> list[Effect]:
        return [reads(SHARED, self.alloc), writes(OTHER, self.alloc), *orders(resources=[SHARED])]

    def verify_(self) -> None:
        check_barrier(self, self.alloc.type)


@irdl_op_definition
class ArriveBarrierOp(IRDLOperation):
    """`count` arrivals of the threads that execute it, where `pred` is on; what they did before is released. With
    `numCTAs`, so many arrivals at the barrier of each of that many blocks of the cluster.
    """

    name = "ttng.arrive_barrier"
    alloc = operand_def(MemDescType)
    pred = opt_operand_def(i1)
    deps = var_operand_def(MemDescType)
    count = prop_def(IntegerAttr)
    of_cluster = opt_prop_def(IntegerAttr, prop_name="numCTAs")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        alloc: SSAValue,
        count: int,
        pred: SSAValue | None = None,
        deps: Sequence[SSAValue] = (),
        num_ctas: int = 1,
    ):
        properties = {"count": IntegerAttr(count, i32)}
        super().__init__(
            operands=[alloc, [pred] if pred is not None else [], list(deps)],
            properties=properties | ({"numCTAs": IntegerAttr(num_ctas, i32)} if num_ctas > 1 else {}),
        )

    @property
    def num_ctas(self) -> int:
        """At the barriers of how many blocks."""
        return 1 if self.of_cluster is None else self.of_cluster.value.data

    def effects(self) -> list[Effect]:
        return [reads(SHARED, self.alloc), writes(OTHER, self.alloc), *orders(resources=[SHARED])]

    def verify_(self) -> None:
        check_barrier(self, self.alloc.type)
        _check_count(self, self.count.value.data)


@irdl_op_definition
class AsyncCopyMBarrierArriveOp(IRDLOperation):
    """Every thread arrives when the copies by cp.async that it issued before are done; with `noIncrement` these
    arrivals are among those that the barrier counts.
    """

    name = "ttng.async_copy_mbarrier_arrive"
    alloc = operand_def(MemDescType)
    no_increment = opt_prop_def(UnitAttr, prop_name="noIncrement")

    def __init__(self, alloc: SSAValue, no_increment: bool = True):
        super().__init__(operands=[alloc], properties={"noIncrement": UnitAttr()} if no_increment else {})

    def effects(self) -> list[Effect]:
        return [reads(SHARED, self.alloc), writes(OTHER, self.alloc), *orders(resources=[SHARED])]

    def verify_(self) -> None:
        check_barrier(self, self.alloc.type)


OPS = [
    InitBarrierOp,
    InvalBarrierOp,
    FenceMBarrierInitOp,
    BarrierExpectOp,
    WaitBarrierOp,
    ArriveBarrierOp,
    AsyncCopyMBarrierArriveOp,
]
