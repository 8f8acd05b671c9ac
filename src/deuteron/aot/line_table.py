r"""The line table of a kernel's assembly as data, for assembly that stands within C.

    .loc 1 14 5 is_stmt 0        ->      .L1f0c_row3:      and a row in .debug_line

The C compiler numbers files and makes the line table of its unit itself, so that `.file` and `.loc` of another unit
cannot stand there. What LLVM writes of the unit besides (`.debug_info` ...) is a unit of its own wherever it stands;
the table that it refers to is written here, in the format of DWARF 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

START = ".Lline_table_start0"

_FILE = re.compile(r'\s*\.file\s+(\d+)\s+("(?:[^"\\]|\\.)*")(?:\s+("(?:[^"\\]|\\.)*"))?')
_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)(.*)")
_END = re.compile(r"\.Lfunc_end\d+:")
# How far an advance of two bytes certainly reaches: no instruction has more than 15, no alignment more than 64.
_MOST_LINES = 65535 // 64

_COPY, _LINE, _FILE_NUMBER, _COLUMN, _NEGATE, _FIXED_ADVANCE, _PROLOGUE_END = 1, 3, 4, 5, 6, 9, 10
_OPCODE_LENGTHS = (0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1)


@dataclass(frozen=True)
class _Row:
    """A place in the source from a label on. `distance` counts lines of assembly since the row before."""

    label: str
    file: int
    line: int
    column: int
    is_statement: bool
    is_prologue_end: bool
    distance: int


@dataclass
class LineTable:
    """The rows of a unit, collected from its lines in order; labels begin with a prefix."""

    prefix: str
    files: dict[int, str] = field(default_factory=dict)
    sequences: list[tuple[list[_Row], str]] = field(default_factory=list)
    _rows: list[_Row] = field(default_factory=list)
    _is_statement: bool = True
    _distance: int = 0

    def take(self, line: str) -> str | None:
        """What stands in the place of a line that is about places in the source; None for any other."""
        self._distance += 1
        if found := _FILE.match(line):
            self._take_file(found)
            return ""
        if found := _LOC.match(line):
            return self._take_place(found)
        if self._rows and _END.match(line):
            self.sequences.append((self._rows, line.rstrip(":")))
            self._rows = []
        return None

    def own_section(self, line: str) -> str:
        """The directives of a section that is apart from that of the C compiler's unit, which takes its own to be at
        the beginning: a group makes it so. That one is named first, so that it is the one that is meant by the name.
        """
        head, flags, kind = line.split('"', 2)
        return f'{line}\n{head}"{flags}G"{kind},deuteron_{self.prefix[2:]}lines'

    def _take_file(self, found: re.Match[str]) -> None:
        folder, name = (found[2], found[3]) if found[3] else ('"."', found[2])
        is_whole = folder == '"."' or name.startswith('"/')
        self.files[int(found[1])] = name if is_whole else f"{folder[:-1]}/{name[1:]}"

    def _take_place(self, found: re.Match[str]) -> str:
        file, line, column = (int(found[i]) for i in (1, 2, 3))
        if "is_stmt" in found[4]:
            self._is_statement = "is_stmt 1" in found[4]
        label = f"{self.prefix}row{sum(len(rows) for rows, _ in self.sequences) + len(self._rows)}"
        is_end = "prologue_end" in found[4]
        self._rows.append(_Row(label, file, line, column, self._is_statement, is_end, self._distance))
        self._distance = 0
        return f"{label}:"

    def lines(self, start: str) -> Iterator[str]:
        """The section; `start` is the label at its beginning."""
        begin, end = f"{self.prefix}lines", f"{self.prefix}lines_end"
        yield self.own_section('\t.section\t.debug_line,"",@progbits')
        yield f"{start}:"
        yield f"\t.long\t{end}-{begin}"
        yield f"{begin}:"
        yield "\t.short\t4"
        yield f"\t.long\t{self.prefix}program-{self.prefix}header"
        yield f"{self.prefix}header:"
        yield _bytes(1, 1, 1, 0xFB, 14, len(_OPCODE_LENGTHS) + 1, *_OPCODE_LENGTHS, 0)
        for number in range(1, max(self.files) + 1):
            yield f"\t.asciz\t{self.files.get(number, self.files[max(self.files)])}"
            yield _bytes(0, 0, 0)
        yield _bytes(0)
        yield f"{self.prefix}program:"
        for rows, last in self.sequences:
            yield from _sequence(rows, last)
        yield f"{end}:"


def _sequence(rows: Iterable[_Row], last: str) -> Iterator[str]:
    file, line, column, is_statement, label = 1, 1, 0, True, ""
    for row in rows:
        yield from _advance(label, row.label, row.distance)
        codes: list[int] = []
        if row.file != file:
            codes += [_FILE_NUMBER, *_unsigned(row.file)]
        if row.line != line:
            codes += [_LINE, *_signed(row.line - line)]
        if row.column != column:
            codes += [_COLUMN, *_unsigned(row.column)]
        if row.is_statement != is_statement:
            codes.append(_NEGATE)
        if row.is_prologue_end:
            codes.append(_PROLOGUE_END)
        yield _bytes(*codes, _COPY)
        file, line, column, is_statement, label = row.file, row.line, row.column, row.is_statement, row.label
    yield _set_address(last)
    yield _bytes(0, 1, 1)  # the end of the sequence


def _advance(before: str, label: str, distance: int) -> Iterator[str]:
    if not before or distance > _MOST_LINES:
        yield _set_address(label)
    else:
        yield f"\t.byte\t{_FIXED_ADVANCE}\n\t.short\t{label}-{before}"


def _set_address(label: str) -> str:
    return f"{_bytes(0, 9, 2)}\n\t.quad\t{label}"


def _bytes(*values: int) -> str:
    return f"\t.byte\t{','.join(map(str, values))}"


def _unsigned(value: int) -> list[int]:
    """LEB128."""
    found = [value & 0x7F]
    while value := value >> 7:
        found[-1] |= 0x80
        found.append(value & 0x7F)
    return found


def _signed(value: int) -> list[int]:
    found = [value & 0x7F]
    value >>= 7
    while value != (-1 if found[-1] & 0x40 else 0):
        found[-1] |= 0x80
        found.append(value & 0x7F)
        value >>= 7
    return found
