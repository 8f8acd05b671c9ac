"""LLVM IR: the place of an instruction is its `!dbg`.

    %3 = add i32 %1, %2, !dbg !7               k.py:20:5
    !7 = !DILocation(line: 20, column: 5, scope: !4)

Scopes say the file; `inlinedAt` the call, whose place comes after that of the code. Metadata is left out of the lines:
it is a third of the text, and says what the places say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import PurePath

from deuteron.errors import Location
from deuteron.explorer.texts.located import LocatedText, Places

_NODE = re.compile(r"^(!\d+) = (?:distinct )?(.*)$")
_DEBUG = re.compile(r",? !dbg (!\d+)")
_FIELD = re.compile(r"(\w+): (!\d+|\d+|\"(?:[^\"\\]|\\.)*\")")


def read_llvm(text: str) -> LocatedText:
    """The lines of a module with their places, without its metadata."""
    nodes, lines = {}, []
    for line in text.splitlines():
        node = _NODE.match(line)
        if node:
            nodes[node[1]] = node[2]
        elif not line.startswith("!"):
            lines.append(line)
    while lines and not lines[-1]:
        lines.pop()
    metadata = _Metadata(nodes)
    places = tuple(_places_of(line, metadata) for line in lines)
    return LocatedText(tuple(_DEBUG.sub("", line) for line in lines), places)


def _places_of(line: str, metadata: _Metadata) -> Places:
    found = _DEBUG.search(line)
    return metadata.places(found[1]) if found else ()


class _Metadata:
    """The debug information of a module by the number of its nodes."""

    def __init__(self, nodes: dict[str, str]):
        self._nodes = nodes
        self.places = cache(self._places)

    def _places(self, node: str) -> Places:
        """The place that a DILocation, or a function, says, and the calls that it was inlined in."""
        return tuple(place for place in self._chain(node) if place is not None)

    def _chain(self, node: str | None) -> Iterator[Location | None]:
        while node is not None:
            fields = self._fields(node)
            file = self._file(fields)
            line = int(fields.get("line", 0))
            yield Location(file, line, int(fields.get("column", 1))) if file and line else None
            node = fields.get("inlinedAt")

    def _fields(self, node: str) -> dict[str, str]:
        return dict(_FIELD.findall(self._nodes.get(node, "")))

    def _file(self, fields: dict[str, str]) -> str | None:
        """The file that the scopes around say."""
        while "file" not in fields and "scope" in fields:
            fields = self._fields(fields["scope"])
        if "file" not in fields:
            return None
        file = self._fields(fields["file"])
        name, folder = (file.get(key, '""').strip('"') for key in ("filename", "directory"))
        return str(PurePath(folder) / name)
