"""The source files that places are in, and of each file the functions that a kernel is made of.

    sources = Sources()
    sources.number(Location("/kernels/k.py", 7, 9))       0: sources.places[0] == (0, 7, 9)
    sources.files()                                       (File("/kernels/k.py", "k.py", (Part(5, (...)),)),)

Debug information may name a file as Python imports it; it is then taken for the file of that name that is known
already, so that tile IR, which has paths, comes first.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Iterator
from pathlib import PurePath

from deuteron.errors import Location
from deuteron.explorer.model import File, Part, Place
from deuteron.explorer.texts.located import LocatedText
from deuteron.ir.location import import_path
from deuteron.language.functions.lambda_source import syntax_tree


class Sources:
    """Places by number, and files by theirs. `texts` are files that are not on disk, by name."""

    def __init__(self, texts: dict[str, str] | None = None):
        self._texts = texts or {}
        self._files: dict[str, int] = {}
        self._spellings: dict[str, str] = {}
        self._numbers: dict[Place, int] = {}

    @property
    def places(self) -> tuple[Place, ...]:
        return tuple(self._numbers)

    def number(self, place: Location) -> int:
        """The number of a place."""
        key = (self._file(place.file), place.line, place.column)
        return self._numbers.setdefault(key, len(self._numbers))

    def at(self, text: LocatedText) -> tuple[tuple[int, ...], ...]:
        """The numbers of the places of each line."""
        return tuple(tuple(dict.fromkeys(map(self.number, places))) for places in text.places)

    def file_name(self, file: int) -> str:
        return list(self._files)[file]

    def files(self) -> tuple[File, ...]:
        """The files, with the parts that have places."""
        return tuple(
            File(path, PurePath(path).name, tuple(self._parts(path, file))) for path, file in self._files.items()
        )

    def _file(self, spelled: str) -> int:
        spelled = str(PurePath(spelled))
        if spelled not in self._spellings:
            known = (path for path in self._files if import_path(path) == spelled)
            self._spellings[spelled] = next(known, spelled)
        path = self._spellings[spelled]
        return self._files.setdefault(path, len(self._files))

    def _parts(self, path: str, file: int) -> Iterator[Part]:
        lines = self._lines(path)
        used = {line for number, line, _ in self._numbers if number == file and line <= len(lines)}
        for first, last in _joined(_statements(lines, used)):
            yield Part(first, tuple(lines[first - 1 : last]))

    def _lines(self, path: str) -> list[str]:
        if path in self._texts:
            return self._texts[path].splitlines()
        return [line.rstrip("\n").expandtabs(4) for line in linecache.getlines(path)]


def _statements(lines: list[str], used: set[int]) -> Iterator[tuple[int, int]]:
    """The first and last lines of the statements of a module that have used lines in them; all of what is no Python."""
    try:
        body = syntax_tree("\n".join(lines)).body
    except SyntaxError:
        yield 1, len(lines)
        return
    for statement in body:
        decorators = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
        if any(first <= line <= statement.end_lineno for line in used):
            yield first, statement.end_lineno


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges in order, those that follow one another within some empty lines as one."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 4:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return joined
