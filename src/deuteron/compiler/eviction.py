"""Keeps the cache on disk within DEUTERON_CACHE_SIZE: the entries that were used longest ago go first.

    evict(settings.cache_dir, limit=2 << 30)

An entry was used when its file, or in a folder the one that describes it, was last modified: loading one touches it.
Entries are only removed whole, and who has a file open keeps what it reads, so that any number of processes can do this
at once: one that is gone is not missed. Once there is too much, a fifth of the limit is made free, for it takes a look
at all files to know. What a process left unfinished goes after a day.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

KEPT_SHARE = 0.8
UNFINISHED_SECONDS = 24 * 3600
STORES_BETWEEN = 32
ENTRY_OF_FOLDER = "kernel.deuteron"
_FOLDER_NAME = re.compile("[A-Z2-7]{52}")

_num_stored = itertools.count()


class StoredFile(NamedTuple):
    """An entry; sorted, the one that was used longest ago is the first."""

    used: float
    size: int
    path: str


def evict_now_and_then(directory: Path, limit: int) -> None:
    """Evict when a process stores its first entry, and every so often after it; a limit of 0 is none."""
    if limit and next(_num_stored) % STORES_BETWEEN == 0:
        evict(directory, limit)


def evict(directory: Path, limit: int) -> None:
    """Remove entries until the rest is well below the limit, if they are above it. The newest one stays."""
    try:
        files = sorted(stored_files(directory))
    except OSError:
        return
    total = sum(file.size for file in files)
    if total <= limit:
        return
    for file in files[:-1]:
        remove(file)
        total -= file.size
        if total <= KEPT_SHARE * limit:
            return


def stored_files(directory: Path) -> Iterator[StoredFile]:
    """The entries; what others left unfinished long ago is removed."""
    for folder in os.scandir(directory):
        if not folder.is_dir(follow_symlinks=False):
            continue
        if len(folder.name) == 2:
            yield from _files_of(folder)
        elif _FOLDER_NAME.fullmatch(folder.name):
            yield from _whole(folder)
        elif folder.name.startswith(".folder-"):
            with contextlib.suppress(OSError):
                if _is_old(folder.stat()):
                    remove_folder(folder.path)


def _files_of(folder: os.DirEntry) -> Iterator[StoredFile]:
    for file in os.scandir(folder):
        with contextlib.suppress(OSError):
            status = file.stat()
            if file.name.endswith((".kernel", ".code")):
                yield StoredFile(status.st_mtime, status.st_size, file.path)
            elif file.name.startswith(".") and _is_old(status):
                os.unlink(file.path)


def _whole(folder: os.DirEntry) -> Iterator[StoredFile]:
    """The entry that is a folder, under the path of its description; other programs have folders of such names, too."""
    path = os.path.join(folder.path, ENTRY_OF_FOLDER)
    with contextlib.suppress(OSError):
        size = sum(file.stat().st_size for file in os.scandir(folder))
        yield StoredFile(os.stat(path).st_mtime, size, path)


def _is_old(status: os.stat_result) -> bool:
    return status.st_mtime < time.time() - UNFINISHED_SECONDS


def remove(file: StoredFile) -> None:
    """Remove an entry, unless it was used since."""
    with contextlib.suppress(OSError):
        if os.stat(file.path).st_mtime > file.used:
            return
        os.unlink(file.path)
        if os.path.basename(file.path) == ENTRY_OF_FOLDER:
            remove_folder(os.path.dirname(file.path))


def remove_folder(path: str | Path) -> None:
    """Remove a folder with all that is in it; what cannot be removed stays."""
    import shutil  # deferred: brings compression

    shutil.rmtree(path, ignore_errors=True)
