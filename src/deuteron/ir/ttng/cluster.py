"""Clusters of blocks: which of the blocks that run one program together this is.

%rank = "ttng.cluster_cta_rank"() : () -> i32
"""

from __future__ import annotations

from xdsl.irdl import IRDLOperation, irdl_op_definition, result_def, traits_def
from xdsl.traits import Pure

from deuteron.ir.types import i32


@irdl_op_definition
class ClusterCTARankOp(IRDLOperation):
    """The number of the block in its cluster, from 0."""

    name = "ttng.cluster_cta_rank"
    result = result_def(i32)
    traits = traits_def(Pure())

    def __init__(self) -> None:
        super().__init__(result_types=[i32])


OPS = [ClusterCTARankOp]
