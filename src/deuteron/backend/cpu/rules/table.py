"""All rules for what is computed lane by lane, by the name of the op."""

from deuteron.backend.cpu.context import Rule
from deuteron.backend.cpu.rules import convert, extern, floating, indexing, integer, memory, program, reduce

RULES: dict[str, Rule] = {
    **integer.RULES,
    **floating.RULES,
    **convert.RULES,
    **extern.RULES,
    **memory.RULES,
    **indexing.RULES,
    **program.RULES,
    **reduce.RULES,
}
