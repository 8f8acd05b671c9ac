"""Copies of blocks between global and shared memory by TMA, which one thread issues and which run on.

    "ttng.async_tma_copy_global_to_local"(%d, %i, %j, %bar, %dst, %pred)      the bytes arrive at the barrier
    "ttng.async_tma_copy_local_to_global"(%d, %i, %j, %src)
    "ttng.async_tma_reduce"(%d, %i, %j, %src) <{kind = 1 : i32}>
    "ttng.async_tma_store_wait"() <{pendings = 0 : i32}>                      until %src may be written again

What lies out of bounds counts among the bytes that arrive: always those of a whole block. A load's barrier has to
expect them (`ttng.barrier_expect`). Stores are visible to other loads after a wait that is not `read_only`. What
threads stored to shared memory is copied only after a `ttng.fence_async_shared` of each and a barrier.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, TensorType, UnitAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.effects import GLOBAL, MEMORY, OTHER, SHARED, Effect, orders, reads, writes
from deuteron.ir.member import member_of
from deuteron.ir.tt.descriptor import DescriptorReduceKind, TensorDescType
from deuteron.ir.ttg.layout import MemDescType, layout_of
from deuteron.ir.ttg.shared import check_same_tile
from deuteron.ir.ttng.mbarrier import check_barrier
from deuteron.ir.types import byte_width_of, i1, i32, shape_of
from deuteron.layout.tensor_box import TensorBox, tensor_box


def box_of(type: MemDescType, min_copies: int = 1) -> TensorBox | None:
    """The box of the copies, at least so many, that fill a buffer; None where TMA cannot."""
    alignment = type.tile.encoding.alignment.data
    return tensor_box(layout_of(type), byte_width_of(type.tile), min_copies, alignment)


def without_leading_ones(tile: TensorType, rank: int) -> TensorType:
    """The tile without dimensions of extent 1 in front, as far as it has them, until it has that rank."""
    shape = list(shape_of(tile))
    while len(shape) > rank and shape[0] == 1:
        del shape[0]
    return TensorType(tile.element_type, shape)


class _TMAOp(IRDLOperation):
    """What all copies have in common; `buffer` is the shared memory, which may lack dimensions of extent 1 in front."""

    @property
    def buffer(self) -> SSAValue:
        raise NotImplementedError

    @property
    def num_ctas(self) -> int:
        """How many blocks of a cluster share its copies."""
        return 1

    @property
    def box(self) -> TensorBox | None:
        """The box of each copy."""
        return box_of(self.buffer.type, self.num_ctas)

    def verify_(self) -> None:
        tile = self.desc.type.tile
        check_same_tile(self, self.buffer.type, without_leading_ones(tile, len(shape_of(self.buffer.type.tile))))
        if len(self.coord) != len(shape_of(tile)):
            raise VerifyException(f"{self.name} of {self.desc.type} has {len(self.coord)} coordinates")
        if self.box is None:
            raise VerifyException(f"{self.name}: no copy of TMA makes the layout of {self.buffer.type}")


@irdl_op_definition
class AsyncTMACopyGlobalToLocalOp(_TMAOp):
    """Starts to load a block into shared memory, where `pred` is on. With `multicast` each of so many blocks of the
    cluster loads a part, into the shared memory of all of them, and the bytes arrive at the barrier of each.
    """

    name = "ttng.async_tma_copy_global_to_local"
    desc = operand_def(TensorDescType)
    coord = var_operand_def(i32)
    barrier = operand_def(MemDescType)
    result = operand_def(MemDescType)
    pred = operand_def(i1)
    multicast = opt_prop_def(IntegerAttr)

    def __init__(
        self,
        desc: SSAValue,
        coord: Sequence[SSAValue],
        barrier: SSAValue,
        result: SSAValue,
        pred: SSAValue,
        num_ctas: int = 1,
    ):
        super().__init__(
            operands=[desc, list(coord), barrier, result, pred],
            properties={"multicast": IntegerAttr(num_ctas, i32)} if num_ctas > 1 else {},
        )

    @property
    def num_ctas(self) -> int:
        return 1 if self.multicast is None else self.multicast.value.data

    @property
    def buffer(self) -> SSAValue:
        return self.result

    def effects(self) -> list[Effect]:
        copied = [reads(GLOBAL, self.desc), writes(SHARED, self.result)]
        return [*copied, reads(SHARED, self.barrier), writes(OTHER, self.barrier)]

    def verify_(self) -> None:
        super().verify_()
        check_barrier(self, self.barrier.type)


@irdl_op_definition
class AsyncTMACopyLocalToGlobalOp(_TMAOp):
    """Starts to store a block, what is in bounds of it."""

    name = "ttng.async_tma_copy_local_to_global"
    desc = operand_def(TensorDescType)
    coord = var_operand_def(i32)
    src = operand_def(MemDescType)

    def __init__(self, desc: SSAValue, coord: Sequence[SSAValue], src: SSAValue):
        super().__init__(operands=[desc, list(coord), src])

    @property
    def buffer(self) -> SSAValue:
        return self.src

    def effects(self) -> list[Effect]:
        return [reads(SHARED, self.src), writes(GLOBAL, self.desc), writes(OTHER)]


@irdl_op_definition
class AsyncTMAReduceOp(_TMAOp):
    """Starts to combine a block into memory."""

    name = "ttng.async_tma_reduce"
    kind = prop_def(member_of(DescriptorReduceKind))
    desc = operand_def(TensorDescType)
    coord = var_operand_def(i32)
    src = operand_def(MemDescType)

    def __init__(self, kind: DescriptorReduceKind, desc: SSAValue, coord: Sequence[SSAValue], src: SSAValue):
        super().__init__(operands=[desc, list(coord), src], properties={"kind": IntegerAttr(kind, i32)})

    @property
    def buffer(self) -> SSAValue:
        return self.src

    def effects(self) -> list[Effect]:
        combined = [reads(GLOBAL, self.desc), writes(GLOBAL, self.desc)]
        return [reads(SHARED, self.src), *combined, writes(OTHER)]


@irdl_op_definition
class AsyncTMAStoreWaitOp(IRDLOperation):
    """Waits until at most `pendings` of the stores are under way; `read_only`: until the others have been read."""

    name = "ttng.async_tma_store_wait"
    pendings = prop_def(IntegerAttr)
    read_only = opt_prop_def(UnitAttr)

    def __init__(self, pendings: int = 0, read_only: bool = False):
        properties = {"pendings": IntegerAttr(pendings, i32)}
        super().__init__(properties=properties | ({"read_only": UnitAttr()} if read_only else {}))

    def effects(self) -> list[Effect]:
        resources = [SHARED] if self.read_only is not None else MEMORY
        return [writes(OTHER), *orders(resources=resources)]

    def verify_(self) -> None:
        if self.pendings.value.data < 0:
            raise VerifyException(f"{self.name} leaves 0 or more stores, got {self.pendings.value.data}")


TMAOp = AsyncTMACopyGlobalToLocalOp | AsyncTMACopyLocalToGlobalOp | AsyncTMAReduceOp
OPS = [AsyncTMACopyGlobalToLocalOp, AsyncTMACopyLocalToGlobalOp, AsyncTMAReduceOp, AsyncTMAStoreWaitOp]
