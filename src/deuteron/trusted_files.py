"""Files of a cache, which hold machine code: who may have written them, and whether they are as they were written.

    if is_usable(directory):                    nobody else may write there
        content = read(directory / "3f" / "3fa91c.kernel")
        is_whole(seal, key, content)

A folder is made for its owner alone. It is used while it, and each file in it, belongs to the user (or to root) and no
others may write it. Of one that several users share DEUTERON_CACHE_SHARED=1 says so: whoever owns its files, they are
sealed with DEUTERON_CACHE_KEY, and what is not is not read. What is not used is named in a warning, once in a process;
it is never an error.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
import warnings
from _operator import _compare_digest as compare_digest
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deuteron.settings import settings

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
MIN_KEY_BYTES = 16
SEAL_BYTES = 32
ROOT = 0

_warned: set[str] = set()


def is_usable(directory: Path) -> bool:
    """Whether entries may be read from a cache folder and written to it; one that is not there yet may."""
    if settings.cache_is_shared:
        return _has_key(directory)
    try:
        reason = _distrusted(os.stat(directory))
    except OSError:
        return True
    if reason is None:
        return True
    warn_once(
        f"the cache folder '{directory}' is not used, for it holds machine code and {reason}; kernels are compiled "
        f"again. Empty it and make it yours alone (chmod go-w '{directory}'), name another one in DEUTERON_CACHE_DIR, "
        "or, if it is meant to be shared, set DEUTERON_CACHE_SHARED=1 and DEUTERON_CACHE_KEY"
    )
    return False


def _has_key(directory: Path) -> bool:
    return has_key(f"the shared cache folder '{directory}'", "DEUTERON_CACHE_SHARED")


def has_key(cache: str, variable: str) -> bool:
    """Whether there is a secret to sign entries with; without one a cache that a variable asks for is not used."""
    if len(settings.cache_key) >= MIN_KEY_BYTES:
        return True
    warn_once(
        f"{cache} is not used: {variable} needs a secret of {MIN_KEY_BYTES} or more bytes in DEUTERON_CACHE_KEY, which "
        f"entries are signed with, and there are {len(settings.cache_key)}"
    )
    return False


def _distrusted(status: os.stat_result) -> str | None:
    """Why what is there may be of somebody else; None where it cannot."""
    if not hasattr(os, "geteuid"):
        return None
    if status.st_uid not in (os.geteuid(), ROOT):
        return f"it belongs to another user ({_user_name(status.st_uid)})"
    others = status.st_mode & OTHERS_WRITE
    if others == stat.S_IWGRP and _is_own_group(status.st_gid, status.st_uid):
        return None
    return f"others may write it (mode {stat.S_IMODE(status.st_mode):o})" if others else None


def _user_name(user: int) -> str:
    import pwd  # there is none on Windows

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


@functools.cache
def _is_own_group(group: int, user: int) -> bool:
    """Whether a group is the user's own: many systems make one for each user, and let it write what he makes."""
    import grp  # deferred: Windows has none

    try:
        found = grp.getgrgid(group)
    except KeyError:
        return False
    name = _user_name(user)
    return found.gr_name == name and set(found.gr_mem) <= {name}


def read(path: Path) -> bytes:
    """The content of a file; raises OSError where it cannot be read, or may be of somebody else."""
    with open(path, "rb") as file:
        reason = None if settings.cache_is_shared else _distrusted(os.fstat(file.fileno()))
        if reason is not None:
            warn_once(f"the file '{path}' of the cache is not used: {reason}")
            raise PermissionError(f"{path}: {reason}")
        return file.read()


def write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; raises OSError. Its folder is made."""
    make_folder(path.parent)
    temporary = path.with_name(f".{path.stem[:16]}-{os.urandom(8).hex()}")
    try:
        write_new(temporary, content)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def write_new(path: Path, content: bytes) -> None:
    """Write a file that is not there yet, for its owner alone unless the cache is shared; raises OSError."""
    mode = 0o666 if settings.cache_is_shared else 0o600  # less what the umask takes away
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)


def make_folder(path: Path) -> None:
    """Make a folder of a cache, for its owner alone unless it is shared; raises OSError."""
    if not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o777 if settings.cache_is_shared else 0o700, exist_ok=True)


def keep(directory: Path, path: Path, content: bytes) -> bool:
    """Write a file of a cache folder; where that is not possible a warning says so, and it is False."""
    try:
        make_folder(directory)
        write(path, content)
    except OSError as error:
        not_written(directory, error)
        return False
    return True


def kept(directory: Path, key: str, make: Callable[[], bytes]) -> bytes:
    """What belongs to no kernel, such as the launcher's code; made, and kept after its seal, where there is none."""
    path = directory / key[:2] / f"{key}.code"
    with contextlib.suppress(OSError):
        content = read(path) if is_usable(directory) else b""
        found, made = content[:SEAL_BYTES], content[SEAL_BYTES:]
        if is_whole(found, key.encode(), made):
            touch(path)
            return made
    made = make()
    if is_usable(directory):
        keep(directory, path, seal(key.encode(), made) + made)
    return made


def touch(path: Path) -> None:
    """Say that a file is in use: those that were used longest ago are removed first."""
    with contextlib.suppress(OSError):
        os.utime(path)


def not_written(directory: Path, error: OSError) -> None:
    """Say that a cache folder cannot be written to."""
    warn_once(f"compiled kernels are not kept in the cache folder '{directory}': {error.strerror or error}")


def seal(*parts: bytes, is_signed: bool | None = None) -> bytes:
    """What says that the parts are whole, and, if it is signed, written by somebody who has the key. Where nothing is
    said it is in a shared cache.
    """
    is_signed = settings.cache_is_shared if is_signed is None else is_signed
    digest = _signature() if is_signed else hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


def _signature() -> Any:
    import hmac  # deferred: of a shared cache only

    return hmac.new(settings.cache_key, digestmod="sha256")


def is_whole(found: bytes, *parts: bytes, is_signed: bool | None = None) -> bool:
    """Whether that is the seal of the parts."""
    return compare_digest(found, seal(*parts, is_signed=is_signed))


def warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        warnings.warn(f"Deuteron: {text}", RuntimeWarning, stacklevel=2)
