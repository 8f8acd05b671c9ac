"""How the text of a stage defines a function: a pattern, of which `%s` is the symbol.

    define hidden void @add(ptr %args, ...) {        DEFINES
    .visible .entry add(                             ENTRY

A module of its own, since those who know the stages of a target do not import LLVM.
"""

DEFINES = r'^define\s[^\n]*@"?%s"?\('
ENTRY = r"^\s*(?:\.visible\s+)?\.entry\s+%s\s*\("
