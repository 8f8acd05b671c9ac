"""PTX and machine code as text: a line has the place that was said last.

    .file 1 "/kernels/k.py"                    //## File "/kernels/k.py", line 20
    .loc  1 20 5                               S2UR UR6, SR_CTAID.X ;
    add.s32 %r3, %r1, %r2;      k.py:20:5

Directives, labels and comments have none; a line 0 says that there is no place. Our line of metadata and sections of
debug information are left out.
"""

from __future__ import annotations

import re
from pathlib import PurePath

from deuteron.backend.metadata import METADATA_MARK
from deuteron.errors import Location
from deuteron.explorer.texts.located import LocatedText, Places

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)")
_NOT_CODE = re.compile(r"^\s*(?:\.|//|#|\$?[\w.$]+:(?:\s|$)|[{}()]?$)|^\S")
_DEBUG_SECTION = re.compile(r'^\s*\.section\s+"?\.(?:debug|nv_debug)')
_SASS_PLACE = re.compile(r'//## File "([^"]*)", line (\d+)')


def read_assembly(text: str) -> LocatedText:
    """The lines of PTX, or of GNU assembly, with their places."""
    lines, places, here = [], [], ()
    files = _files(text)
    for line in text.splitlines():
        if _DEBUG_SECTION.match(line):
            break
        loc = _LOC.match(line)
        if loc:
            here = _place(files.get(loc[1]), int(loc[2]), int(loc[3]))
        if loc or METADATA_MARK in line or _FILE.match(line):
            continue
        lines.append(line.expandtabs(8))
        places.append(() if _NOT_CODE.match(line) else here)
    return LocatedText(tuple(lines), tuple(places))


def _files(text: str) -> dict[str, str]:
    """The files by their numbers; LLVM writes those of PTX at its end."""
    found = (_FILE.match(line) for line in text.splitlines() if ".file" in line)
    return {file[1]: str(PurePath(file[2]) / file[3]) if file[3] else file[2] for file in found if file}


def _place(file: str | None, line: int, column: int) -> Places:
    return (Location(file, line, max(column, 1)),) if file and line else ()


def read_sass(text: str) -> LocatedText:
    """The lines of nvdisasm's text with their places."""
    lines, places, here, is_new = [], [], (), True
    for line in text.splitlines():
        said = _SASS_PLACE.search(line)
        if said is None:
            lines.append(line)
            places.append(here if line.rstrip().endswith(";") else ())
            is_new = True
            continue
        found = _place(said[1], int(said[2]), 1)
        here = found if is_new else (*here, *found)
        is_new = False
    return LocatedText(tuple(lines), tuple(places))
