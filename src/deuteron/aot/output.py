"""Writes the files of one command together, or none of them.

    write_files({Path("aot/add.c"): "...", Path("aot/add.h"): "..."})      the paths of those that have changed
    depfile_text([Path("aot/add.c")], [Path("add.py")])                     a rule for Make

Every text is first written beside its file (whole_file.py); only when all have been are they renamed, which cannot fail
halfway for want of space or permission. A file that already has its text is left alone, with its time, so that build
tools see nothing new. Folders are made as needed. What cannot be written is a UsageError, and nothing is left.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from deuteron.errors import UsageError, not_written
from deuteron.whole_file import whole_file


def write_files(contents: Mapping[Path, str | bytes]) -> list[Path]:
    """Write all files and return those that have changed; earlier ones stay as they are unless all can be written."""
    changed = [path for path, content in contents.items() if not _has(path, content)]
    for path in changed:
        if path.is_dir():
            raise UsageError(f"cannot write '{path}': it is a folder")
    with contextlib.ExitStack() as written:
        for path in changed:
            _write(path, contents[path], written)
    return changed


def depfile_text(outputs: Iterable[Path], dependencies: Iterable[Path]) -> str:
    """A rule of Make that says what the outputs were made from, as Ninja and CMake read it too; and one of nothing for
    each dependency, so that what is there no more is a change and no mistake, as of `gcc -MP`.
    """
    names = [_escaped(path) for path in dependencies]
    lines = [" ".join(_escaped(path) for path in outputs) + ":", *(f"  {name}" for name in names)]
    return " \\\n".join(lines) + "\n" + "".join(f"{name}:\n" for name in names)


def _escaped(path: Path) -> str:
    return str(path).replace("$", "$$").replace("#", "\\#").replace(" ", "\\ ")


def _bytes(content: str | bytes) -> bytes:
    """What is written: of the name of a file, which may be no UTF-8, the bytes that it has."""
    return content.encode(errors="surrogateescape") if isinstance(content, str) else content


def _has(path: Path, content: str | bytes) -> bool:
    try:
        return path.is_file() and path.read_bytes() == _bytes(content)
    except OSError:
        return False


def _write(path: Path, content: str | bytes, written: contextlib.ExitStack) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        written.enter_context(whole_file(path)).write_bytes(_bytes(content))
    except OSError as error:
        raise not_written(path, error) from None
