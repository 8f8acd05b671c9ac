"""What is known of a compiled kernel, as data: the schema of `--json`, which the page is drawn from.

    exploration.stages[0].lines[7]            '    %rows = arith.addi %17, %16 : tensor<128xi32>'
    exploration.stages[0].at[7]               (4,): what made it is exploration.places[4]
    exploration.places[4]                     (0, 30, 12): exploration.files[0], line 30, column 12
    exploration.to_dict()                     the same as what JSON can hold, with a `format` and a `version`

Lines and columns of source files count from 1, as editors do; lines of texts from 0, as lists do. A field is added
under the same version; the version changes where one gets another meaning.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

FORMAT, VERSION = "deuteron-explorer", 1

Place = tuple[int, int, int]  # file, line, column


@dataclass(frozen=True)
class Part:
    """Lines of a source file, from `first` on."""

    first: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class File:
    """A source file: the functions in it that the kernel is made of; no parts where it cannot be read."""

    path: str
    name: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Text:
    """The text of a stage. `at` has for each line the places that made it: where it is written, then the calls."""

    name: str
    language: str
    lines: tuple[str, ...]
    at: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class PassResult:
    """The IR after a pass: the first of a stage, before any, has no name. One that changed nothing has no lines.

    `edits` are its differences to the IR before: (first and end line there, first and end line here). Numbers of
    values, which change with every op that comes or goes, count as equal.
    """

    stage: str
    name: str
    is_changed: bool
    lines: tuple[str, ...]
    at: tuple[tuple[int, ...], ...]
    edits: tuple[tuple[int, int, int, int], ...]


@dataclass(frozen=True)
class Table:
    """A table of the compile report."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_warning: bool


@dataclass(frozen=True)
class Parameter:
    """An argument of the kernel: its type, and what it is promised to be divisible by."""

    name: str
    type: str
    divisibility: int


@dataclass(frozen=True)
class Exploration:
    """All that is known of one compiled kernel."""

    deuteron: str
    kernel: str
    target: str
    options: dict[str, Any]
    parameters: tuple[Parameter, ...]
    constants: dict[str, str]
    files: tuple[File, ...]
    places: tuple[Place, ...]
    stages: tuple[Text, ...]
    passes: tuple[PassResult, ...]
    report: tuple[Table, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"format": FORMAT, "version": VERSION, **asdict(self)}
