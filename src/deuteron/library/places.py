"""Where the keys of a TOML file stand, so that a mistake in one has a line: tomllib gives values without their places.

    places = Places("deuteron.toml", text)          of a text that tomllib reads
    places.at("library", "norms", "kernel", 0, "types", "X")          Location("deuteron.toml", 12, 1, 2)

The n-th `[[table]]` of a name is its n-th element. A key that has no place of its own, as one within a string, has that
of the innermost table or key around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from deuteron.errors import Location

Key = str | int

# What a TOML text is made of, as far as keys and the brackets around them go.
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|\n|[][{}=,.]|[^\s"\'#\][{}=,.]+',
    re.DOTALL,
)


class Places:
    """The places of all keys of a text that is valid TOML."""

    def __init__(self, file: str, text: str):
        self.file, self.text = file, text
        self._places: dict[tuple[Key, ...], tuple[int, int]] = {}
        self._counts: dict[tuple[Key, ...], int] = {}
        self._read(_Tokens(text))

    def at(self, *path: Key) -> Location:
        """The place of a key, or of what is around it."""
        while path and path not in self._places:
            path = path[:-1]
        start, end = self._places.get(path, (0, 1))
        line = self.text.count("\n", 0, start) + 1
        column = start - self.text.rfind("\n", 0, start)
        return Location(self.file, line, column, column + end - start)

    def _read(self, tokens: _Tokens) -> None:
        table: tuple[Key, ...] = ()
        while tokens.text:
            if tokens.take("\n"):
                continue
            if tokens.take("["):
                table = self._header(tokens)
                continue
            self._pair(tokens, table)

    def _header(self, tokens: _Tokens) -> tuple[Key, ...]:
        """The table that `[a.b]` or `[[a.b]]` begins."""
        is_array = tokens.take("[")
        keys, place = tokens.key()
        while tokens.take("]"):
            pass
        path = self._resolved(keys[:-1]) + keys[-1:]
        if is_array:
            self._counts[path] = self._counts.get(path, -1) + 1
            path += (self._counts[path],)
        else:
            path = self._resolved(keys)
        for count in range(1, len(path) + 1):
            self._places.setdefault(path[:count], place)
        return path

    def _resolved(self, keys: tuple[Key, ...]) -> tuple[Key, ...]:
        """The path of a table's name: within an array of tables it is the last of them that is meant."""
        path: tuple[Key, ...] = ()
        for key in keys:
            path += (key,)
            if path in self._counts:
                path += (self._counts[path],)
        return path

    def _pair(self, tokens: _Tokens, table: tuple[Key, ...]) -> None:
        keys, place = tokens.key()
        path = table + keys
        self._places.setdefault(path, place)
        tokens.take("=")
        self._value(tokens, path)

    def _value(self, tokens: _Tokens, path: tuple[Key, ...]) -> None:
        if tokens.take("{"):
            while tokens.text and not tokens.take("}"):
                if not (tokens.take(",") or tokens.take("\n")):
                    self._pair(tokens, path)
        elif tokens.take("["):
            index = 0
            while tokens.text and not tokens.take("]"):
                if not (tokens.take(",") or tokens.take("\n")):
                    self._places.setdefault((*path, index), tokens.place)
                    self._value(tokens, (*path, index))
                    index += 1
        else:
            while tokens.text and tokens.text not in ("\n", ",", "]", "}"):
                tokens.next()


class _Tokens:
    """The tokens of a text, comments left out. `text` is the current one, empty at the end, `place` its span."""

    def __init__(self, text: str):
        self._found: Iterator[re.Match[str]] = (match for match in _TOKEN.finditer(text) if match[0][0] != "#")
        self.next()

    def next(self) -> None:
        match = next(self._found, None)
        self.text, self.place = (match[0], match.span()) if match else ("", (0, 1))

    def take(self, text: str) -> bool:
        is_there = self.text == text
        if is_there:
            self.next()
        return is_there

    def key(self) -> tuple[tuple[Key, ...], tuple[int, int]]:
        """`a."b".c` as its parts, and where it stands."""
        start, keys, end = self.place[0], [], self.place[1]
        while True:
            keys.append(self.text[1:-1] if self.text[:1] in ("'", '"') else self.text)
            end = self.place[1]
            self.next()
            if not self.take("."):
                return tuple(keys), (start, end)
