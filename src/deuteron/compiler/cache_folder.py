"""A compiled kernel in the cache as a folder of files, for programs that read Triton's cache.

    <Triton's cache dir>/<key in base 32>/add.ttir  add.llir ... add.cubin      a file for each stage
                                          add.json                              what Triton's programs look up
                                          __grp__add.json                       which files there are
                                          kernel.deuteron                       what `load` checks the others by

Torch launches the cubin without Python, takes all files of a folder with it into its own cache, and puts them back on
another machine: `load` finds the kernel there. A folder is written aside and renamed, so it is whole or not at all.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import tempfile
from pathlib import Path

from deuteron.backend.metadata import KernelMetadata
from deuteron.compiler.cache import Entry, decode, encode
from deuteron.compiler.eviction import ENTRY_OF_FOLDER, touch
from deuteron.errors import UsageError

GROUP = "__grp__"


def base32(key: str) -> str:
    """A hexadecimal key in a shorter text, for names of folders."""
    return base64.b32encode(bytes.fromhex(key)).decode().rstrip("=")


def load(directory: Path, key: str) -> Entry | None:
    """The entry in the folder of that key, or None where there is none that is whole."""
    folder = directory / base32(key)
    try:
        header = json.loads((folder / ENTRY_OF_FOLDER).read_bytes())
        name = header.pop("file")
        body = b"".join((folder / f"{name}.{stage}").read_bytes() for stage, *_ in header["stages"])
        entry = decode(header, body)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UsageError):
        return None
    touch(folder / ENTRY_OF_FOLDER)
    return entry


def store(directory: Path, key: str, entry: Entry, name: str) -> bool:
    """Write the folder, with files called `name`; False where the directory cannot be written."""
    folder = directory / base32(key)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        written = Path(tempfile.mkdtemp(dir=directory, prefix=".folder-"))
    except OSError:
        return False
    try:
        _write(written, folder, key, entry, name)
        if folder.exists() and load(directory, key) is None:
            shutil.rmtree(folder, ignore_errors=True)
        os.rename(written, folder)
    except OSError:  # another process may have written it meanwhile
        shutil.rmtree(written, ignore_errors=True)
    return folder.exists()


def _write(written: Path, folder: Path, key: str, entry: Entry, name: str) -> None:
    """The files of an entry; `folder` is where they are to be."""
    header, parts = encode(entry)
    files = {f"{name}.{stage}": part for stage, part in parts.items()}
    files[f"{name}.json"] = json.dumps(_description(key, entry.metadata), sort_keys=True).encode()
    paths = {file: str(folder / file) for file in files}
    files[f"{GROUP}{name}.json"] = json.dumps({"child_paths": paths}).encode()
    files[ENTRY_OF_FOLDER] = json.dumps({**header, "file": name}).encode()
    for file, content in files.items():
        (written / file).write_bytes(content)
    with contextlib.suppress(OSError):
        written.chmod(0o755)  # of a temporary folder it is less


def _description(key: str, metadata: KernelMetadata) -> dict[str, object]:
    """What Triton's programs read: its names for options and facts, without levels."""
    described = json.loads(metadata.to_json())
    return {**described.pop("options"), **described, "hash": key, "cluster_dims": metadata.cluster_dims}
