"""The versions of everything that takes part in a compile, of Deuteron itself a hash of its sources.

    toolchain()         ("python 3.12", "llvmlite 0.50.0", "xdsl 0.74.1", "91ab...")

A change to a pass is a new version, whatever the package says of itself. Of what pip installed, and not as a link to a
checkout, its RECORD has a hash of every file, and is read in the place of 800 files' times: who edits installed files
in place empties the cache.
"""

from __future__ import annotations

import hashlib
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from deuteron.once import once
from deuteron.settings import settings
from deuteron.trusted_files import kept

PACKAGE = Path(__file__).parent
_MODULES = (".py", ".pyc")  # the latter where they are installed without their sources


@once
def toolchain() -> tuple[str, ...]:
    """The versions that a compile depends on; read once in a process."""
    installed = (f"{name} {_installed_version(name)}" for name in ("llvmlite", "xdsl"))
    return (f"python {sys.version_info.major}.{sys.version_info.minor}", *installed, _package_hash())


def _installed_version(name: str) -> str:
    """The version of a package: what the folder beside it is called that pip makes, if there is one."""
    spec = find_spec(name)
    folder = Path(spec.submodule_search_locations[0]).parent if spec and spec.submodule_search_locations else None
    beside = os.listdir(folder) if folder else []
    found = [entry for entry in beside if entry.startswith(f"{name}-") and entry.endswith(".dist-info")]
    if len(found) == 1:
        return found[0].removeprefix(f"{name}-").removesuffix(".dist-info")
    from importlib import metadata  # deferred: 15 ms, which a launch of a cached kernel does not need

    return metadata.version(name)


def _package_hash() -> str:
    """A hash of all modules of Deuteron, which is kept on disk for as long as their files are the same."""
    record = _record()
    if record is not None:
        return hashlib.sha256(record).hexdigest()
    files = "\n".join(sorted(_files(str(PACKAGE)) or [_identity(str(_archive()), _archive().stat())]))
    key = hashlib.sha256(f"sources of Deuteron {files}".encode()).hexdigest()
    return kept(settings.cache_dir, key, lambda: _hash_of_sources().encode()).decode()


def _record() -> bytes | None:
    """The paths and hashes of the sources, as whoever installed them wrote them down; None of a checkout."""
    beside = os.listdir(PACKAGE.parent) if PACKAGE.parent.is_dir() else ()
    found = [entry for entry in beside if entry.startswith("deuteron-") and entry.endswith(".dist-info")]
    if len(found) != 1:
        return None
    try:
        lines = (PACKAGE.parent / found[0] / "RECORD").read_bytes().splitlines()
    except OSError:
        return None
    sources = sorted(line for line in lines if line.startswith(b"deuteron/") and b".py,sha256=" in line)
    return b"\n".join(sources) or None


def _files(folder: str) -> list[str]:
    """The sources by path, with what changes when a file is written, or replaced: `ctime` cannot be set, and changes
    with every other time.

    In a checkout every process that launches asks for the 900 of them: this takes 2 ms, nearly all in the system.
    """
    found, folders = [], [folder] if os.path.isdir(folder) else []
    while folders:
        for entry in os.scandir(folders.pop()):
            name = entry.name
            if name.endswith(_MODULES):
                found.append(_identity(entry.path, entry.stat()))
            elif "." not in name and name != "__pycache__" and entry.is_dir():
                folders.append(entry.path)
    return found


def _identity(path: str, status: os.stat_result) -> str:
    return f"{path} {status.st_size} {status.st_ino} {status.st_ctime_ns}"


def _hash_of_sources() -> str:
    digest = hashlib.sha256()
    modules = (path for path in PACKAGE.rglob("*.py*") if path.name.endswith(_MODULES))
    for path in sorted(path for path in modules if "__pycache__" not in path.parts) or [_archive()]:
        digest.update(os.path.relpath(path, PACKAGE).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _archive() -> Path:
    """What has the modules where no folder has them: a zip file, or the program that they are frozen in."""
    return next((path for path in PACKAGE.parents if path.is_file()), Path(sys.executable))
