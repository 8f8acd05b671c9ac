"""The rules of every GPU, by the name of the op: what a target begins its own table with."""

from __future__ import annotations

from deuteron.backend.gpu.context import Rule
from deuteron.backend.gpu.rules import (
    atomic,
    cast,
    control_flow,
    convert_layout,
    dot,
    extern,
    floating,
    indexing,
    integer,
    map_elementwise,
    memory,
    private,
    program,
    reduce,
    ring,
    scan,
    shape,
)

RULES: dict[str, Rule] = {
    **program.RULES,
    **memory.RULES,
    **private.RULES,
    **atomic.RULES,
    **shape.RULES,
    **integer.RULES,
    **floating.RULES,
    **extern.RULES,
    **cast.RULES,
    **reduce.RULES,
    **scan.RULES,
    **indexing.RULES,
    **map_elementwise.RULES,
    **dot.RULES,
    **convert_layout.RULES,
    **ring.RULES,
    **control_flow.RULES,
}
