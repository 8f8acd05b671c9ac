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
import json
import os
from pathlib import Path

from deuteron.backend.metadata import KernelMetadata
from deuteron.compiler.cache import UNREADABLE, Entry, decode, encode
from deuteron.compiler.eviction import ENTRY_OF_FOLDER, remove_folder
from deuteron.trusted_files import is_usable, make_folder, not_written, read, touch, write_new

GROUP = "__grp__"


def base32(key: str) -> str:
    """A hexadecimal key in a shorter text, for names of folders."""
    return base64.b32encode(bytes.fromhex(key)).decode().rstrip("=")


def hexadecimal(name: str) -> str:
    """The key that is in the name of a folder."""
    return base64.b32decode(name + "=" * (-len(name) % 8)).hex()


def load(directory: Path, key: str) -> Entry | None:
    """The entry in the folder of that key, or None where there is none that is whole and may be used."""
    folder = directory / base32(key)
    if not is_usable(directory):
        return None
    try:
        header = json.loads(read(folder / ENTRY_OF_FOLDER))
        name = header.pop("file")
        body = b"".join(read(folder / f"{name}.{stage}") for stage, *_ in header["stages"])
        entry = decode(key, header, body)
    except UNREADABLE:
        return None
    touch(folder / ENTRY_OF_FOLDER)
    return entry


def store(directory: Path, key: str, entry: Entry, name: str) -> bool:
    """Write the folder, with files called `name`; False where the directory cannot be written, or is not used."""
    folder = directory / base32(key)
    if not is_usable(directory):
        return False
    try:
        make_folder(directory)
        written = directory / f".folder-{os.urandom(8).hex()}"
        make_folder(written)
    except OSError as error:
        not_written(directory, error)
        return False
    try:
        _write(written, folder, key, entry, name)
        if folder.exists() and load(directory, key) is None:
            remove_folder(folder)
        os.rename(written, folder)
    except OSError:  # another process may have written it meanwhile
        remove_folder(written)
    return folder.exists()


def _write(written: Path, folder: Path, key: str, entry: Entry, name: str) -> None:
    """The files of an entry; `folder` is where they are to be."""
    header, parts = encode(key, entry)
    files = {f"{name}.{stage}": part for stage, part in parts.items()}
    files[f"{name}.json"] = json.dumps(_description(key, entry.metadata), sort_keys=True).encode()
    paths = {file: str(folder / file) for file in files}
    files[f"{GROUP}{name}.json"] = json.dumps({"child_paths": paths}).encode()
    files[ENTRY_OF_FOLDER] = json.dumps({**header, "file": name}).encode()
    for file, content in files.items():
        write_new(written / file, content)


def _description(key: str, metadata: KernelMetadata) -> dict[str, object]:
    """What Triton's programs read: its names for options and facts, without levels."""
    described = json.loads(metadata.to_json())
    return {**described.pop("options"), **described, "hash": key, "cluster_dims": metadata.cluster_dims}
