"""`deuteron cache`: the compiled kernels on disk.

    deuteron cache ls                            what is there
    deuteron cache size                          how much, and how much there may be
    deuteron cache clear --unused 30             what was not used for 30 days; without it, everything
    deuteron cache export kernels.tar.gz --kernel add --target cuda:90
    deuteron cache import kernels.tar.gz         on a machine with the same versions

The folder is DEUTERON_CACHE_DIR. What autotuners measured is no kernel, and stays.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from deuteron.compiler.cache_contents import Stored, contents, export_entries, import_entries
from deuteron.compiler.eviction import StoredFile, remove
from deuteron.errors import UsageError, counted, suggest
from deuteron.settings import settings
from deuteron.tools.command import Command
from deuteron.tools.group import Group

_DAY = 24 * 3600
_UNITS = ("B", "KB", "MB", "GB")


@click.group("cache", cls=Group)
def command() -> None:
    """List, measure, clear, export and import the compiled kernels on disk."""


def _filtered(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that say which kernels are meant."""
    function = click.option("--target", help="Those for this target, such as cuda:90.")(function)
    return click.option("--kernel", help="Those of this name.")(function)


def _chosen(kernel: str | None, target: str | None) -> list[Stored]:
    named = [stored for stored in _all() if kernel in (None, stored.name)]
    return [stored for stored in named if target in (None, stored.target)]


def _all() -> list[Stored]:
    folders = dict.fromkeys((settings.cache_dir, settings.triton_cache_dir))
    return [stored for folder in folders for stored in contents(folder)]


@command.command("ls", cls=Command)
@_filtered
@click.option("--json", "as_json", is_flag=True, help="As JSON, one object for each entry.")
def ls(kernel: str | None, target: str | None, as_json: bool) -> None:
    """List the entries, the one that was used last first; "-" is code that belongs to no kernel."""
    chosen = _chosen(kernel, target)
    if as_json:
        rows = [{**stored._asdict(), "path": str(stored.path)} for stored in chosen]
        click.echo(json.dumps(rows, indent=1))
        return
    rows = [("key", "kernel", "target", "size", "used")]
    rows += [(each.key[:12], each.name, each.target, _size(each.size), _when(each.used)) for each in chosen]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def _size(num_bytes: float) -> str:
    unit = 0
    while num_bytes >= 1024 and unit < len(_UNITS) - 1:
        num_bytes, unit = num_bytes / 1024, unit + 1
    return f"{num_bytes:.0f} {_UNITS[unit]}" if unit < 2 else f"{num_bytes:.1f} {_UNITS[unit]}"


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


@command.command("size", cls=Command)
def size() -> None:
    """Print how many entries there are, how large they are, and how large they may be."""
    found = _all()
    limit = settings.cache_size
    most = f"at most {_size(limit)}" if limit else "any number"
    total = _size(sum(stored.size for stored in found))
    click.echo(f"{counted(len(found), 'entry')}, {total}, {most}, in {settings.cache_dir}")


@command.command("clear", cls=Command)
@_filtered
@click.option("--unused", type=click.FloatRange(min=0), help="Those that were not used for so many days.")
def clear(kernel: str | None, target: str | None, unused: float | None) -> None:
    """Remove entries: all, or those that the options say. Programs that run them go on."""
    before = time.time() - (unused or 0) * _DAY
    chosen = [stored for stored in _chosen(kernel, target) if unused is None or stored.used < before]
    for stored in chosen:
        remove(StoredFile(stored.used, stored.size, str(stored.path)))
    click.echo(f"removed {counted(len(chosen), 'entry')}, {_size(sum(stored.size for stored in chosen))}")


@command.command("export", cls=Command)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@_filtered
def export(file: Path, kernel: str | None, target: str | None) -> None:
    """Write the kernels into FILE, an archive (.tar.gz), for `deuteron cache import`."""
    chosen = [stored for stored in _chosen(kernel, target) if stored.is_kernel]
    if not chosen:
        raise UsageError(_nothing_to_export(kernel, target))
    try:
        num_written = export_entries(chosen, file)
    except OSError as error:
        raise UsageError(f"'{file}' cannot be written: {error.strerror or error}") from error
    click.echo(f"exported {counted(num_written, 'kernel')}, {_size(file.stat().st_size)}")


def _nothing_to_export(kernel: str | None, target: str | None) -> str:
    which = f" '{kernel}'" if kernel else ""
    of_target = f" for {target}" if target else ""
    names = {stored.name for stored in _all() if stored.is_kernel}
    advice = suggest(kernel, names) if kernel and kernel not in names else ""
    return f"there is no kernel{which}{of_target} in the cache, {settings.cache_dir}.{advice}"


@command.command("import", cls=Command)
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def import_(file: Path) -> None:
    """Take the kernels of FILE into the cache. It holds machine code: import what comes from people you trust."""
    num_taken, num_refused = import_entries(settings.cache_dir, file)
    refused = f"; {num_refused} are damaged, of another version or not signed with this key" if num_refused else ""
    click.echo(f"imported {counted(num_taken, 'kernel')}{refused}")


if __name__ == "__main__":
    command()
