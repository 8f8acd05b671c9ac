"""Which loads of tiles the CTAs of a cluster share: each loads a part, for all of them.

%a = "tt.descriptor_load"(%d, %rank * 128 + ..., %k)      1: each CTA has rows of its own
%b = "tt.descriptor_load"(%e, %column, %k)                num_ctas: the same in every CTA
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from deuteron.ir.forwarding import forwarded_from
from deuteron.ir.reached import operands_of, reached
from deuteron.ir.tt.descriptor import DescriptorLoadOp
from deuteron.ir.ttg.layout import MemDescType
from deuteron.ir.ttng.cluster import ClusterCTARankOp
from deuteron.ir.ttng.tma import box_of


def sharing_ctas(load: DescriptorLoadOp, buffer: MemDescType, num_ctas: int) -> int:
    """How many CTAs share a load into such a buffer."""
    is_shared = num_ctas > 1 and box_of(buffer, num_ctas) is not None and not _depends_on_rank(load.operands)
    return num_ctas if is_shared else 1


def _depends_on_rank(values: Sequence[SSAValue]) -> bool:
    made_of = reached(values, lambda value: forwarded_from(value) or operands_of(value))
    return any(isinstance(value.owner, ClusterCTARankOp) for value in made_of)
