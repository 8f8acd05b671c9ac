"""The key of a compile: what the result depends on, and nothing else.

Source and dependencies, signature, constexprs, attributes, options, passes left out, target (for `native`: the CPU's
name and features), and the versions of everything that takes part. Of Deuteron itself the version is a hash of its own
source files, so that a change to a pass is a new version.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from deuteron.options import Target, settings
from deuteron.trusted_files import kept

PACKAGE = Path(__file__).parent.parent


def cache_key(
    fingerprint: str,
    target: Target,
    machine: str,
    options: Any,
    symbol: str,
    disabled: tuple[str, ...] = (),
    is_portable: bool = False,
) -> str:
    """64 hex digits. `fingerprint` is the source's, `machine` what the backend says of the machine it compiles for,
    `disabled` names the passes that are left out, `is_portable` says that files are called as Python imports them.
    """
    asked = (repr(options), symbol, ",".join(disabled), str(is_portable))
    parts = (fingerprint, str(target), machine, *asked, *toolchain())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@functools.cache
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
    """A hash of all sources of Deuteron, which is kept on disk for as long as their files are the same."""
    key = hashlib.sha256(f"sources of Deuteron {sorted(_files(str(PACKAGE)))}".encode()).hexdigest()
    return kept(settings.cache_dir, key, lambda: _hash_of_sources().encode()).decode()


def _files(folder: str) -> Iterator[tuple[str, int, int, int, int]]:
    """The sources by path, with what changes when a file is written, or replaced: `ctime` cannot be set."""
    for entry in os.scandir(folder):
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _files(entry.path)
        elif entry.name.endswith(".py"):
            status = entry.stat()
            yield entry.path, status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def _hash_of_sources() -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts):
        digest.update(str(path.relative_to(PACKAGE)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
