"""All rules of the CUDA backend, by the name of the op."""

from __future__ import annotations

from deuteron.backend.cuda.rules import (
    async_copy,
    atomic,
    cluster,
    debug,
    dot,
    mbarrier,
    tma,
    turns,
    warp_group_dot,
    warp_specialize,
)
from deuteron.backend.gpu.context import Rule
from deuteron.backend.gpu.rules import (
    cast,
    control_flow,
    convert_layout,
    floating,
    integer,
    memory,
    program,
    reduce,
    ring,
    scan,
    shape,
)

RULES: dict[str, Rule] = {
    **program.RULES,
    **cluster.RULES,
    **memory.RULES,
    **atomic.RULES,
    **shape.RULES,
    **integer.RULES,
    **floating.RULES,
    **cast.RULES,
    **reduce.RULES,
    **scan.RULES,
    **dot.RULES,
    **warp_group_dot.RULES,
    **convert_layout.RULES,
    **async_copy.RULES,
    **ring.RULES,
    **mbarrier.RULES,
    **tma.RULES,
    **turns.RULES,
    **control_flow.RULES,
    **warp_specialize.RULES,
    **debug.RULES,
}
