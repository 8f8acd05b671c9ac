"""The compile report of a kernel: what became of it, as data and as text.

    report = kernel.report()
    report.resources.registers           data: frozen dataclasses, one field for each topic
    report.to_dict()                     the same as what JSON can hold
    print(report)                        tables as plain text
    rich.print(report)                   the same in colour

A backend has its own kind of report, which says what its tables are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import PurePath
from typing import Any

from deuteron.errors import Location

PLAIN_WIDTH = 160


@dataclass(frozen=True)
class ReportTable:
    """Rows of text under a title; `is_warning` where it lists what should not be."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_warning: bool = False


@dataclass(frozen=True)
class OldSpelling:
    """What a line says as older versions of Triton did, and what it is called now."""

    place: Location | None
    said: str


@dataclass(frozen=True)
class Report:
    """Which kernel it is about, and what every target says of it."""

    kernel: str
    target: str
    old_spellings: tuple[OldSpelling, ...] = field(default=(), kw_only=True)

    def tables(self) -> list[ReportTable]:
        """What the text consists of."""
        raise NotImplementedError

    def _old_spellings(self) -> ReportTable:
        rows = tuple((place_text(spelling.place), spelling.said) for spelling in self.old_spellings)
        return ReportTable("Older spellings", ("line", ""), rows)

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        from rich.console import Console  # deferred: a launch does not need it

        stream = StringIO()
        Console(file=stream, width=PLAIN_WIDTH, color_system=None, highlight=False).print(self)
        return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        yield f"[bold]{self.kernel}[/] for {self.target}"
        for table in (*self.tables(), self._old_spellings()):
            if table.rows:
                yield from _rendered(table)


def _rendered(table: ReportTable) -> Iterator[Any]:
    from rich import box  # deferred: only what is shown needs it
    from rich.table import Table
    from rich.text import Text

    yield ""
    yield Text(table.title, "bold yellow" if table.is_warning else "bold")
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_header=any(table.columns), show_edge=False)
    for column in table.columns:
        drawn.add_column(column, overflow="fold")
    for row in table.rows:
        drawn.add_row(*map(Text, row))
    yield drawn


def place_text(place: Location | None) -> str:
    """`kernels.py:84`, or a dash where no line is known."""
    return f"{PurePath(place.file).name}:{place.line}" if place else "-"


def line_of(place: Location | None) -> Location | None:
    """The whole line that a place is in, so that places in it are equal."""
    return Location(place.file, place.line) if place else None


def listed(values: Sequence[object]) -> str:
    return ", ".join(map(str, values))
