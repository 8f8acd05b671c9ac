"""Keeps the cache on disk within DEUTERON_CACHE_SIZE: the entries that were used longest ago go first.

    evict(settings.cache_dir, limit=2 << 30)

An entry was used when its file was last modified: loading one touches it. Files are only removed whole, and who has one
open keeps what it reads, so that any number of processes can do this at once: a file that is gone is not missed. Once
there is too much, a fifth of the limit is made free, for it takes a look at all files to know. What a process left
unfinished goes after a day.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

KEPT_SHARE = 0.8
UNFINISHED_SECONDS = 24 * 3600
STORES_BETWEEN = 32

_num_stored = itertools.count()


class _File(NamedTuple):
    """Sorted, the one that was used longest ago is the first."""

    used: float
    size: int
    path: str


def touch(path: Path) -> None:
    """Say that an entry is in use."""
    with contextlib.suppress(OSError):
        os.utime(path)


def evict_now_and_then(directory: Path, limit: int) -> None:
    """Evict when a process stores its first entry, and every so often after it; a limit of 0 is none."""
    if limit and next(_num_stored) % STORES_BETWEEN == 0:
        evict(directory, limit)


def evict(directory: Path, limit: int) -> None:
    """Remove entries until the rest is well below the limit, if they are above it. The newest one stays."""
    try:
        files = sorted(_files(directory))
    except OSError:
        return
    total = sum(file.size for file in files)
    if total <= limit:
        return
    for file in files[:-1]:
        _remove(file)
        total -= file.size
        if total <= KEPT_SHARE * limit:
            return


def _files(directory: Path) -> Iterator[_File]:
    """The entries; what others left unfinished long ago is removed."""
    for folder in os.scandir(directory):
        if len(folder.name) != 2 or not folder.is_dir():
            continue
        for file in os.scandir(folder):
            with contextlib.suppress(OSError):
                status = file.stat()
                if file.name.endswith(".kernel"):
                    yield _File(status.st_mtime, status.st_size, file.path)
                elif file.name.startswith(".") and status.st_mtime < time.time() - UNFINISHED_SECONDS:
                    os.unlink(file.path)


def _remove(file: _File) -> None:
    """Remove an entry, unless it was used since."""
    with contextlib.suppress(OSError):
        if os.stat(file.path).st_mtime <= file.used:
            os.unlink(file.path)
