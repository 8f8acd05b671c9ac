"""All rules of the CUDA backend, by the name of the op: those of every GPU, and its own, which win."""

from __future__ import annotations

from deuteron.backend.cuda.rules import (
    async_copy,
    cluster,
    convert_layout,
    debug,
    divide,
    dot,
    inline_asm,
    mbarrier,
    proxy_fences,
    tma,
    turns,
    warp_group_dot,
    warp_specialize,
)
from deuteron.backend.gpu.context import Rule
from deuteron.backend.gpu.rules import table

RULES: dict[str, Rule] = {
    **table.RULES,
    **cluster.RULES,
    **dot.RULES,
    **inline_asm.RULES,
    **convert_layout.RULES,
    **warp_group_dot.RULES,
    **async_copy.RULES,
    **mbarrier.RULES,
    **proxy_fences.RULES,
    **tma.RULES,
    **turns.RULES,
    **warp_specialize.RULES,
    **debug.RULES,
    **divide.RULES,
}
