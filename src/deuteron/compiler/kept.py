"""Where a compiled kernel is kept: as a file, or, for programs made for Triton, as a folder; either is found. And in a
cache that machines share, where there is one.

kept = KeptKernel(key, None)        kept.load() or kept.store(entry)        <cache dir>/3f/3fa91c....kernel
kept = KeptKernel(key, "add")       the same                                <Triton's cache dir>/H6UR.../add.cubin
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

from deuteron.compiler import cache, cache_folder
from deuteron.compiler.cache import Entry
from deuteron.compiler.eviction import evict_now_and_then
from deuteron.settings import settings


class KeptKernel(NamedTuple):
    """The place for the kernel of a key; `file_name` is what the files of a folder are called."""

    key: str
    file_name: str | None

    def load(self) -> Entry | None:
        """The entry of the key, or None. What only other machines have is kept here after that."""
        found = self._load_here()
        if found is None and settings.remote_cache is not None:
            found = _remote().load(self.key)
            if found is not None:
                self._store_here(found)
        return found

    def store(self, entry: Entry) -> None:
        """Keep an entry, and make room now and then. Where nothing can be written, nothing is kept."""
        self._store_here(entry)
        if settings.remote_cache is not None:
            _remote().store(self.key, entry)

    def _load_here(self) -> Entry | None:
        """One that is to be a folder is one after that."""
        if self.file_name is None:
            return cache.load(settings.cache_dir, self.key) or cache_folder.load(settings.triton_cache_dir, self.key)
        found = cache_folder.load(settings.triton_cache_dir, self.key)
        if found is None:
            found = cache.load(settings.cache_dir, self.key)
            if found is not None:
                self._store_here(found)
        return found

    def _store_here(self, entry: Entry) -> None:
        if self.file_name is None:
            cache.store(settings.cache_dir, self.key, entry)
            evict_now_and_then(settings.cache_dir, settings.cache_size)
        else:
            cache_folder.store(settings.triton_cache_dir, self.key, entry, self.file_name)
            evict_now_and_then(settings.triton_cache_dir, settings.cache_size)


def _remote() -> ModuleType:
    from deuteron.compiler import remote_cache  # deferred: few have one

    return remote_cache
