"""Compiled kernels as folders of files: what Triton's programs read there, and a folder that is taken elsewhere."""

import json
import os
import shutil
import time

import pytest
from compiler.test_cache import KEY, make_entry

import deuteron
import deuteron.language as tl
from deuteron.compat.cache_files import get_cache_manager
from deuteron.compat.old_spellings import compile
from deuteron.compiler import ASTSource, cache_folder, eviction

FOLDER = cache_folder.base32(KEY)


@deuteron.jit(repr=lambda specialization: "one_of_many")
def store_one(x_ptr):
    tl.store(x_ptr, 1)


def source():
    return ASTSource(store_one, {"x_ptr": "*i32"})


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """Triton's, which goes before Deuteron's for programs that look there."""
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "theirs"))
    return tmp_path / "theirs"


def test_round_trip(tmp_path):
    assert cache_folder.load(tmp_path, KEY) is None
    assert cache_folder.store(tmp_path, KEY, make_entry(), "add")
    assert cache_folder.store(tmp_path, KEY, make_entry(), "add")
    assert cache_folder.load(tmp_path, KEY) == make_entry()
    assert sorted(path.name for path in tmp_path.iterdir()) == [FOLDER]


@pytest.mark.parametrize("damage", ["add.obj", "kernel.deuteron"])
def test_a_damaged_folder_is_written_again(tmp_path, damage):
    cache_folder.store(tmp_path, KEY, make_entry(), "add")
    for content in (b"5", b"{}", b"\xff", b""):
        (tmp_path / FOLDER / damage).write_bytes(content)
        assert cache_folder.load(tmp_path, KEY) is None
    (tmp_path / FOLDER / damage).unlink()
    assert cache_folder.load(tmp_path, KEY) is None
    assert cache_folder.store(tmp_path, KEY, make_entry(), "add")
    assert cache_folder.load(tmp_path, KEY) == make_entry()


def test_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    assert not cache_folder.store(tmp_path / "file", KEY, make_entry(), "add")


def test_what_tritons_programs_find(directory):
    """The files are called as the Python function, whatever the kernel is."""
    kernel = compile(source(), target="cpu")
    manager = get_cache_manager(kernel.hash)
    assert manager.get_file("store_one.obj").startswith(str(directory))
    group = manager.get_group("store_one.json")
    assert {"store_one.json", "store_one.ttir", "store_one.llir", "store_one.obj"} <= set(group)
    with open(group["store_one.json"]) as file:
        described = json.load(file)
    assert described["hash"] == kernel.hash and described["target"]["backend"] == "cpu"
    assert (described["name"], described["num_warps"], described["shared"]) == ("one_of_many", 4, 0)


def test_a_folder_that_was_taken_elsewhere_is_found(directory, tmp_path, monkeypatch):
    kernel = compile(source(), target="cpu")
    assert not kernel.is_cached and compile(source(), target="cpu").is_cached
    folder = directory / cache_folder.base32(kernel.hash)
    shutil.copytree(folder, tmp_path / "elsewhere" / folder.name)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "elsewhere"))
    assert compile(source(), target="cpu").is_cached
    assert deuteron.compile(source(), target="cpu").is_cached, "a kernel is found in either form"


def test_a_kernel_that_was_a_file_becomes_a_folder(directory):
    kernel = deuteron.compile(source(), target="cpu")
    assert not directory.exists()
    assert compile(source(), target="cpu").is_cached
    assert (directory / cache_folder.base32(kernel.hash) / "store_one.obj").exists()


def test_folders_are_evicted_whole_and_those_of_others_stay(tmp_path):
    keys = [f"{index:02x}" * 32 for index in range(5)]
    for index, key in enumerate(keys):
        cache_folder.store(tmp_path, key, make_entry(b"x" * 1000), "add")
        described = tmp_path / cache_folder.base32(key) / eviction.ENTRY_OF_FOLDER
        os.utime(described, (time.time() - 60 * (5 - index),) * 2)
    size = sum(path.stat().st_size for path in described.parent.iterdir())
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "of_another_program").write_bytes(b"x" * 1000)
    left = tmp_path / ".folder-left"
    left.mkdir()
    os.utime(left, (0, 0))
    eviction.evict(tmp_path, int(3.7 * size))
    assert [key for key in keys if (tmp_path / cache_folder.base32(key)).exists()] == keys[-2:]
    assert (tmp_path / FOLDER / "of_another_program").exists() and not left.exists()
