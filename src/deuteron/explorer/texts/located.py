"""A text as lines with the places that made them.

LocatedText(("  %a = tt.load ...", "}"), ((Location("k.py", 7, 9), Location("k.py", 20, 5)), ()))

The first place of a line is where the code is written, the next ones are the calls that led there, innermost first.
"""

from __future__ import annotations

from dataclasses import dataclass

from deuteron.errors import Location

Places = tuple[Location, ...]


@dataclass(frozen=True)
class LocatedText:
    """Lines, and for each the places in the source that made it, none where that is not known."""

    lines: tuple[str, ...]
    places: tuple[Places, ...]

    def __post_init__(self) -> None:
        assert len(self.lines) == len(self.places)
