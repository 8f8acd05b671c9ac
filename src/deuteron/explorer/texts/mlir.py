"""Tile IR, printed as Triton prints it: lines without locations, and what these said.

    scf.for %i = ... {                      ->  scf.for %i = ... {         k.py:37:5
      %a = tt.load %p : ... loc(#loc3)      ->    %a = tt.load %p : ...    k.py:38:9
    } loc(#loc2)                            ->  }                          k.py:37:5
    #loc2 = loc("k.py":37:5)

An op with regions has its location behind the last brace; all lines of its own get it. Arguments of blocks have theirs
within a line. Places in the standard library give way to the calls of it.
"""

from __future__ import annotations

import re
from functools import cache

from deuteron.errors import Location
from deuteron.explorer.texts.located import LocatedText, Places
from deuteron.ir.location import outside_library

_DEFINITION = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_USE = re.compile(r" loc\((#loc\d*)\)")
_PLACE = re.compile(r'"(?P<file>(?:[^"\\]|\\.)*)":(?P<line>\d+):(?P<column>\d+)$')
_NAMED = re.compile(r'"(?:[^"\\]|\\.)*"\((?P<inner>#loc\d*)\)$')
_CALL = re.compile(r"callsite\((?P<callee>#loc\d*) at (?P<caller>#loc\d*)\)$")


def read_mlir(text: str) -> LocatedText:
    """The lines of a module with their places; definitions of locations are left out."""
    lines, definitions = [], {}
    for line in text.splitlines():
        defined = _DEFINITION.match(line)
        if defined:
            definitions[defined[1]] = defined[2]
        else:
            lines.append(line)
    names = _names_of(lines)
    aliases = _Aliases(definitions)
    places = tuple(aliases.places(name) if name else () for name in names)
    return LocatedText(tuple(_USE.sub("", line) for line in lines), places)


def _names_of(lines: list[str]) -> list[str | None]:
    """The location of each line by its name."""
    found: list[str | None] = [None] * len(lines)
    open_ops: list[list[int]] = []  # of each op whose regions are being read the lines of its own
    for number, line in enumerate(lines):
        uses, bare = _USE.findall(line), line.strip()
        own = open_ops.pop() if bare.startswith("}") and open_ops else []
        own.append(number)
        if bare.endswith("{"):
            open_ops.append(own)
        elif uses:
            for one in own:
                found[one] = uses[-1]
    return found


class _Aliases:
    """What the names of locations stand for."""

    def __init__(self, definitions: dict[str, str]):
        self._definitions = definitions
        self.places = cache(self._places)

    def _places(self, name: str) -> Places:
        place, chain = self._resolved(name)
        every = [*([place] if place else []), *chain]
        return tuple(outside_library(every))

    def _resolved(self, name: str) -> tuple[Location | None, list[Location]]:
        """The place of a location, and the calls that led there, innermost first."""
        body = self._definitions.get(name, "")
        if place := _PLACE.match(body):
            return Location(_unquoted(place["file"]), int(place["line"]), int(place["column"])), []
        if named := _NAMED.match(body):
            return self._resolved(named["inner"])
        if call := _CALL.match(body):
            callee, inner = self._resolved(call["callee"])
            caller, outer = self._resolved(call["caller"])
            return callee, [*inner, *([caller] if caller else []), *outer]
        return None, []


def _unquoted(text: str) -> str:
    return text.replace('\\"', '"').replace("\\\\", "\\")
