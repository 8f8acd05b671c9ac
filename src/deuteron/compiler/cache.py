"""The cache of compiled kernels on disk: one file for each kernel, written whole or not at all.

    <cache dir>/3f/3fa91c....kernel

The first line is JSON: the key, the metadata, the name and length of every stage's text, and a seal of it all; then
come the texts. A file that is cut short, changed, of another version or of another key counts as absent and is written
again. Writers rename a finished file into place, so any number of processes can use one directory without a lock. A
directory that cannot be read, that cannot be written, or that others may write (`trusted_files.py`) is never an error.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deuteron.backend.metadata import KernelMetadata
from deuteron.errors import UsageError
from deuteron.trusted_files import is_usable, is_whole, keep, read, seal, touch

FORMAT = "deuteron-kernel-2"

# What a file that is no entry of this version may raise where it is read.
UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, UsageError)


@dataclass(frozen=True)
class Entry:
    """A compiled kernel as it is stored; the texts of the stages are in their order."""

    metadata: KernelMetadata
    texts: dict[str, str | bytes]


def load(directory: Path, key: str) -> Entry | None:
    """The entry of that key, or None where there is none that is whole and may be used."""
    path = _path(directory, key)
    if not is_usable(directory):
        return None
    try:
        entry = decode_file(key, read(path))
    except UNREADABLE:
        return None
    touch(path)
    return entry


def store(directory: Path, key: str, entry: Entry) -> bool:
    """Write an entry; False where the directory cannot be written, or is not used."""
    return is_usable(directory) and keep(directory, _path(directory, key), encode_file(key, entry))


def _path(directory: Path, key: str) -> Path:
    return directory / key[:2] / f"{key}.kernel"


def encode_file(key: str, entry: Entry, is_signed: bool | None = None) -> bytes:
    """The content of the file of an entry; signed in a shared cache where nothing is said."""
    header, parts = encode(key, entry, is_signed)
    return b"\n".join((json.dumps(header).encode(), b"".join(parts.values())))


def decode_file(key: str, content: bytes, is_signed: bool | None = None) -> Entry:
    """The entry in the content of a file; raises one of UNREADABLE where it is not whole, or is of another key."""
    line, _, body = content.partition(b"\n")
    return decode(key, json.loads(line), body, is_signed)


def encode(key: str, entry: Entry, is_signed: bool | None = None) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The header, and the texts of the stages as bytes."""
    parts = {name: text.encode() if isinstance(text, str) else text for name, text in entry.texts.items()}
    stages = [[name, len(part), isinstance(entry.texts[name], str)] for name, part in parts.items()]
    header = {"format": FORMAT, "key": key, "metadata": entry.metadata.to_json(), "stages": stages}
    return {**header, "seal": seal(*_sealed(header, b"".join(parts.values())), is_signed=is_signed).hex()}, parts


def decode(key: str, header: dict[str, Any], body: bytes, is_signed: bool | None = None) -> Entry:
    """The entry of a header and all texts; raises one of UNREADABLE where it is not whole, or is of another key."""
    found = bytes.fromhex(header.pop("seal"))
    is_sound = is_whole(found, *_sealed(header, body), is_signed=is_signed)
    if not is_sound or header["format"] != FORMAT or header["key"] != key:
        raise ValueError("not a whole entry of this version and key")
    texts, begin = {}, 0
    for name, length, is_text in header["stages"]:
        part = body[begin : begin + length]
        texts[name] = part.decode() if is_text else part
        begin += length
    return Entry(KernelMetadata.from_json(header["metadata"]), texts)


def _sealed(header: dict[str, Any], body: bytes) -> tuple[bytes, bytes]:
    return json.dumps(header, sort_keys=True).encode(), body
