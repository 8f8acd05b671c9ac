"""A cache that machines share, in whatever fsspec reaches: a folder, S3, GCS, ...

    DEUTERON_REMOTE_CACHE=s3://bucket/kernels  DEUTERON_CACHE_KEY=...            <address>/3f/3fa91c....kernel

It is asked for what is not in the cache of this machine, which then keeps it, and is given what is compiled. Entries
are signed with the key, and what is not is a miss, so that nobody else's machine code is run. What fails is a warning,
and the cache is not asked again in this process: it is never an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

from deuteron.compiler.cache import UNREADABLE, Entry, decode_file, encode_file
from deuteron.settings import settings
from deuteron.trusted_files import has_key, warn_once

_T = TypeVar("_T")
_failed: set[str] = set()  # addresses


def load(key: str) -> Entry | None:
    """The entry of a key, or None where there is none that is whole and signed."""
    return _tried(lambda files, folder: _read(files, _place(folder, key), key))


def store(key: str, entry: Entry) -> None:
    """Put an entry there."""
    content = encode_file(key, entry, is_signed=True)
    _tried(lambda files, folder: _write(files, _place(folder, key), content))


def _tried(use: Callable[[Any, str], _T]) -> _T | None:
    """What comes of using the file system and the folder in it that the address names; None where it cannot be used."""
    address = settings.remote_cache
    if address is None or address in _failed or not has_key(f"the cache '{address}'", "DEUTERON_REMOTE_CACHE"):
        return None
    try:
        from fsspec.core import url_to_fs  # deferred: an extra
    except ImportError:
        _give_up(address, "it takes fsspec: pip install 'deuteron[remote-cache]'")
        return None
    try:
        return use(*url_to_fs(address))
    except Exception as error:  # whatever the libraries of all stores raise
        _give_up(address, f"{type(error).__name__}: {error}")
        return None


def _give_up(address: str, why: str) -> None:
    _failed.add(address)
    warn_once(f"the cache '{address}' (DEUTERON_REMOTE_CACHE) is not used: {why}")


def _place(folder: str, key: str) -> str:
    return f"{folder.rstrip('/')}/{key[:2]}/{key}.kernel"


def _read(files: Any, place: str, key: str) -> Entry | None:
    try:
        content = files.cat_file(place)
    except FileNotFoundError:
        return None
    try:
        return decode_file(key, content, is_signed=True)
    except UNREADABLE:
        return None


def _write(files: Any, place: str, content: bytes) -> None:
    """Stores of objects show all of one or nothing; in a folder a file is renamed into its place."""
    files.makedirs(place.rpartition("/")[0], exist_ok=True)
    if not getattr(files, "local_file", False):
        files.pipe_file(place, content)
        return
    temporary = f"{place}.{os.urandom(8).hex()}"
    files.pipe_file(temporary, content)
    os.replace(temporary, place)
