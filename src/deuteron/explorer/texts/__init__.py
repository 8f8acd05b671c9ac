"""The texts of stages as lines, each with the places in the source that made it: one reader for each language.

    located("ptx", kernel.asm["ptx"])        LocatedText(("add.s32 %r3, ...", ...), ((Location("k.py", 7, 9),), ...))

mlir.py       tile IR: the location at the end of an op, which its lines are then without
llvm.py       LLVM IR: `!dbg !12`
assembly.py   PTX, machine code: what `.loc`, or nvdisasm's comments, said last
"""

from __future__ import annotations

from collections.abc import Callable

from deuteron.explorer.texts.assembly import read_assembly, read_sass
from deuteron.explorer.texts.llvm import read_llvm
from deuteron.explorer.texts.located import LocatedText
from deuteron.explorer.texts.mlir import read_mlir

# For each stage that is text: its language, and what reads it.
_READERS: dict[str, tuple[str, Callable[[str], LocatedText]]] = {
    "ttir": ("mlir", read_mlir),
    "ttgir": ("mlir", read_mlir),
    "llir": ("llvm", read_llvm),
    "ptx": ("ptx", read_assembly),
    "sass": ("sass", read_sass),
    "asm": ("asm", read_assembly),
}


def language_of(stage: str) -> str | None:
    """The language of a stage's text; None where it is not for people."""
    return _READERS[stage][0] if stage in _READERS else None


def located(stage: str, text: str) -> LocatedText:
    """The lines of a stage's text with their places."""
    return _READERS[stage][1](text)
