"""The cache on disk: round trips, damaged entries, directories that cannot be used, many processes."""

import multiprocessing
import os

import pytest

from deuteron.backend.metadata import KernelMetadata
from deuteron.compiler import cache
from deuteron.options import Target

KEY = "3f" * 32


def make_entry(obj=b"\x00\xff\n\x01"):
    metadata = KernelMetadata("add", "add", Target("cpu", "native", 1), {"num_warps": 4}, (), scratch_bytes=128)
    return cache.Entry(metadata, {"ttir": "tile\nIR µ", "obj": obj})


def entry_file(directory):
    [path] = directory.rglob("*.kernel")
    return path


def test_round_trip_keeps_text_text_and_bytes_bytes(tmp_path):
    assert cache.store(tmp_path, KEY, make_entry())
    assert cache.load(tmp_path, KEY) == make_entry()


def test_an_entry_that_was_never_stored_is_absent(tmp_path):
    assert cache.load(tmp_path, KEY) is None


@pytest.mark.parametrize("kept", [0, 1, 50, -1])
def test_an_entry_cut_short_is_absent(tmp_path, kept):
    cache.store(tmp_path, KEY, make_entry())
    path = entry_file(tmp_path)
    path.write_bytes(path.read_bytes()[:kept])
    assert cache.load(tmp_path, KEY) is None


def test_an_entry_with_any_byte_changed_is_absent(tmp_path):
    cache.store(tmp_path, KEY, make_entry())
    path = entry_file(tmp_path)
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        assert cache.load(tmp_path, KEY) is None, place


def test_a_damaged_entry_is_written_again(tmp_path):
    cache.store(tmp_path, KEY, make_entry())
    entry_file(tmp_path).write_bytes(b"damaged")
    assert cache.store(tmp_path, KEY, make_entry())
    assert cache.load(tmp_path, KEY) == make_entry()


def test_a_path_that_is_a_file_means_no_cache(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert not cache.store(blocked, KEY, make_entry())
    assert cache.load(blocked, KEY) is None


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    assert not cache.store(tmp_path, KEY, make_entry())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def store_and_load(directory, number):
    """Store one of several entries many times; every load in between must be a whole entry."""
    for _ in range(50):
        cache.store(directory, KEY, make_entry(bytes([number]) * 5000))
        found = cache.load(directory, KEY)
        if found is None or len(set(found.texts["obj"])) != 1 or len(found.texts["obj"]) != 5000:
            raise SystemExit(1)


def test_processes_that_write_one_entry_see_whole_entries(tmp_path):
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=store_and_load, args=(tmp_path, number)) for number in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
