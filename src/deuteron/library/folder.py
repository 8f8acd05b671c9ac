"""A folder of output that changes as a whole: after a failure, or a process that was killed, it is what it was.

    with replaced_folder(Path("build/norms"), owned={"norms.c", ...}) as staging:
        ...                                   write into the staging folder what the folder is to have

A file that would have the same content keeps its time: it is linked from the old folder. Files in the folder that are
not `owned`, that somebody else has put there, stay. The exchange is one call of the system (renameat2) on Linux;
elsewhere two renames, which the next build completes if they were interrupted.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import sys
from collections.abc import Container, Iterator
from pathlib import Path

from deuteron.errors import not_written

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@contextlib.contextmanager
def replaced_folder(folder: Path, owned: Container[str]) -> Iterator[Path]:
    """A staging folder whose content becomes that of `folder` unless an exception is raised."""
    staging = folder.with_name(f".{folder.name}.new")
    recover(folder)
    try:
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(parents=True)
        yield staging
        _link_others(folder, staging, owned)
        _keep_times(folder, staging)
        _exchange(staging, folder)
    except OSError as error:
        raise not_written(folder, error) from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def recover(folder: Path) -> None:
    """Complete an exchange that was interrupted between its two renames."""
    old = _old(folder)
    if old.is_dir():
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.replace(old, folder)


def _files(folder: Path) -> Iterator[Path]:
    return (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def _link_others(folder: Path, staging: Path, owned: Container[str]) -> None:
    for name in _files(folder):
        if name.as_posix() not in owned and not (staging / name).exists():
            (staging / name).parent.mkdir(parents=True, exist_ok=True)
            _link(folder / name, staging / name)


def _keep_times(folder: Path, staging: Path) -> None:
    """Replace what has not changed by the old file itself."""
    for name in list(_files(staging)):
        old, new = folder / name, staging / name
        if old.is_file() and not old.samefile(new) and old.read_bytes() == new.read_bytes():
            new.unlink()
            _link(old, new)


def _link(old: Path, new: Path) -> None:
    try:
        os.link(old, new)
    except OSError:  # a file system without links
        shutil.copy2(old, new)


def _exchange(staging: Path, folder: Path) -> None:
    if not folder.exists():
        os.rename(staging, folder)
    elif not _exchanged(staging, folder):
        os.rename(folder, _old(folder))
        os.rename(staging, folder)
        shutil.rmtree(_old(folder), ignore_errors=True)


def _exchanged(first: Path, second: Path) -> bool:
    """Whether the system has a call that exchanges two names, and it has done so."""
    if not sys.platform.startswith("linux"):
        return False
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    names = (os.fsencode(first), os.fsencode(second))
    return rename is not None and rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0


def _old(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")
