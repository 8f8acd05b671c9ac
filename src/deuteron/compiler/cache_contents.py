"""What is in a cache folder, for people: its kernels, and taking them to another machine.

    contents(directory)                     Stored(key="3fa91c...", name="add", target="cpu:native", size=12345, ...)
    export_entries(chosen, Path("kernels.tar.gz"))
    import_entries(directory, Path("kernels.tar.gz"))

An exported file holds entries as they lie in the cache. What is imported is checked as what is loaded is; who imports
trusts who exported, for it is machine code, unless both have the key of a shared cache. An entry is found by the
versions of all that compiled it, so that one of other versions is of no use, and of no harm.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from deuteron.backend.metadata import KernelMetadata
from deuteron.compiler import cache, cache_folder
from deuteron.compiler.eviction import ENTRY_OF_FOLDER, StoredFile, stored_files
from deuteron.errors import UsageError
from deuteron.trusted_files import is_usable
from deuteron.whole_file import whole_file

_MEMBER = re.compile(r"[0-9a-f]{2}/([0-9a-f]{64})\.kernel")
_NOT_A_KERNEL = "-"


class Stored(NamedTuple):
    """An entry. Of code that belongs to no kernel, and of what cannot be read, the name and the target are "-"."""

    key: str
    name: str
    target: str
    size: int
    used: float
    path: Path

    @property
    def is_kernel(self) -> bool:
        return self.name != _NOT_A_KERNEL


def contents(directory: Path) -> list[Stored]:
    """The entries of a folder, the one that was used last first; none where there is no folder."""
    try:
        files = sorted(stored_files(directory), reverse=True)
    except OSError:
        return []
    return [_stored(file) for file in files]


def _stored(file: StoredFile) -> Stored:
    path = Path(file.path)
    key = cache_folder.hexadecimal(path.parent.name) if path.name == ENTRY_OF_FOLDER else path.stem
    name, target = _described(path) if path.suffix != ".code" else (_NOT_A_KERNEL, _NOT_A_KERNEL)
    return Stored(key, name, target, file.size, file.used, path)


def _described(path: Path) -> tuple[str, str]:
    """The name and the target of a kernel; nothing else of its file is read."""
    try:
        with open(path, "rb") as file:
            metadata = KernelMetadata.from_json(json.loads(file.readline())["metadata"])
    except cache.UNREADABLE:
        return _NOT_A_KERNEL, _NOT_A_KERNEL
    return metadata.name, str(metadata.target)


def export_entries(chosen: Iterable[Stored], file: Path) -> int:
    """Write kernels into an archive; returns how many there are that are whole. Raises OSError, and writes nothing."""
    entries = {stored.key: stored for stored in chosen if stored.is_kernel}
    num_written = 0
    with whole_file(file) as path, tarfile.open(path, "w:gz") as archive:
        for key, stored in sorted(entries.items()):
            entry = _load(stored)
            if entry is not None:
                _add(archive, key, cache.encode_file(key, entry))
                num_written += 1
    return num_written


def _load(stored: Stored) -> cache.Entry | None:
    form = cache_folder if stored.path.name == ENTRY_OF_FOLDER else cache
    return form.load(stored.path.parent.parent, stored.key)


def _add(archive: tarfile.TarFile, key: str, content: bytes) -> None:
    member = tarfile.TarInfo(f"{key[:2]}/{key}.kernel")
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def import_entries(directory: Path, file: Path) -> tuple[int, int]:
    """Take the kernels of an archive into a folder; returns how many, and how many were not whole or not signed.

    Raises UsageError for what is no such archive, and where the folder is not used or cannot be written.
    """
    if not is_usable(directory):
        raise UsageError(f"the cache folder '{directory}' is not used: the warning says why")
    num_taken = num_refused = 0
    try:
        with tarfile.open(file, "r:*") as archive:
            for key, content in _members(archive):
                entry = _decoded(key, content)
                if entry is None:
                    num_refused += 1
                elif cache.store(directory, key, entry):
                    num_taken += 1
                else:
                    raise UsageError(f"the cache folder '{directory}' cannot be written")
    except (OSError, tarfile.TarError, EOFError) as error:
        reason = str(error).partition(":\n")[0]  # tarfile names each way that it tried on a line of its own
        raise UsageError(f"'{file}' is not what `deuteron cache export` wrote: {reason}") from error
    return num_taken, num_refused


def _members(archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    """The key and the content of each entry. Nothing is unpacked under a name that an archive gives."""
    for member in archive:
        named = _MEMBER.fullmatch(member.name)
        if named and member.isfile():
            yield named[1], archive.extractfile(member).read()


def _decoded(key: str, content: bytes) -> cache.Entry | None:
    try:
        return cache.decode_file(key, content)
    except cache.UNREADABLE:
        return None
