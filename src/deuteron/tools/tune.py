"""`deuteron tune`: measures the kernels of a library; what was measured, by that and by autotuners.

deuteron tune norms --size n=1024,4096                     the library of deuteron.toml, on this machine's devices
deuteron tune show tuned                                   folders and files: each choice that they lead to
deuteron tune merge tuned/scale.json other/scale.json      the timings of both into the first
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from deuteron.errors import UsageError, not_written, suggest
from deuteron.runtime.autotuning.tuned_file import Choice, Outcome, Tuned, merge_into, read_tuned
from deuteron.settings import settings
from deuteron.tools.command import Command
from deuteron.tools.group import Group

_PATH = click.Path(path_type=Path)
_WIDTH = 160


class _Group(Group):
    """A word that is no command is the name of a library."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        is_library = args and args[0] not in self.commands and not args[0].startswith("-")
        return super().resolve_command(ctx, ["library", *args] if is_library else args)


@click.group("tune", cls=_Group)
def command() -> None:
    """Measure the kernels of the library NAME, or show and merge what was measured of configurations.

    `deuteron tune NAME` is `deuteron tune library NAME`.
    """


@command.command("library", cls=Command)
@click.argument("name")
@click.option("--file", "-f", type=_PATH, default=Path("deuteron.toml"), show_default=True, help="What declares it.")
@click.option("--size", "sizes", multiple=True, metavar="NAME=N,...", help="In the place of the declared sizes.")
@click.option("--again", is_flag=True, help="Measure what is known, too.")
def library(name: str, file: Path, sizes: tuple[str, ...], again: bool) -> None:
    """Measure the kernels of the library NAME that have a table `tune` in deuteron.toml, on this machine.

    The timings go into the files that `tuned` names, by which `deuteron build` lets functions choose.
    """
    from deuteron.library import read_project  # deferred: bring the compiler
    from deuteron.library.measure import MeasureOptions, measure_library

    declared = read_project(file)
    if name not in declared:
        raise UsageError(
            f"'{file}' declares no library '{name}'.{suggest(name, declared)} It has {', '.join(declared)}"
        )
    options = MeasureOptions(dict(map(_size, sizes)), again, on_wait=_say_that_it_waits)
    for measured in measure_library(declared[name], options):
        choice = measured.choice
        where = f"{measured.function} on {choice.device}, {_listed(choice.key)}"
        if choice.best is None:
            click.echo(f"{where}: none can be run: {next(iter(choice.outcomes.values())).failure}", err=True)
            continue
        best = f"{choice.outcomes[choice.best].time:.4g} ms: {_listed(json.loads(choice.best))}"
        click.echo(f"{where}: {measured.num_new} of {len(choice.outcomes)} measured, best {best}", err=True)


def _say_that_it_waits() -> None:
    click.echo("waiting for another process, which measures on the same device", err=True)


def _size(text: str) -> tuple[str, list[int]]:
    name, _, values = text.partition("=")
    numbers = values.split(",")
    if not name or not all(number.strip().isdigit() for number in numbers):
        raise UsageError(f"--size {text}: expected a name and whole numbers, such as n=1024,4096")
    return name.strip(), [int(number) for number in numbers]


@command.command("show", cls=Command)
@click.argument("paths", nargs=-1, type=_PATH)
@click.option("--all", "is_all", is_flag=True, help="Every timing, not the fastest only.")
@click.option("--json", "is_json", is_flag=True, help="The content of all files, as one list.")
def show(paths: tuple[Path, ...], is_all: bool, is_json: bool) -> None:
    """Show the timings in PATHS, files or folders; default: DEUTERON_TUNED_DIR, or else the cache folder."""
    files = list(_files(paths or (settings.tuned_dir or settings.cache_dir / "autotune",)))
    if not files:
        raise UsageError(f"there are no timings in {', '.join(map(str, paths)) or 'the cache folder'}")
    found = [read_tuned(file) for file in files]
    if is_json:
        click.echo(json.dumps([json.loads(tuned.to_json()) for tuned in found], indent=2))
        return
    _print_tables(found, is_all)


@command.command("merge", cls=Command)
@click.argument("into", type=_PATH)
@click.argument("paths", nargs=-1, required=True, type=_PATH)
def merge(into: Path, paths: tuple[Path, ...]) -> None:
    """Merge the timings in PATHS, files of the same kernel, into the file INTO; the later ones hold."""
    read = [(path, read_tuned(path)) for path in paths]
    kernel = read_tuned(into).kernel if into.exists() else read[0][1].kernel
    for path, tuned in read:
        if tuned.kernel != kernel:
            raise UsageError(f"'{path}' is of kernel {tuned.kernel}, and '{into}' of {kernel}")
    try:
        merged = merge_into(into, kernel, [choice for _, tuned in read for choice in tuned.choices])
    except OSError as error:
        raise not_written(into, error) from None
    number = len(merged.choices)
    click.echo(f"{into}: {number} choice{'s' * (number != 1)} of {kernel}", err=True)


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.glob("*.json")) if path.is_dir() else [path]


def _print_tables(found: Sequence[Tuned], is_all: bool) -> None:
    from rich import box  # deferred: for the start-up time of other commands
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    for tuned in found:
        table = Table(title=Text(tuned.kernel, "bold"), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for column in ("key", "types", "device", "configuration", "ms", ""):
            table.add_column(column, justify="right" if column == "ms" else "left", overflow="fold")
        for choice in tuned.choices:
            for row in _rows(choice, is_all):
                table.add_row(*map(Text, row))
        console.print(table)


def _rows(choice: Choice, is_all: bool) -> Iterator[tuple[str, ...]]:
    """The cells of a choice: a row for the fastest configuration, or one for each."""
    about = (_listed(choice.key), _listed(choice.types), choice.device)
    ordered = sorted(choice.outcomes, key=lambda text: choice.outcomes[text].time)
    for text in ordered if is_all else ordered[:1]:
        outcome = choice.outcomes[text]
        notes = _note(outcome) if is_all else _summary(choice, ordered)
        yield (*about, _listed(json.loads(text)), f"{outcome.time:.4g}" if outcome.ms is not None else "", notes)
        about = ("", "", "")


def _listed(values: Any) -> str:
    return ", ".join(f"{name}: {value}" for name, value in values.items())


def _note(outcome: Outcome) -> str:
    return "stopped early" if outcome.is_stopped else outcome.failure or ""


def _summary(choice: Choice, ordered: Sequence[str]) -> str:
    """How far the next one is, and how many there are."""
    timed = [choice.outcomes[text].time for text in ordered if choice.outcomes[text].ms is not None]
    failed = len(ordered) - len(timed)
    next_best = f"the next of {len(timed)}: {timed[1] / timed[0]:.2f} times" if len(timed) > 1 and timed[0] else ""
    return ", ".join(part for part in (next_best, f"{failed} failed" if failed else "") if part)


if __name__ == "__main__":
    command()
