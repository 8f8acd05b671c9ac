"""Whose machine code a process runs out of its cache: its own; of a shared cache what is signed."""

from __future__ import annotations

import json
import os
import stat
import warnings

import numpy as np
import pytest
from compiler.test_cache import KEY, entry_file, make_entry

import deuteron
import deuteron.language as tl
from deuteron import trusted_files
from deuteron.compiler import cache, cache_folder

SECRET = "0123456789abcdef"

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="users and modes of files as Unix has them")


@pytest.fixture(autouse=True)
def nothing_warned_of(monkeypatch):
    monkeypatch.setattr(trusted_files, "_warned", set())
    monkeypatch.delenv("DEUTERON_CACHE_SHARED", raising=False)
    monkeypatch.delenv("DEUTERON_CACHE_KEY", raising=False)


@pytest.fixture
def stored(tmp_path):
    """A cache folder with an entry, in both forms, and code."""
    folder = tmp_path / "kernels"
    assert cache.store(folder, KEY, make_entry()) and cache_folder.store(folder, KEY, make_entry(), "add")
    assert trusted_files.kept(folder, KEY, lambda: b"code") == b"code"
    return folder


def found(folder):
    """What is read from a folder: an entry, one that is a folder, code."""
    code = trusted_files.kept(folder, KEY, lambda: b"made again")
    return cache.load(folder, KEY), cache_folder.load(folder, KEY), code


ALL = make_entry(), make_entry(), b"code"
NOTHING = None, None, b"made again"


def test_it_is_made_for_its_owner_alone(stored, tmp_path):
    assert found(stored) == ALL
    for path in [stored, *stored.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


@pytest.mark.parametrize("mode", [0o777, 0o722, 0o1777])
def test_a_folder_that_others_may_write_is_not_used(stored, mode):
    stored.chmod(mode)
    with pytest.warns(RuntimeWarning, match=f"'{stored}' is not used, .* others may write it"):
        assert cache.load(stored, KEY) is None
    files = {path: path.stat().st_mtime_ns for path in stored.rglob("*")}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        assert found(stored) == NOTHING
        assert not cache.store(stored, "4a" * 32, make_entry())
        assert not cache_folder.store(stored, "4a" * 32, make_entry(), "add")
    assert {path: path.stat().st_mtime_ns for path in stored.rglob("*")} == files
    stored.chmod(0o755)
    assert found(stored) == ALL


def as_user(monkeypatch, user):
    monkeypatch.setattr(os, "geteuid", lambda: user)


def test_a_folder_of_another_user_is_not_used(stored, monkeypatch):
    os.getuid() == 0 and [os.chown(path, 4321, -1) for path in [stored, *stored.rglob("*")]]
    as_user(monkeypatch, 12345)
    with pytest.warns(RuntimeWarning, match=f"'{stored}' is not used, .* belongs to another user"):
        assert found(stored) == NOTHING


@pytest.mark.skipif(os.name == "nt" or os.getuid() != 0, reason="files of another user are made by root")
def test_what_root_has_put_there_is_used(stored, monkeypatch):
    as_user(monkeypatch, 12345)
    assert found(stored) == ALL


def test_a_group_of_the_user_alone_may_write(stored, monkeypatch):
    stored.chmod(0o775)
    own = trusted_files._user_name(os.geteuid())
    for name, members, is_used in ((own, [], True), (own, [own], True), (own, ["eve"], False), ("staff", [], False)):
        trusted_files._is_own_group.cache_clear()
        group = type("Group", (), {"gr_name": name, "gr_mem": members})
        monkeypatch.setattr("grp.getgrgid", lambda number, group=group: group)
        trusted_files._warned.add(next(iter(trusted_files._warned), ""))
        assert trusted_files.is_usable(stored) == is_used, (name, members)
    trusted_files._is_own_group.cache_clear()


def test_a_file_that_others_may_write_is_not_used(stored):
    entry_file(stored).chmod(0o666)
    with pytest.warns(RuntimeWarning, match=f"'{entry_file(stored)}' of the cache is not used: others may write it"):
        assert cache.load(stored, KEY) is None
    assert cache.store(stored, KEY, make_entry()) and cache.load(stored, KEY) == make_entry()


def test_an_entry_under_the_name_of_another_is_absent(stored):
    other = "3f" + "ab" * 31
    entry_file(stored).rename(stored / "3f" / f"{other}.kernel")
    (stored / "3f" / f"{KEY}.code").rename(stored / "3f" / f"{other}.code")
    (stored / cache_folder.base32(KEY)).rename(stored / cache_folder.base32(other))
    assert cache.load(stored, other) is None and cache_folder.load(stored, other) is None
    assert trusted_files.kept(stored, other, lambda: b"made again") == b"made again"


def share(monkeypatch, key):
    monkeypatch.setenv("DEUTERON_CACHE_SHARED", "1")
    monkeypatch.setenv("DEUTERON_CACHE_KEY", key)


def test_a_shared_cache_is_for_those_who_have_its_key(tmp_path, monkeypatch):
    folder = tmp_path / "shared"
    share(monkeypatch, SECRET)
    assert cache.store(folder, KEY, make_entry()) and cache_folder.store(folder, KEY, make_entry(), "add")
    trusted_files.kept(folder, KEY, lambda: b"code")
    umask = os.umask(0o022)
    os.umask(umask)
    assert all(path.stat().st_mode & 0o444 & ~umask == 0o444 & ~umask for path in folder.rglob("*"))
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o777)
    as_user(monkeypatch, 12345)
    assert found(folder) == ALL
    share(monkeypatch, SECRET + "other")
    assert cache.load(folder, KEY) is None and cache_folder.load(folder, KEY) is None


