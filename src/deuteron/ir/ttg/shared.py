"""Shared memory: `ttg.local_alloc`, `ttg.local_store`, `ttg.local_load`, `ttg.local_dealloc`.

    %m = "ttg.local_alloc"(%x) : (tensor<64x64xf16, #ttg.linear<...>>) -> !ttg.memdesc<64x64xf16, ...>
    %y = "ttg.local_load"(%m) : (!ttg.memdesc<64x64xf16, ...>) -> tensor<64x64xf16, #ttg.linear<...>>

An allocation may start with a tile; its place is found by liveness, and barriers are placed by analysis.
"""

from __future__ import annotations

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_operand_def, result_def
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.effects import OTHER, SHARED, Effect, reads, writes
from deuteron.ir.ttg.layout import MemDescType
from deuteron.ir.types import element_type_of, shape_of


def check_same_tile(op: IRDLOperation, descriptor: Attribute, tile: Attribute) -> None:
    if not isinstance(descriptor, MemDescType):
        raise VerifyException(f"{op.name} needs a descriptor of shared memory, got {descriptor}")
    held = descriptor.tile
    if shape_of(held) != shape_of(tile) or element_type_of(held) != element_type_of(tile):
        raise VerifyException(f"{op.name}: the tile {tile} does not fit into {descriptor}")


@irdl_op_definition
class LocalAllocOp(IRDLOperation):
    """Shared memory for a tile, filled with `src` if there is one."""

    name = "ttg.local_alloc"
    src = opt_operand_def()
    result = result_def(MemDescType)

    def __init__(self, result_type: MemDescType, src: SSAValue | None = None):
        super().__init__(operands=[[src] if src else []], result_types=[result_type])

    def effects(self) -> list[Effect]:
        filled = [writes(SHARED, self.result)] if self.src is not None else []
        return [writes(OTHER, self.result), *filled]

    def verify_(self) -> None:
        if self.src is not None:
            check_same_tile(self, self.result.type, self.src.type)


@irdl_op_definition
class LocalStoreOp(IRDLOperation):
    """Stores a tile into shared memory."""

    name = "ttg.local_store"
    src = operand_def()
    dst = operand_def(MemDescType)

    def __init__(self, src: SSAValue, dst: SSAValue):
        super().__init__(operands=[src, dst])

    def effects(self) -> list[Effect]:
        return [writes(SHARED, self.dst)]

    def verify_(self) -> None:
        check_same_tile(self, self.dst.type, self.src.type)


@irdl_op_definition
class LocalLoadOp(IRDLOperation):
    """Loads a tile from shared memory."""

    name = "ttg.local_load"
    src = operand_def(MemDescType)
    result = result_def()

    def __init__(self, src: SSAValue, result_type: Attribute):
        super().__init__(operands=[src], result_types=[result_type])

    def effects(self) -> list[Effect]:
        return [reads(SHARED, self.src)]

    def verify_(self) -> None:
        check_same_tile(self, self.src.type, self.result.type)


@irdl_op_definition
class LocalDeallocOp(IRDLOperation):
    """Ends the life of an allocation."""

    name = "ttg.local_dealloc"
    src = operand_def(MemDescType)

    def __init__(self, src: SSAValue):
        super().__init__(operands=[src])

    def effects(self) -> list[Effect]:
        return [writes(OTHER, self.src)]


OPS = [LocalAllocOp, LocalStoreOp, LocalLoadOp, LocalDeallocOp]
