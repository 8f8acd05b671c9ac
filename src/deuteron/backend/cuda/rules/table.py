"""All rules of the CUDA backend, by the name of the op."""

from __future__ import annotations

from deuteron.backend.cuda.context import Rule
from deuteron.backend.cuda.rules import (
    atomic,
    cast,
    control_flow,
    convert_layout,
    debug,
    dot,
    floating,
    integer,
    memory,
    program,
    reduce,
    scan,
    shape,
)

RULES: dict[str, Rule] = {
    **program.RULES,
    **memory.RULES,
    **atomic.RULES,
    **shape.RULES,
    **integer.RULES,
    **floating.RULES,
    **cast.RULES,
    **reduce.RULES,
    **scan.RULES,
    **dot.RULES,
    **convert_layout.RULES,
    **control_flow.RULES,
    **debug.RULES,
}
