"""`ttg.fence`: what a thread accessed before is in order with what it accesses after, for all threads of a scope.

"ttg.fence"() <{scope = 1 : i32}> : () -> ()

With relaxed atomics after it, it releases; before what comes next, it acquires.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def

from deuteron.ir.effects import ORDER, ORDER_OWN, OTHER, Effect, orders, writes
from deuteron.ir.member import member_of
from deuteron.ir.tt.atomic import MemoryScope
from deuteron.ir.types import i32


@irdl_op_definition
class FenceOp(IRDLOperation):
    """Each thread orders its own accesses of memory; threads do not wait for each other."""

    name = "ttg.fence"
    scope = prop_def(member_of(MemoryScope))

    def __init__(self, scope: MemoryScope) -> None:
        super().__init__(properties={"scope": IntegerAttr(scope, i32)})

    def effects(self) -> list[Effect]:
        is_own = self.scope.value.data == MemoryScope.CTA
        return [writes(OTHER), *orders(ORDER_OWN if is_own else ORDER)]


OPS = [FenceOp]
