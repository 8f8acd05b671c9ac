"""PTX text to data: `parse(text)` gives a `Module` of variables and functions, names resolved, scopes flattened.

    module = parse(ptx)
    module.functions["add"].instructions[0]     Instruction("ld.param.b64", [Register("%rd1"), Memory(...)], line 24)

Written by hand: PTX is a flat list of `opcode operands;` and one regular expression is most of the work. Measured on
5,000 lines (32,000 tokens): lark's LALR parser 0.35 s for a raw tree, this parser 0.1 s for the finished data.
"""

from deuteron.ptx.module import parse
from deuteron.ptx.syntax import Module

__all__ = ["Module", "parse"]
