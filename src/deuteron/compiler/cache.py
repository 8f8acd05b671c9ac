"""The cache of compiled kernels on disk: one file for each kernel, written whole or not at all.

    <cache dir>/3f/3fa91c....kernel

The first line is JSON: the metadata, the name and length of every stage's text, and a SHA-256 of it all; then come the
texts. A file that is cut short, changed or of another version counts as absent and is written again. Writers
rename a finished file into place, so any number of processes can use one directory without a lock. A directory that
cannot be read or written means that there is no cache; that is never an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deuteron.backend.metadata import KernelMetadata
from deuteron.compiler.eviction import touch
from deuteron.errors import UsageError

FORMAT = "deuteron-kernel-1"
_DIGEST_BYTES = 32


@dataclass(frozen=True)
class Entry:
    """A compiled kernel as it is stored; the texts of the stages are in their order."""

    metadata: KernelMetadata
    texts: dict[str, str | bytes]


def load(directory: Path, key: str) -> Entry | None:
    """The entry of that key, or None where there is none that is whole."""
    path = _path(directory, key)
    try:
        line, _, body = path.read_bytes().partition(b"\n")
        entry = decode(json.loads(line), body)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UsageError):
        return None
    touch(path)
    return entry


def store(directory: Path, key: str, entry: Entry) -> bool:
    """Write an entry; False where the directory cannot be written."""
    path = _path(directory, key)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        header, parts = encode(entry)
        _write_atomically(path, b"\n".join((json.dumps(header).encode(), b"".join(parts.values()))))
    except OSError:
        return False
    return True


def kept_code(directory: Path, key: str, make: Callable[[], bytes]) -> bytes:
    """Machine code that belongs to no kernel, after its SHA-256 in a file of its own; made where there is none."""
    path = directory / key[:2] / f"{key}.code"
    with contextlib.suppress(OSError):
        content = path.read_bytes()
        if hashlib.sha256(content[_DIGEST_BYTES:]).digest() == content[:_DIGEST_BYTES]:
            touch(path)
            return content[_DIGEST_BYTES:]
    code = make()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_atomically(path, hashlib.sha256(code).digest() + code)
    return code


def _path(directory: Path, key: str) -> Path:
    return directory / key[:2] / f"{key}.kernel"


def _write_atomically(path: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem[:16]}-")
    try:
        with open(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def encode(entry: Entry) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The header, and the texts of the stages as bytes."""
    parts = {name: text.encode() if isinstance(text, str) else text for name, text in entry.texts.items()}
    stages = [[name, len(part), isinstance(entry.texts[name], str)] for name, part in parts.items()]
    header = {"format": FORMAT, "metadata": entry.metadata.to_json(), "stages": stages}
    return {**header, "sha256": _digest(header, b"".join(parts.values()))}, parts


def decode(header: dict[str, Any], body: bytes) -> Entry:
    """The entry of a header and all texts; raises ValueError, KeyError ... where it is not whole."""
    if header.pop("sha256") != _digest(header, body) or header["format"] != FORMAT:
        raise ValueError("not a whole entry of this version")
    texts, begin = {}, 0
    for name, length, is_text in header["stages"]:
        part = body[begin : begin + length]
        texts[name] = part.decode() if is_text else part
        begin += length
    return Entry(KernelMetadata.from_json(header["metadata"]), texts)


def _digest(header: dict[str, Any], body: bytes) -> str:
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode() + body).hexdigest()
