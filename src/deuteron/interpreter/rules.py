"""All rules of the interpreter.

A rule takes the executor, the op and the values of its operands. It returns the value of the op's only result, a tuple
of values where there are several, or None. It never changes a value in place, and it takes shapes from the values
rather than from the op's types wherever it may stand in the region of a reduction, which runs on whole tiles at once.
"""

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
from deuteron.ir.rule_table import RuleTable

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
