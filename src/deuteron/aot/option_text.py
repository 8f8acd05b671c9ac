"""The text of a command-line option as a source that errors point into.

text = OptionText("--grid", "M // K, 1")
raise text.error("unknown name 'K'", 5, 1)

--grid:1:6: error: unknown name 'K'
    M // K, 1
         ^
"""

from __future__ import annotations

import linecache
from dataclasses import dataclass

from deuteron.errors import Location, UsageError


@dataclass(frozen=True)
class OptionText:
    """What was given for an option; offsets count characters of `text` from 0."""

    option: str
    text: str

    def location(self, offset: int, length: int = 1) -> Location:
        """The place of some characters; registers the text with linecache, which prints the excerpt."""
        lines = self.text.splitlines(keepends=True) or [""]
        linecache.cache[self.option] = (len(self.text), None, lines, self.option)
        before = self.text[:offset]
        line = before.count("\n") + 1
        column = offset - (before.rfind("\n") + 1) + 1
        return Location(self.option, line, column, column + max(length, 1))

    def error(self, message: str, offset: int, length: int = 1) -> UsageError:
        return UsageError(message, self.location(offset, length))
