"""Writes the files of one command together, or none of them.

    write_files({Path("aot/add.c"): "...", Path("aot/add.h"): "..."})

Every text is first written beside its file; only when all have been are they renamed, which cannot fail halfway for
want of space or permission. Folders are made as needed. What cannot be written is a UsageError, and nothing is left.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from deuteron.errors import UsageError


def write_files(texts: Mapping[Path, str]) -> None:
    """Write all files; earlier ones of these names stay as they are unless all can be written."""
    temporary = {path: path.with_name(f".{path.name}.{os.getpid()}.tmp") for path in texts}
    try:
        for path, text in texts.items():
            _write(path, temporary[path], text)
        for path in texts:
            os.replace(temporary[path], path)
    finally:
        for path in temporary.values():
            with contextlib.suppress(OSError):
                path.unlink()


def _write(path: Path, temporary: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(None, "it is a folder")
        temporary.write_text(text)
    except OSError as error:
        raise UsageError(f"cannot write '{path}': {error.strerror or error}") from None
