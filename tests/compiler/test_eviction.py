"""The cache on disk stays within its size: what was used longest ago goes, whoever else is at work in the directory."""

from __future__ import annotations

import multiprocessing
import os
import time

import numpy as np
import pytest
from compiler.test_cache import make_entry

import deuteron
import deuteron.language as tl
from deuteron.compiler import cache, eviction
from deuteron.errors import UsageError
from deuteron.settings import settings


def key(index: int) -> str:
    return f"{index:02x}" * 32


def fill(directory, count, size=1000):
    """Entries of about that size, each used a minute after the one before."""
    for index in range(count):
        cache.store(directory, key(index), make_entry(b"x" * size))
        os.utime(entry_path(directory, index), (time.time() - 60 * (count - index),) * 2)


def entry_path(directory, index):
    return directory / key(index)[:2] / f"{key(index)}.kernel"


def present(directory, count):
    return [index for index in range(count) if entry_path(directory, index).exists()]


def size_of(directory):
    return sum(path.stat().st_size for path in directory.rglob("*.kernel"))


def test_nothing_goes_within_the_limit(tmp_path):
    fill(tmp_path, 10)
    eviction.evict(tmp_path, size_of(tmp_path))
    assert len(present(tmp_path, 10)) == 10


def test_what_was_used_longest_ago_goes(tmp_path):
    fill(tmp_path, 10)
    limit = size_of(tmp_path) - 1
    assert cache.load(tmp_path, key(0)) == make_entry(b"x" * 1000)
    eviction.evict(tmp_path, limit)
    assert present(tmp_path, 10) == [0, 4, 5, 6, 7, 8, 9]
    assert size_of(tmp_path) <= 0.8 * limit


def test_the_newest_stays_though_it_is_too_large(tmp_path):
    fill(tmp_path, 3)
    eviction.evict(tmp_path, 10)
    assert present(tmp_path, 3) == [2]


def test_what_was_left_unfinished_goes_after_a_day(tmp_path):
    fill(tmp_path, 1)
    folder = entry_path(tmp_path, 0).parent
    (folder / ".old-1").write_text("half"), (folder / ".new-1").write_text("half"), (folder / "other").write_text("")
    os.utime(folder / ".old-1", (time.time() - 100_000,) * 2)
    eviction.evict(tmp_path, 1 << 20)
    assert sorted(path.name for path in folder.iterdir()) == [".new-1", entry_path(tmp_path, 0).name, "other"]


def test_no_directory_is_no_error(tmp_path):
    eviction.evict(tmp_path / "absent", 10)
    (tmp_path / "file").write_text("")
    eviction.evict(tmp_path / "file", 10)


def store_and_evict(directory, first):
    for index in range(first, first + 60):
        assert cache.store(directory, key(index % 64), make_entry(b"x" * 1000))
        eviction.evict(directory, 10_000)
        found = cache.load(directory, key((index * 7) % 64))
        assert found in (None, make_entry(b"x" * 1000))


def test_many_processes(tmp_path):
    context = multiprocessing.get_context("spawn")
    with context.Pool(4) as pool:
        pool.starmap(store_and_evict, [(tmp_path, first) for first in (0, 20, 40, 60)])
    eviction.evict(tmp_path, 10_000)
    assert 0 < size_of(tmp_path) <= 10_000


@pytest.mark.parametrize(
    ("text", "size"), [("", 2 << 30), ("0", 0), ("1234", 1234), ("10k", 10 << 10), ("500M", 500 << 20), ("3G", 3 << 30)]
)
def test_setting(monkeypatch, text, size):
    monkeypatch.setenv("DEUTERON_CACHE_SIZE", text)
    assert settings.cache_size == size


@pytest.mark.parametrize("text", ["G", "-1", "2.5G", "much"])
def test_setting_that_is_refused(monkeypatch, text):
    monkeypatch.setenv("DEUTERON_CACHE_SIZE", text)
    with pytest.raises(UsageError, match="must be a number of bytes, such as 500M or 2G, got"):
        _ = settings.cache_size


@deuteron.jit
def fill_kernel(out, VALUE: tl.constexpr):
    tl.store(out + tl.arange(0, 8), tl.full((8,), VALUE, tl.float32))


def test_compiles_evict(tmp_path, monkeypatch):
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("DEUTERON_CACHE_SIZE", "10k")
    monkeypatch.setenv("DEUTERON_TARGET", "cpu")
    monkeypatch.setenv("DEUTERON_ALWAYS_COMPILE", "0")
    monkeypatch.setattr(eviction, "STORES_BETWEEN", 1)
    for value in range(6):
        out = np.zeros(8, np.float32)
        fill_kernel[(1,)](out, VALUE=value)
        assert (out == value).all()
    assert 0 < len(list(tmp_path.rglob("*.kernel"))) < 6
