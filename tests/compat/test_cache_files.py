"""`triton.runtime.cache`: a program's own files."""

import os
from pathlib import Path

import pytest

from deuteron import knobs
from deuteron.compat.cache_files import FileCacheManager, RemoteCacheManager, get_cache_manager, get_dump_manager
from deuteron.compat.nested import find_paths_if, get_iterable_path, validate_block_shape


@pytest.fixture(autouse=True)
def folder(tmp_path):
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        knobs.cache.dump_dir = str(tmp_path / "dump")
        yield tmp_path


def test_a_file_that_was_put_is_found():
    manager = get_cache_manager("3fa91c")
    assert not manager.has_file("a.so") and manager.get_file("a.so") is None
    path = manager.put(b"content", "a.so")
    assert Path(path).read_bytes() == b"content" and manager.get_file("a.so") == path
    assert get_cache_manager("3fa91c").get_file("a.so") == path and os.path.dirname(path) == manager.cache_dir
    assert get_dump_manager("3fa91c").put("text", "a.ttir").startswith(knobs.cache.dump_dir)


def test_a_group_without_one_of_its_files_is_none():
    manager = FileCacheManager("key")
    group = {name: manager.put(name, name, binary=False) for name in ("k.json", "k.cubin")}
    manager.put_group("k.json", group)
    assert manager.get_group("k.json") == group and manager.get_group("other") is None
    os.remove(group["k.cubin"])
    assert manager.get_group("k.json") is None


def test_a_class_of_ones_own():
    class Mine(FileCacheManager):
        pass

    knobs.cache.manager_class = Mine
    assert isinstance(get_cache_manager("00"), Mine)


def test_contents_elsewhere():
    kept = {}

    class Backend:
        def __init__(self, key):
            self.key = key

        def get(self, filenames):
            return {name: kept[name] for name in filenames if name in kept}

        def put(self, filename, data):
            kept[filename] = data

    with pytest.raises(RuntimeError, match="remote_manager_class"):
        RemoteCacheManager("key")
    knobs.cache.remote_manager_class = Backend
    manager = RemoteCacheManager("key")
    manager.put("{}", "k.json", binary=False)
    manager.put(b"code", "k.cubin")
    manager.put_group("k.json", {"k.json": "unused", "k.cubin": "unused"})
    group = manager.get_group("k.json")
    assert Path(group["k.cubin"]).read_bytes() == b"code"
    del kept["k.cubin"]
    assert manager.get_group("k.json") is None and manager.get_file("k.cubin") is None


def test_nested_tuples():
    nested = (1, (2, "a"), 3.0)
    assert find_paths_if(nested, lambda path, value: isinstance(value, int)) == [(0,), (1, 0)]
    assert get_iterable_path(nested, (1, 1)) == "a"


@pytest.mark.parametrize(("shape", "kind"), [((3,), ValueError), ((2.0,), TypeError), ((1 << 21,), ValueError)])
def test_shapes_of_tiles(shape, kind):
    assert validate_block_shape((4, 8)) == 32
    with pytest.raises(kind):
        validate_block_shape(shape)
