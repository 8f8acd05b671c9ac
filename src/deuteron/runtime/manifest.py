"""A manifest: what runs have compiled, from which `deuteron warmup` compiles it before another run launches it.

    DEUTERON_RECORD=manifest.json python program.py

    {"kernel": "norm", "module": "ops.norms", "file": "ops/norms.py", "target": "cuda:90", "asked": ...}

A line for each kernel and the arguments that it was specialised for. Lines are only ever added, each once, and each
with one write: several processes may record into one file, one that is killed leaves whole lines (but for its last),
and manifests are merged by writing one behind the other. Files in the manifest's folder are relative to it.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from deuteron.errors import UsageError, not_read
from deuteron.json_fields import read_json
from deuteron.language.functions.names import is_main, name_of
from deuteron.once import ForkLock
from deuteron.options import Target
from deuteron.runtime.preload import written
from deuteron.runtime.specialise import Token


@dataclass(frozen=True)
class Wanted:
    """A kernel, where it is defined, and what it was compiled for; `is_main`: `file` was run, not imported."""

    kernel: str
    module: str
    file: str
    is_main: bool
    target: str
    asked: dict[str, Any] = field(hash=False)

    def __str__(self) -> str:
        return f"{self.kernel} of {self.file if self.is_main else self.module} for {self.target}"


class _Recorder:
    """Adds to manifests; a line that one has already is not added again."""

    def __init__(self) -> None:
        self._known: dict[Path, set[str]] = {}
        self._lock = ForkLock()

    def add(self, path: Path, line: str) -> None:
        with self._lock.here():
            known = self._known.get(path)
            if known is None:
                known = self._known[path] = _begin(path)
            if line not in known:
                known.add(line)
                _append(path, f"{line}\n")


def _begin(path: Path) -> set[str]:
    """The lines that are there. What a killed process left of its last one is ended."""
    try:
        content = path.read_text()
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return set()
    if content and not content.endswith("\n"):
        _append(path, "\n")
    return set(content.splitlines())


def _append(path: Path, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


_recorder = _Recorder()
_warned: set[str] = set()


def record(path: Path, fn: Any, tokens: Sequence[Token], options: dict[str, Any], target: Target) -> None:
    """Add what a kernel is compiled for. Where that is not possible a warning says why, once for each reason."""
    asked = written(tokens, options)
    if asked is None:
        _warn(f"{fn.__qualname__} was compiled for a constexpr of which there is no text: it is not in '{path}'")
        return
    file = Path(fn.fn.__code__.co_filename)
    if not file.is_file():
        _warn(f"{fn.__qualname__} is defined in {file}, which is no file: it is not in '{path}'")
        return
    module = fn.fn.__module__
    main = sys.modules.get(module)
    is_run = is_main(module) and getattr(main, "__spec__", None) is None
    wanted = Wanted(fn.__qualname__, name_of(module), _relative(file, path), is_run, str(target), asked)
    try:
        _recorder.add(path, json.dumps(asdict(wanted), sort_keys=True))
    except OSError as error:
        _warn(f"DEUTERON_RECORD='{path}' cannot be written: {error.strerror or error}")


def _relative(file: Path, manifest: Path) -> str:
    file, folder = file.resolve(), manifest.resolve().parent
    return file.relative_to(folder).as_posix() if file.is_relative_to(folder) else str(file)


def _warn(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        warnings.warn(f"Deuteron: {text}", RuntimeWarning, stacklevel=3)


def read_manifest(path: Path) -> list[Wanted]:
    """What a manifest lists, each once, with absolute files; half lines are left out. Raises UsageError."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise not_read(f"'{path}'", error) from error
    found = list(_read_lines(dict.fromkeys(lines), path.resolve().parent))
    if not found and any(lines):
        raise UsageError(f"'{path}' is no manifest, such as DEUTERON_RECORD={path.name} has a program write")
    return found


def _read_lines(lines: Iterator[str], folder: Path) -> Iterator[Wanted]:
    for line in lines:
        try:
            fields = read_json(line)
            yield Wanted(**{**fields, "file": str(folder / fields["file"])})
        except (ValueError, TypeError, KeyError):
            continue
