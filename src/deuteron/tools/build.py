"""`deuteron build`: builds the libraries that deuteron.toml declares.

deuteron build                  all of them, each into build/NAME
deuteron build norms --report   one, and what became of its kernels
deuteron build --check          fails where what is there is stale; writes nothing
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deuteron.aot.output import depfile_text, write_files
from deuteron.aot.targets import select_target
from deuteron.aot.targets.cpu import cpu_of
from deuteron.errors import UsageError, counted, suggest
from deuteron.library import BuildOptions, Library, build_library, read_project, source_names
from deuteron.library.builder import Built
from deuteron.progress import ProgressBar
from deuteron.tools.command import Command, check_depfile

if TYPE_CHECKING:
    from deuteron.library.report import Row

_PATH = click.Path(path_type=Path)
_FORMATS = click.Choice(["table", "json"])


@click.command("build", cls=Command)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--file", "-f", type=_PATH, default=Path("deuteron.toml"), show_default=True, help="What declares them.")
@click.option("--out", "-o", type=_PATH, help="The folder that has one for each; default: build, beside the file.")
@click.option("--target", "-t", "targets", multiple=True, help="Compile for this in the place of what is declared.")
@click.option(
    "--architecture", help="Of the processor that the target cpu is for: x86_64, aarch64; default: this one's."
)
@click.option("--processes", "-j", type=click.IntRange(1), help="How many compile at a time; default: one a processor.")
@click.option("--executor", help="Where kernels are compiled: processes:4, or dask://HOST:PORT, a Dask cluster.")
@click.option("--check", is_flag=True, help="Write nothing, and fail where the sources that are there are stale.")
@click.option("--sources-only", is_flag=True, help="Leave objects and libraries away.")
@click.option("--list-sources", is_flag=True, help="Print the C files that a build makes, and make nothing.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing but what is wrong.")
@click.option("--report", is_flag=False, flag_value="table", type=_FORMATS, help="What became of each kernel.")
@click.option("--werror", default="", help="Findings that are errors, with commas: spill, wgmma, shared.")
@click.option("--depfile", type=_PATH, help="Write what was read, for Make, Ninja and CMake.")
@click.option("--depfile-target", type=_PATH, help="What the depfile says is made; default: the manifests.")
def command(**asked: Any) -> None:
    """Build the libraries NAME of deuteron.toml, or all of them: C sources, headers, a manifest, and libraries.

    Only what is stale is compiled, by the content of the sources and of the modules that they import.
    """
    request = _Request(**asked)
    check_depfile(request.depfile, request.depfile_target)
    libraries = _libraries(request)
    if request.list_sources:
        _list_sources(request, libraries)
        return
    werror = _checks(request.werror)
    if request.executor is not None:
        from deuteron.library.executors import executor_of  # deferred: brings the compiler

        executor_of(request.executor)  # refused though there is nothing to compile
    built = {library.name: _built(request, library, werror) for library in libraries}
    if request.depfile is not None:
        _write_depfile(request, request.depfile, libraries, built)
    if request.report:
        _show([row for one in built.values() for row in one.rows], request.report)


@dataclass(frozen=True)
class _Request:
    """What was asked for, by the names of the options."""

    names: tuple[str, ...]
    file: Path
    out: Path | None
    targets: tuple[str, ...]
    architecture: str | None
    processes: int | None
    executor: str | None
    check: bool
    sources_only: bool
    list_sources: bool
    quiet: bool
    report: str | None
    werror: str
    depfile: Path | None
    depfile_target: Path | None

    def folder(self, library: Library) -> Path:
        return (self.out or self.file.parent / "build") / library.name


def _libraries(request: _Request) -> list[Library]:
    """Those that were named, or all."""
    _check_targets(request.targets)
    declared = read_project(request.file)
    for name in request.names:
        if name not in declared:
            known = f"{suggest(name, declared)} It has {', '.join(declared)}"
            raise UsageError(f"'{request.file}' declares no library '{name}'.{known}")
    libraries = [declared[name] for name in request.names or declared]
    return [dataclasses.replace(one, targets=_targets(request, one)) for one in libraries]


def _check_targets(targets: Sequence[str]) -> None:
    """Those of the flag are no mistakes of the declaration, which has the place of its own."""
    for target in targets:
        try:
            select_target(target)
        except UsageError as error:
            raise UsageError(f"--target: {error.message}") from None


def _targets(request: _Request, library: Library) -> list[str]:
    """Those that were named, or declared; `cpu` is that of the architecture that was named."""
    targets = list(dict.fromkeys(request.targets)) or library.targets
    if request.architecture is None:
        return list(targets)
    ours = cpu_of(request.architecture) if "cpu" in targets else "cpu"
    return list(dict.fromkeys(ours if target == "cpu" else target for target in targets))


def _list_sources(request: _Request, libraries: list[Library]) -> None:
    for library in libraries:
        for name in source_names(library):
            click.echo(request.folder(library) / name)


def _checks(werror: str) -> frozenset[str]:
    if not werror:
        return frozenset()
    from deuteron.library.report import CHECKS  # deferred: builds that say nothing of their kernels do without

    asked = frozenset(word.strip() for word in werror.split(",") if word.strip())
    if unknown := sorted(asked - set(CHECKS)):
        described = "; ".join(f"{name}: {meaning}" for name, meaning in CHECKS.items())
        raise UsageError(f"--werror does not know '{unknown[0]}'. There are {described}")
    return asked


def _built(request: _Request, library: Library, werror: frozenset[str]) -> Built:
    folder = request.folder(library)
    with ProgressBar(library.name) as progress:
        options = BuildOptions(
            processes=request.processes,
            executor=request.executor,
            check=request.check,
            with_objects=not request.sources_only,
            werror=werror,
            start=progress.start,
            advance=progress.advance,
        )
        built = build_library(library, folder, options)
    if not request.quiet:
        click.echo(f"{library.name}: {_said(built, folder)}", err=True)
    return built


def _said(built: Built, folder: Path) -> str:
    if not built.changed:
        return "up to date"
    libraries = "" if built.has_objects else ", its sources only"
    return f"compiled {built.compiled} of {counted(len(built.manifest.entries), 'kernel')} into '{folder}'{libraries}"


def _write_depfile(request: _Request, path: Path, libraries: list[Library], built: dict[str, Built]) -> None:
    from deuteron.library.staleness import named  # deferred, as above

    sources = {named(request.file)}
    for library in libraries:
        names = (*built[library.name].sources, *library.declaring_files)
        sources.update(named(library.root / name) for name in names)
    outputs = [(request.folder(library) / f"{library.name}.json").resolve() for library in libraries]
    write_files({path: depfile_text([request.depfile_target or output for output in outputs], sorted(sources))})


def _show(rows: Collection[Row], how: str) -> None:
    from deuteron.library.report import as_fields, table_of  # deferred, as above

    if how == "json":
        click.echo(json.dumps(as_fields(rows), indent=2))
        return
    from rich.console import Console  # deferred: for the start-up time of builds that show nothing

    Console(width=None if sys.stdout.isatty() else 160).print(table_of(rows))


if __name__ == "__main__":
    command()
