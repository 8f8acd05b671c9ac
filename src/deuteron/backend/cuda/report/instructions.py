"""The instructions of a PTX text, each with the source line that it is from.

    .loc 1 84 17
    @%p1 ld.global.v4.b32 {%r1, ...}, [%rd1];     Instruction("ld.global.v4.b32", "{%r1, ...}, [%rd1]", k.py:84, 36)

Inline assembly of several statements gives several. It reads what our own compiler emits, and checks nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from deuteron.backend.metadata import METADATA_MARK
from deuteron.errors import Location

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+\d+")
_STATEMENT = re.compile(r"(?:^|[;{\s])([a-z][a-z0-9_]*(?:[.:]{1,2}[\w]+)*)(?=[\s;])\s*([^;]*);")
_BEGINS = re.compile(r"\s+(?:@!?%\w+\s+)?[a-z][\w.:]*(?:\s[^;]*)?$")
_THREADS = re.compile(r"\.(?:reqntid|maxntid)\s+([\d, ]+)")
_SASS_LINE = re.compile(r'//## File "([^"]*)", line (\d+)')
_STACK = re.compile(r"\s(STL|LDL)[.\s]")
_VECTOR = re.compile(r"\.v(\d)\.")
_BITS = re.compile(r"\.[bufs](\d+)$")


@dataclass(frozen=True)
class Instruction:
    """`name` has the modifiers; `place` is a source line, None where none is known; `ptx_line` as ptxas counts."""

    name: str
    operands: str
    place: Location | None
    ptx_line: int

    @property
    def access_bytes(self) -> int:
        """What a thread moves by a load, store, atomic or cp.async; 0 where the text does not say it."""
        if self.name.startswith("cp.async"):
            parts = self.operands.split(",")
            return int(parts[2]) if len(parts) > 2 and parts[2].strip().isdigit() else 0
        bits = _BITS.search(self.name)
        vector = _VECTOR.search(self.name)
        return int(bits.group(1)) // 8 * (int(vector.group(1)) if vector else 1) if bits else 0


def instructions(ptx: str) -> Iterator[Instruction]:
    """All instructions, in order."""
    files = {number: path for number, path in _FILE.findall(ptx)}
    place = None
    for number, line in _lines(ptx):
        found = _LOC.search(line)
        if found:
            file, row = found.groups()
            place = Location(files[file], int(row)) if int(row) and file in files else None
        else:
            for match in _STATEMENT.finditer(line):
                yield Instruction(match.group(1), match.group(2), place, number)


def _lines(ptx: str) -> Iterator[tuple[int, str]]:
    """The lines with their numbers, as ptxas counts them: it is not given the comment with the metadata. An
    instruction that goes over several lines is one, with the number of its first.
    """
    begun, begin = "", 0
    for number, line in enumerate(ptx.splitlines(), 0 if ptx.startswith(f"// {METADATA_MARK}") else 1):
        if not begun:
            begin = number
        begun += line
        if ";" in line or not _BEGINS.match(begun):
            yield begin, begun
            begun = ""


def num_threads(ptx: str) -> int | None:
    """The threads of a CTA, where the text says them."""
    found = _THREADS.search(ptx)
    if found is None:
        return None
    total = 1
    for extent in found.group(1).split(","):
        total *= int(extent)
    return total


def stack_accesses(sass: str) -> Iterator[tuple[Location | None, str]]:
    """The lines at which machine code stores to its stack (`STL`) and loads from it (`LDL`)."""
    place = None
    for line in sass.splitlines():
        if found := _SASS_LINE.search(line):
            place = Location(found.group(1), int(found.group(2)))
        elif found := _STACK.search(line):
            yield place, found.group(1)
