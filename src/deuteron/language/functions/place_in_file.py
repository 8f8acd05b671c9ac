"""Where a function is in its file, by the names that Triton gives to that; programs that write functions move them.

    fn.raw_src                                       ["@deuteron.jit\\n", "def added(x):\\n", ...]
    fn.starting_line_number, fn.def_file_line_number  7, 8          of its first decorator, of its `def`
    fn.file_name, fn.def_file_line_number = "k.py", 20              errors, and a debugger, name line 20 of k.py

What is compiled stays the same: `_unsafe_update_src` gives a function another text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deuteron.language.functions.source import FunctionSource


class PlaceInFile:
    """The place of a function whose `source` is known."""

    source: FunctionSource
    _raw_src: Sequence[str] | None = None  # where a program has set it

    @property
    def raw_src(self) -> list[str]:
        """The lines of the function in its file, with its decorators."""
        return list(self.source.lines if self._raw_src is None else self._raw_src)

    @raw_src.setter
    def raw_src(self, lines: Sequence[str]) -> None:
        self._raw_src = list(lines)

    @property
    def starting_line_number(self) -> int:
        """The line of its first decorator."""
        return self.source.first_line

    @starting_line_number.setter
    def starting_line_number(self, line: int) -> None:
        self._move(line=line + self.source.definition_line - self.source.first_line)

    @property
    def def_file_line_number(self) -> int:
        """The line of its `def`."""
        return self.source.definition_line

    @def_file_line_number.setter
    def def_file_line_number(self, line: int) -> None:
        self._move(line=line)

    @property
    def def_file_col_number(self) -> int:
        """The column of its `def`, from 1."""
        return self.source.tree.col_offset + 1

    @def_file_col_number.setter
    def def_file_col_number(self, column: int) -> None:
        self._move(column=column)

    @property
    def file_name(self) -> str:
        return self.source.file

    @file_name.setter
    def file_name(self, file: str) -> None:
        self._move(file=file)

    def _move(self, **place: Any) -> None:
        self.__dict__["source"] = self.source.moved(**place)
        self.__dict__.pop("_names_outside", None)
