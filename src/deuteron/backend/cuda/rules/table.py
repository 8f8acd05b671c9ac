"""All rules of the CUDA backend, by the name of the op."""

from __future__ import annotations

from deuteron.backend.cuda.context import Rule
from deuteron.backend.cuda.rules import (
    async_copy,
    atomic,
    cast,
    cluster,
    control_flow,
    convert_layout,
    debug,
    dot,
    floating,
    integer,
    mbarrier,
    memory,
    program,
    reduce,
    ring,
    scan,
    shape,
    tma,
    turns,
    warp_group_dot,
    warp_specialize,
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
