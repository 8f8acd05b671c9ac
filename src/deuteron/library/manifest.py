"""What a library is, as versioned JSON beside its sources: from it all else is generated, and its state is known.

    write: Manifest("norms", "acme", entries, files).to_json()
    read_manifest(Path("build/norms/norms.json"))           None where there is none

The same declaration and sources give the same bytes, in another folder too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from deuteron.aot.metadata import KernelRecord, record_of
from deuteron.errors import UsageError, not_read
from deuteron.json_fields import read_json
from deuteron.library.staleness import Sources

FORMAT = "deuteron-library"
VERSION = 1


@dataclass(frozen=True)
class Entry:
    """A compiled variant: which one, the key under which it is up to date, its files with their digests."""

    identity: str
    key: str
    overload: str
    code_bytes: int
    sources: Sources
    files: Mapping[str, str]
    record: KernelRecord


@dataclass(frozen=True)
class Manifest:
    """A library. `files` are those of the library itself, as digests by name; those of variants are in their entries.
    `declared` is the digest of the file that declares it, by its name.
    """

    name: str
    namespace: str
    deuteron: str
    key: str
    declared: Mapping[str, str]
    files: Mapping[str, str]
    entries: tuple[Entry, ...]

    @property
    def records(self) -> tuple[KernelRecord, ...]:
        return tuple(entry.record for entry in self.entries)

    @property
    def all_files(self) -> dict[str, str]:
        """The digests of all files but this one."""
        found = dict(self.files)
        for entry in self.entries:
            found.update(entry.files)
        return found

    def to_json(self) -> str:
        variants = [{**asdict(entry), "record": entry.record.to_fields()} for entry in self.entries]
        fields: dict[str, Any] = {"format": FORMAT, "version": VERSION, **vars(self), "variants": variants}
        del fields["entries"]
        return json.dumps(fields, indent=1) + "\n"


def read_manifest(path: Path) -> Manifest | None:
    """The manifest in a file, None where there is none; raises UsageError for what is no manifest of this version."""
    try:
        fields = read_json(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise not_read(f"the manifest '{path}'", error) from None
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise UsageError(f"'{path}' is not the manifest of a library")
    if fields.get("version") != VERSION:
        raise UsageError(
            f"'{path}' has manifest version {fields.get('version')}, this Deuteron reads version {VERSION}: "
            "build the library again"
        )
    try:
        return _manifest(fields, path)
    except (KeyError, TypeError) as error:
        raise UsageError(f"the manifest '{path}' is damaged ({error!r}): build the library again") from None


def _manifest(fields: dict[str, Any], path: Path) -> Manifest:
    entries = tuple(
        Entry(**{**entry, "sources": Sources(**entry["sources"]), "record": record_of(entry["record"], path)})
        for entry in fields["variants"]
    )
    known = ("name", "namespace", "deuteron", "key", "declared", "files")
    return Manifest(**{name: fields[name] for name in known}, entries=entries)
