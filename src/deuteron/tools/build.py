"""`deuteron build`: builds the libraries that deuteron.toml declares.

deuteron build                  all of them, each into build/NAME
deuteron build norms --report   one, and what became of its kernels
deuteron build --check          fails where what is there is stale; writes nothing
"""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path

import click

from deuteron.errors import UsageError, suggest
from deuteron.tools.command import Command


@click.command("build", cls=Command)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--file", "-f", type=click.Path(path_type=Path), default=Path("deuteron.toml"), show_default=True)
@click.option("--out", "-o", type=click.Path(path_type=Path), help="The folder that has one for each; default: build.")
@click.option("--processes", "-j", type=click.IntRange(1), help="How many compile at a time; default: one a processor.")
@click.option("--check", is_flag=True, help="Write nothing, and fail where the sources that are there are stale.")
@click.option("--sources-only", is_flag=True, help="Leave objects and libraries away.")
@click.option(
    "--report", is_flag=False, flag_value="table", type=click.Choice(["table", "json"]), help="What became of each."
)
@click.option("--werror", help="Findings that are errors, with commas: spill, wgmma, shared.")
@click.option("--depfile", type=click.Path(path_type=Path), help="Write what was read, for Make, Ninja and CMake.")
def command(names, file, out, processes, check, sources_only, report, werror, depfile) -> None:
    """Build the libraries NAME of deuteron.toml, or all of them: C sources, headers, a manifest, and libraries.

    Only what is stale is compiled, by the content of the sources and of the modules that they import.
    """
    from deuteron.build import BuildOptions, build_library, read_project  # deferred: as all commands do
    from deuteron.build.report import CHECKS

    asked = frozenset(word.strip() for word in werror.split(",")) if werror else frozenset()
    if unknown := sorted(asked - set(CHECKS)):
        described = "; ".join(f"{name}: {meaning}" for name, meaning in CHECKS.items())
        raise UsageError(f"--werror does not know '{unknown[0]}'. There are {described}")
    libraries = _chosen(read_project(file), names, file)
    folder = out or file.parent / "build"
    rows, outputs, sources = [], [], {file}
    for library in libraries:
        with nullcontext() if check else _Progress(library.name) as progress:
            hooks = {} if progress is None else {"start": progress.start, "advance": progress.advance}
            options = BuildOptions(processes, check, not sources_only, asked, **hooks)
            built = build_library(library, folder / library.name, options)
        click.echo(f"{library.name}: {_said(built, folder / library.name)}", err=True)
        rows += built.rows
        outputs.append(folder / library.name / f"{library.name}.json")
        sources.update(library.root / name for name in built.sources)
    if depfile is not None:
        _write_depfile(depfile, outputs, sources)
    if report:
        _show(rows, report)


def _chosen(libraries, names, file):
    for name in names:
        if name not in libraries:
            known = f"{suggest(name, libraries)} It has {', '.join(libraries)}"
            raise UsageError(f"'{file}' declares no library '{name}'.{known}")
    return [libraries[name] for name in names or libraries]


def _said(built, folder: Path) -> str:
    if not built.changed:
        return "up to date"
    objects = "" if built.has_objects else " (sources only: no C compiler was asked for or found)"
    return f"compiled {built.compiled} of {len(built.manifest.entries)} kernels into '{folder}'{objects}"


def _write_depfile(path: Path, outputs: list[Path], sources: set[Path]) -> None:
    from deuteron.aot.output import depfile_text, write_files  # deferred: as all commands do

    absolute = sorted(source.resolve() for source in sources)
    write_files({path: depfile_text([output.resolve() for output in outputs], absolute)})


def _show(rows, how: str) -> None:
    from deuteron.build.report import as_fields, table_of  # deferred: as all commands do

    if how == "json":
        click.echo(json.dumps(as_fields(rows), indent=2))
        return
    from rich.console import Console  # deferred: for the start-up time of builds that show nothing

    Console(width=None if sys.stdout.isatty() else 160).print(table_of(rows))


class _Progress:
    """One bar for all that a build does, on a terminal; it is there once there is something to do."""

    def __init__(self, name: str):
        self.name, self.bar, self.task = name, None, None

    def __enter__(self) -> _Progress:
        return self

    def start(self, total: int) -> None:
        if not sys.stderr.isatty():
            return
        from rich.console import Console  # deferred: an up-to-date build shows no bar
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.fields[name]}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self.bar = Progress(*columns, TextColumn("{task.description}"), console=Console(stderr=True), transient=True)
        self.task = self.bar.add_task("", total=total, name=self.name)
        self.bar.start()

    def advance(self, what: str) -> None:
        if self.bar is not None:
            self.bar.update(self.task, advance=1, description=what)

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.stop()


if __name__ == "__main__":
    command()
