"""Fields of bits that begin beyond the highest bit are taken from it: ptxas gets those of constant places wrong.

    bfe.s32 $0, $1, 35, 4;          bfe.s32 $0, $1, 31, 4;
    bfe.s32 $0, $1, %r3, 4;         { .reg .b32 %clamped_begin; and.b32 %clamped_begin, %r3, 255;
                                      min.u32 %clamped_begin, %clamped_begin, 31;
                                      bfe.s32 $0, $1, %clamped_begin, 4; }

Such a field is copies of the highest bit (PTX ISA, `bfe`), which is what one is that begins there. ptxas makes it -1,
whatever the bit is, where it knows begin and length: a register may hold a constant. Seen on an H200, and in what
13.0.88 and 13.3.73 make for sm_90a but at -O0; fields of 64 bits and unsigned ones are right. LLVM makes none of these.
"""

from __future__ import annotations

import re

_FIELD = re.compile(r"((?:@!?[%$\w]+\s+)?)bfe\.s32(\s+[^,;{}]+,[^,;{}]+,\s*)([^,;{}]+?)(\s*,[^,;{}]+;)")
_NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|\d+)U?")
_HIGHEST = 31


def clamp_fields(ptx: str) -> str:
    """The text with such fields from the highest bit, all else as it was."""
    return _FIELD.sub(_clamped, ptx) if "bfe.s32" in ptx else ptx


def _clamped(match: re.Match[str]) -> str:
    guard, operands, begin, length = match.groups()
    if _NUMBER.fullmatch(begin):
        number = int(begin.rstrip("U"), 0) & 255
        return match[0] if number <= _HIGHEST else f"{guard}bfe.s32{operands}{_HIGHEST}{length}"
    clamped = "%clamped_begin"
    return (
        f"{{ .reg .b32 {clamped}; and.b32 {clamped}, {begin}, 255; min.u32 {clamped}, {clamped}, {_HIGHEST}; "
        f"{guard}bfe.s32{operands}{clamped}{length} }}"
    )
