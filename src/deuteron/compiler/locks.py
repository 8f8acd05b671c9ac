"""A lock that processes share: on a folder, which is there anyway, so that no file is left behind.

    with locked(Path("build")):
        ...                         no other process is in here for the same folder

It ends with the process that has it, however that ends. Systems without such locks have none.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


@contextlib.contextmanager
def locked(folder: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """With no other process in here for the same folder, which is made; raises OSError where that cannot be.

    `on_wait` is called where another one is in here, before this one waits for it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        _lock(handle, on_wait)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, on_wait: Callable[[], None]) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        on_wait()
        fcntl.flock(handle, fcntl.LOCK_EX)
