"""`triton.runtime.cache`: files of a program's own beside the compiled kernels.

    manager = get_cache_manager("3fa91c")           <cache dir>/3fa91c
    path = manager.put(b"...", "launcher.so")       written whole or not at all
    manager.get_file("launcher.so")                 its path, or None
    manager.put_group("kernel.json", {"kernel.json": path, ...})
    manager.get_group("kernel.json")                None where one of the files is gone

The kernels of `triton.compile` are such folders, too (`compiler/cache_folder.py`). `knobs.cache.manager_class`, or
TRITON_CACHE_MANAGER, names a class that `get_cache_manager` makes.
"""

from __future__ import annotations

import json
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deuteron import knobs
from deuteron.compat.compile_workers import is_compile_worker, load_compiler
from deuteron.compiler.cache_folder import GROUP, base32
from deuteron.settings import COMPILE_VARIABLES, get_variable, settings
from deuteron.toolchain import toolchain


class CacheManager(ABC):
    """Files under a key: made by `manager_class(key, override=, dump=)`."""

    def __init__(self, key: str, override: bool = False, dump: bool = False):
        self.key = key

    @abstractmethod
    def get_file(self, filename: str) -> str | None: ...

    @abstractmethod
    def put(self, data: Any, filename: str, binary: bool = True) -> str: ...

    @abstractmethod
    def get_group(self, filename: str) -> dict[str, str] | None: ...

    @abstractmethod
    def put_group(self, filename: str, group: dict[str, str]) -> Any: ...


class FileCacheManager(CacheManager):
    """Files in a folder named by the key. `dump` and `override` are the folders of `knobs.cache` of these names."""

    def __init__(self, key: str, override: bool = False, dump: bool = False):
        super().__init__(key, override, dump)
        folder = knobs.cache.dump_dir if dump else knobs.cache.override_dir if override else _cache_dir()
        self.cache_dir = os.path.join(folder, key)
        self.lock_path = os.path.join(self.cache_dir, "lock")
        if not override:
            os.makedirs(self.cache_dir, exist_ok=True)

    def _make_path(self, filename: str) -> str:
        return os.path.join(self.cache_dir, filename)

    def has_file(self, filename: str) -> bool:
        return os.path.exists(self._make_path(filename))

    def get_file(self, filename: str) -> str | None:
        return self._make_path(filename) if self.has_file(filename) else None

    def put(self, data: Any, filename: str, binary: bool = True) -> str:
        content = data if isinstance(data, bytes) else str(data).encode()
        handle, temporary = tempfile.mkstemp(dir=self.cache_dir)
        with open(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, self._make_path(filename))
        return self._make_path(filename)

    def get_group(self, filename: str) -> dict[str, str] | None:
        path = self.get_file(GROUP + filename)
        if path is None:
            return None
        group = json.loads(Path(path).read_text())["child_paths"]
        return group if all(map(os.path.exists, group.values())) else None

    def put_group(self, filename: str, group: dict[str, str]) -> str:
        return self.put(json.dumps({"child_paths": group}), GROUP + filename, binary=False)


class RemoteCacheBackend(ABC):
    """Where a RemoteCacheManager keeps contents."""

    def __init__(self, key: str):
        self.key = key

    @abstractmethod
    def get(self, filenames: Sequence[str]) -> Mapping[str, bytes]: ...

    @abstractmethod
    def put(self, filename: str, data: bytes) -> None: ...


class RemoteCacheManager(CacheManager):
    """Contents in what `knobs.cache.remote_manager_class` makes; copies in files of this machine."""

    def __init__(self, key: str, override: bool = False, dump: bool = False):
        remote = knobs.cache.remote_manager_class
        if remote is None:
            raise RuntimeError("set knobs.cache.remote_manager_class, or TRITON_REMOTE_CACHE_BACKEND")
        super().__init__(key, override, dump)
        self._files = FileCacheManager(key, override, dump)
        self._backend = None if override or dump else remote(key)

    def get_file(self, filename: str) -> str | None:
        if self._backend is None:
            return self._files.get_file(filename)
        found = self._backend.get([filename])
        return self._files.put(found[filename], filename) if filename in found else None

    def put(self, data: Any, filename: str, binary: bool = True) -> str:
        content = data if isinstance(data, bytes) else str(data).encode()
        if self._backend is not None:
            self._backend.put(filename, content)
        return self._files.put(content, filename)

    def get_group(self, filename: str) -> dict[str, str] | None:
        if self._backend is None:
            return self._files.get_group(filename)
        name = GROUP + filename
        listed = self._backend.get([name]).get(name)
        if listed is None:
            return None
        names = json.loads(listed)
        contents = self._backend.get(names)
        if set(contents) != set(names):
            return None
        return {name: self._files.put(content, name) for name, content in contents.items()}

    def put_group(self, filename: str, group: dict[str, str]) -> None:
        if self._backend is None:
            self._files.put_group(filename, group)
        else:
            self._backend.put(GROUP + filename, json.dumps(sorted(group)).encode())


def _cache_dir() -> str:
    """What the program set, else TRITON_CACHE_DIR, else where Deuteron's kernels are."""
    return knobs.cache.dir if "dir" in vars(knobs.cache) else str(settings.triton_cache_dir)


def get_cache_manager(key: str) -> CacheManager:
    return _manager()(base32(key))


def get_override_manager(key: str) -> CacheManager:
    return _manager()(base32(key), override=True)


def get_dump_manager(key: str) -> CacheManager:
    return _manager()(base32(key), dump=True)


def _manager() -> type:
    return knobs.cache.manager_class or FileCacheManager


def triton_key() -> str:
    """The versions that compiled kernels depend on. Where torch asks before it forks compile workers, that is also when
    what compiles is imported.
    """
    if is_compile_worker():
        load_compiler()
    return "-".join(toolchain())


def get_cache_invalidating_env_vars() -> dict[str, str]:
    """The variables that are set, of those that what is compiled depends on."""
    values = {name: get_variable(name) for name in COMPILE_VARIABLES}
    return {name: value for name, value in values.items() if value is not None}


CACHE_NAMES = {
    "CacheManager": CacheManager,
    "FileCacheManager": FileCacheManager,
    "RemoteCacheBackend": RemoteCacheBackend,
    "RemoteCacheManager": RemoteCacheManager,
    "get_cache_manager": get_cache_manager,
    "get_override_manager": get_override_manager,
    "get_dump_manager": get_dump_manager,
    "default_cache_dir": lambda: knobs.cache.dir,
    "default_dump_dir": lambda: knobs.cache.dump_dir,
    "default_override_dir": lambda: knobs.cache.override_dir,
    "triton_key": triton_key,
    "_base32": base32,
    "_base64": base32,
    "knobs": knobs,
}
