"""Source locations, to and from MLIR's location attributes.

Location("k.py", 7, 9)                      loc("k.py":7:9)
with a Python name                          loc("acc"("k.py":7:9))
in an inlined call from k.py:20:5           loc(callsite("acc"("k.py":7:9) at "k.py":20:5))
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from xdsl.dialects.builtin import (
    CallSiteLoc,
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    NameLoc,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute

from deuteron.errors import Location

# The standard library of the language, which is written in the language.
_LIBRARY = str(Path(__file__).resolve().parent.parent / "language") + os.sep


@lru_cache(maxsize=4096)  # the ops of an expression share their place
def to_attribute(location: Location, name: str | None = None, call_chain: tuple[Location, ...] = ()) -> LocationAttr:
    """The attribute of a place, with the name of the Python variable and the calls that led there, innermost first."""
    attr: LocationAttr = _file_line_column(location)
    if name is not None:
        attr = NameLoc(StringAttr(name), attr)
    for call in call_chain:
        attr = CallSiteLoc(attr, _file_line_column(call))
    return attr


def from_attribute(attr: Attribute) -> tuple[Location | None, tuple[Location, ...]]:
    """The place and the chain of calls, innermost first, of a location attribute; (None, ()) if it is unknown."""
    chain: list[Location] = []
    while isinstance(attr, CallSiteLoc):
        caller, outer = from_attribute(attr.caller)
        chain = [*([caller] if caller else []), *outer, *chain]
        attr = attr.callee
    while isinstance(attr, NameLoc):
        attr = attr.location
    if not isinstance(attr, FileLineColLoc):
        return None, tuple(chain)
    return Location(attr.filename.data, attr.line.data, attr.column.data), tuple(chain)


def user_location(attr: Attribute) -> Location | None:
    """The innermost place outside of the standard library: the line that a kernel's author wrote."""
    place, chain = from_attribute(attr)
    places = [*([place] if place else []), *chain]
    return next(iter(outside_library(places)), place)


def outside_library(places: Iterable[Location]) -> list[Location]:
    """The places that are not in the standard library: those that a kernel's author wrote."""
    return [place for place in places if not place.file.startswith(_LIBRARY)]


@lru_cache(maxsize=1024)
def import_path(file: str) -> str:
    """A file's path as Python imports it, `package/module.py`: the same wherever the package lies."""
    path = Path(file)
    parts = [path.name]
    for folder in path.parents:
        if not (folder / "__init__.py").is_file():
            break
        parts.insert(0, folder.name)
    return "/".join(parts)


def is_unknown(attr: LocationAttr) -> bool:
    return attr.__class__ is UnknownLoc


@lru_cache(maxsize=4096)
def _file_line_column(location: Location) -> FileLineColLoc:
    file = location.file.encode(errors="backslashreplace").decode()  # a path may have bytes that are no text
    return FileLineColLoc(StringAttr(file), IntAttr(location.line), IntAttr(location.column))
