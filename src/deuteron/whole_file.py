"""Writes a file whole or not at all: what was there stays until all of the new content is.

    with whole_file(Path("page.html")) as path:
        path.write_text(text)                   beside it; takes its place where nothing is raised

A link stays one to the file that is written. What is no file, such as /dev/stdout, is written to as it is.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_LONGEST_STEM = 40  # of the name beside it, which is to be no longer than names may be


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Where to write what becomes `path` unless an exception is raised."""
    if path.exists() and not path.is_file():
        yield path
        return
    path = path.resolve()
    beside = path.with_name(f".{path.stem[:_LONGEST_STEM]}-{os.urandom(8).hex()}")
    try:
        yield beside
        os.replace(beside, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            beside.unlink()
