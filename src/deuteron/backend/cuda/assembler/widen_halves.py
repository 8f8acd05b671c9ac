"""The upper bf16 of a word as a float by one instruction.

    mov.b32       {_, %rs1}, %r1;              mov.b32  {_, %rs1}, %r1;  mov.b32  %upper1, %r1;
    ...                                        ...
    cvt.f32.bf16  %r2, %rs1;                   and.b32  %r2, %upper1, -65536;

A bf16 is the upper half of the float that it is. ptxas moves the lower ones there by one instruction, and the upper
ones down and up again, by PRMT and SHF. Copies cost nothing. NaN stay NaN.

A loop may load the next word into the register before it takes the half, so that each half has a copy of its word, made
wherever the half is. Halves that come from anywhere else as well stay as they are.
"""

from __future__ import annotations

import re

_WIDENED = re.compile(r"^\tcvt\.f32\.bf16 \t(%r\d+), %rs(\d+);$", re.MULTILINE)
_HALVES = re.compile(r"^\tmov\.b32 \t\{(?:_|%rs\d+), %rs(\d+)\}, (%r\d+);$", re.MULTILINE)
_DECLARED = re.compile(r"^\t\.reg \.b16 \t%rs<(\d+)>;$", re.MULTILINE)
_DEFINITION = re.compile(r"\t[a-z][\w.:]* \t(%\w+|\{[^}]*\}), [^;]*;")
_HALF = re.compile(r"%rs(\d+)")


def widen_halves(ptx: str) -> str:
    """The text with such conversions written anew, all else as it was."""
    halves = {number for _, number in _WIDENED.findall(ptx)}
    halves &= {number for number, _ in _HALVES.findall(ptx)}
    if not halves:
        return ptx
    for line in ptx.split("\n"):
        if "%rs" in line:
            halves -= _written(line)
    ptx = _HALVES.sub(lambda m: f"{m[0]}\n\tmov.b32 \t%upper{m[1]}, {m[2]};" if m[1] in halves else m[0], ptx)
    ptx = _WIDENED.sub(lambda m: f"\tand.b32 \t{m[1]}, %upper{m[2]}, -65536;" if m[2] in halves else m[0], ptx)
    return _DECLARED.sub(r"\g<0>\n\t.reg .b32 \t%upper<\1>;", ptx)


def _written(line: str) -> set[str]:
    """The halves that a line may write, but upper ones that are taken from a word: all that it names, where it is not
    one instruction that begins with its results.
    """
    if halves := _HALVES.fullmatch(line):
        return set(_HALF.findall(line)) - {halves[1]}
    definition = _DEFINITION.fullmatch(line)
    return set(_HALF.findall(definition[1] if definition else line))
