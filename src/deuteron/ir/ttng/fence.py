"""Proxy fences: what was accessed the ordinary way before is visible to wgmma and TMA after it.

"ttng.fence_async_shared"() <{bCluster = false}> : () -> ()      what was stored to shared memory
"ttng.fence_async_global"() : () -> ()                           what is known to be in global memory
"""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, IntegerAttr
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def

from deuteron.ir.effects import GLOBAL, OTHER, SHARED, Effect, orders, writes


@irdl_op_definition
class FenceAsyncSharedOp(IRDLOperation):
    """Orders ordinary stores before asynchronous reads, of the block, or of its cluster."""

    name = "ttng.fence_async_shared"
    b_cluster = prop_def(IntegerAttr, prop_name="bCluster")

    def __init__(self, cluster: bool = False) -> None:
        super().__init__(properties={"bCluster": BoolAttr.from_bool(cluster)})

    def effects(self) -> list[Effect]:
        return [writes(OTHER), *orders(resources=[SHARED])]


@irdl_op_definition
class FenceAsyncGlobalOp(IRDLOperation):
    """Orders accesses of global memory, what a thread has acquired too, before copies by TMA."""

    name = "ttng.fence_async_global"

    def __init__(self) -> None:
        super().__init__()

    def effects(self) -> list[Effect]:
        return [writes(OTHER), *orders(resources=[GLOBAL])]


OPS = [FenceAsyncSharedOp, FenceAsyncGlobalOp]
