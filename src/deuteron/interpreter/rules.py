"""All rules of the interpreter."""

from __future__ import annotations

from deuteron.interpreter import (
    arithmetic,
    atomic,
    block_pointer,
    control_flow,
    convert,
    debug,
    dot,
    indexing,
    inline_asm,
    libdevice,
    map_elementwise,
    math,
    memory,
    program,
    reduce,
    shape,
    tensor_descriptor,
)
from deuteron.interpreter.rule_table import RuleTable

RULES = RuleTable(
    {
        **program.RULES,
        **memory.RULES,
        **block_pointer.RULES,
        **atomic.RULES,
        **tensor_descriptor.RULES,
        **shape.RULES,
        **reduce.RULES,
        **indexing.RULES,
        **inline_asm.RULES,
        **map_elementwise.RULES,
        **dot.RULES,
        **convert.RULES,
        **arithmetic.RULES,
        **math.RULES,
        **libdevice.RULES,
        **debug.RULES,
        **control_flow.RULES,
    }
)
