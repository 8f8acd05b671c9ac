"""Clusters of CTAs that run one program together.

    %rank = "ttng.cluster_cta_rank"() : () -> i32      which of them this is
    "ttng.cluster_barrier"() : () -> ()                all threads of all of them wait for each other

Before accesses of another CTA's shared memory all have to have begun, and after the last none may have ended.
"""

from __future__ import annotations

from xdsl.irdl import IRDLOperation, irdl_op_definition, result_def, traits_def
from xdsl.traits import Pure

from deuteron.ir.effects import ORDER_OWN, OTHER, Effect, orders, writes
from deuteron.ir.types import i32


@irdl_op_definition
class ClusterCTARankOp(IRDLOperation):
    """The number of the CTA in its cluster, from 0."""

    name = "ttng.cluster_cta_rank"
    result = result_def(i32)
    traits = traits_def(Pure())

    def __init__(self) -> None:
        super().__init__(result_types=[i32])


@irdl_op_definition
class ClusterBarrierOp(IRDLOperation):
    """All threads of the cluster wait for each other, and what each did with memory before is over for all after: at
    the end of a kernel, what it did with the shared memory of other CTAs. For TMA, mbarriers that were initialised
    are visible after it if `ttng.fence_mbarrier_init_release_cluster` is before it.
    """

    name = "ttng.cluster_barrier"

    def __init__(self) -> None:
        super().__init__()

    def effects(self) -> list[Effect]:
        return [writes(OTHER), *orders(ORDER_OWN)]


OPS = [ClusterCTARankOp, ClusterBarrierOp]
