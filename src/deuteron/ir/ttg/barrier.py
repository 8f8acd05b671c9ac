"""Barriers: `ttg.barrier`, which is also what `tl.debug_barrier` becomes."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.effects import ORDER_OWN, OTHER, Effect, orders, writes
from deuteron.ir.types import i32


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """All threads of the program wait for each other."""

    name = "ttg.barrier"
    addr_space = prop_def(IntegerAttr, prop_name="addrSpace")

    ALL_ADDRESS_SPACES: ClassVar[int] = 31

    def __init__(self) -> None:
        super().__init__(properties={"addrSpace": IntegerAttr(self.ALL_ADDRESS_SPACES, i32)})

    def effects(self) -> list[Effect]:
        return [writes(OTHER), *orders(ORDER_OWN)]

    def verify_(self) -> None:
        if self.addr_space.value.data != self.ALL_ADDRESS_SPACES:
            raise VerifyException(
                f"ttg.barrier is of all address spaces, {self.ALL_ADDRESS_SPACES}, got {self.addr_space.value.data}"
            )


OPS = [BarrierOp]
