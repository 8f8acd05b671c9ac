"""PTX text to data: `parse(text)` gives a `Module` of variables and functions, names resolved, scopes flattened.

    module = parse(ptx)
    module.functions["add"].instructions[0]     Instruction("ld.param.b64", [Register("%rd1"), Memory(...)], line 24)

Written by hand: PTX is a flat list of `opcode operands;` and one regular expression is most of the work. Measured on
5,000 lines (32,000 tokens): lark's LALR parser 0.35 s for a raw tree, this parser 0.1 s for the finished data.
"""

from typing import TYPE_CHECKING

from deuteron.lazy import lazy_names

if TYPE_CHECKING:
    from deuteron.ptx.module import parse
    from deuteron.ptx.syntax import Module

__all__ = ["Module", "parse"]

# Asked for when PTX is read: the operands of inline assembly, which tile IR knows, need none of it.
_NAMES = {"deuteron.ptx.module": "parse", "deuteron.ptx.syntax": "Module"}
__getattr__, __dir__ = lazy_names(globals(), _NAMES)