def test_what_is_not_signed_is_not_read_from_a_shared_cache(stored, monkeypatch):
    share(monkeypatch, SECRET)
    assert cache.load(stored, KEY) is None and cache_folder.load(stored, KEY) is None
    assert trusted_files.kept(stored, KEY, lambda: b"made again") == b"made again"


@pytest.mark.parametrize("key", ["", "too short"])
def test_a_shared_cache_without_a_key_is_not_used(stored, monkeypatch, key):
    share(monkeypatch, key)
    with pytest.warns(RuntimeWarning, match=f"'{stored}' is not used: .* 16 or more bytes in DEUTERON_CACHE_KEY"):
        assert found(stored) == NOTHING
    assert not cache.store(stored, KEY, make_entry())


def test_a_changed_entry_of_a_shared_cache_is_absent(tmp_path, monkeypatch):
    share(monkeypatch, SECRET)
    cache.store(tmp_path, KEY, make_entry())
    path = entry_file(tmp_path)
    line, _, body = path.read_bytes().partition(b"\n")
    header = json.loads(line)
    header["metadata"] = header["metadata"].replace('"add"', '"sub"')
    path.write_bytes(json.dumps(header).encode() + b"\n" + body)
    assert cache.load(tmp_path, KEY) is None


@deuteron.jit
def store_five(out):
    tl.store(out, 5)


@pytest.mark.parametrize("failure", ["a file", "full"])
def test_where_nothing_can_be_kept_launches_warn_and_go_on(tmp_path, monkeypatch, failure):
    folder = tmp_path / "kernels"
    if failure == "full":
        real = os.open

        def full(path, flags, *mode, **more):
            if flags & os.O_CREAT and str(path).startswith(str(folder)):
                raise OSError(28, "No space left on device")
            return real(path, flags, *mode, **more)

        monkeypatch.setattr(os, "open", full)
    else:
        folder.write_text("")
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(folder))
    monkeypatch.setenv("DEUTERON_TARGET", "cpu")
    out = np.zeros(1, np.int32)
    store_five.device_caches.clear()
    with pytest.warns(RuntimeWarning, match=f"not kept in the cache folder '{folder}': (No space left|File exists)"):
        store_five[(1,)](out)
    assert out[0] == 5
