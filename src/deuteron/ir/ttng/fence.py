"""`ttng.fence_async_shared`: what was stored to shared memory before is visible to wgmma and TMA after it.

"ttng.fence_async_shared"() <{bCluster = false}> : () -> ()
"""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, IntegerAttr
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def

from deuteron.ir.effects import OTHER, SHARED, Effect, orders, writes


@irdl_op_definition
class FenceAsyncSharedOp(IRDLOperation):
    """Orders ordinary stores before asynchronous reads, of the block, or of its cluster."""

    name = "ttng.fence_async_shared"
    b_cluster = prop_def(IntegerAttr, prop_name="bCluster")

    def __init__(self, cluster: bool = False) -> None:
        super().__init__(properties={"bCluster": BoolAttr.from_bool(cluster)})

    def effects(self) -> list[Effect]:
        return [writes(OTHER), *orders(resources=[SHARED])]


OPS = [FenceAsyncSharedOp]
