"""`deuteron cache`: what it lists, removes, and takes from one folder to another."""

from __future__ import annotations

import errno
import io
import json
import os
import tarfile
import time

import pytest
from click.testing import CliRunner
from compiler.test_cache import make_entry

from deuteron import trusted_files
from deuteron.compiler import cache, cache_folder
from deuteron.tools.main import main

KEYS = [f"{index:02x}" * 32 for index in range(3)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache with a kernel as a file, one as a folder, and code, each used an hour after the one before."""
    found = tmp_path / "kernels"
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(found))
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    cache.store(found, KEYS[0], make_entry(b"x" * 5000))
    cache_folder.store(found, KEYS[1], make_entry(), "add")
    trusted_files.kept(found, KEYS[2], lambda: b"code")
    paths = [found / "00" / f"{KEYS[0]}.kernel", found / cache_folder.base32(KEYS[1]) / "kernel.deuteron"]
    for index, path in enumerate(paths):
        os.utime(path, (time.time() - 3600 * (48 - index),) * 2)
    return found


def run(*args):
    found = CliRunner().invoke(main, ["cache", *args])
    assert found.exit_code == 0, found.output
    return found.output


def listed(*args):
    return [row["key"] for row in json.loads(run("ls", "--json", *args))]


def test_ls(folder):
    lines = [line.split() for line in run("ls").splitlines()]
    assert lines[0] == ["key", "kernel", "target", "size", "used"]
    assert [line[:3] for line in lines[1:]] == [
        [KEYS[2][:12], "-", "-"],
        [KEYS[1][:12], "add", "cpu:native"],
        [KEYS[0][:12], "add", "cpu:native"],
    ]
    assert listed() == KEYS[::-1] and listed("--kernel", "add") == KEYS[1::-1] and listed("--kernel", "sub") == []
    assert listed("--target", "cuda:90") == [] and listed("--target", "cpu:native") == KEYS[1::-1]


def test_size(folder):
    assert run("size").startswith("3 entries, ") and run("size").endswith(f"at most 2.0 GB, in {folder}\n")


def test_a_folder_that_is_not_there_is_empty(tmp_path, monkeypatch):
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path / "absent"))
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    assert listed() == [] and run("size").startswith("0 entries, 0 B") and run("clear").startswith("removed 0 entries")


def test_clear_what_was_not_used(folder):
    assert run("clear", "--unused", "1.98").startswith("removed 1 entry, 6 KB")
    assert listed() == KEYS[:0:-1]


def test_clear_a_kernel_and_everything(folder):
    run("clear", "--kernel", "add")
    assert listed() == [KEYS[2]]
    run("clear")
    assert listed() == [] and [path for path in folder.rglob("*") if path.is_file()] == []


def test_export_and_import(folder, tmp_path, monkeypatch):
    assert run("export", str(tmp_path / "kernels.tar.gz")).startswith("exported 2 kernels")
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path / "elsewhere"))
    assert run("import", str(tmp_path / "kernels.tar.gz")) == "imported 2 kernels\n"
    assert cache.load(tmp_path / "elsewhere", KEYS[0]) == make_entry(b"x" * 5000)
    assert cache.load(tmp_path / "elsewhere", KEYS[1]) == make_entry()


def test_a_full_disk_leaves_the_earlier_archive(folder, tmp_path, monkeypatch):
    archive = tmp_path / "kernels.tar.gz"
    run("export", str(archive))
    before = archive.read_bytes()

    def no_space(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("deuteron.compiler.cache_contents._add", no_space)
    result = CliRunner().invoke(main, ["cache", "export", str(archive)])
    assert result.stderr == f"error: '{archive}' cannot be written: No space left on device\n"
    assert archive.read_bytes() == before and list(tmp_path.glob(".*")) == []


def test_a_damaged_entry_is_not_exported_and_not_imported(folder, tmp_path, monkeypatch):
    entry = folder / "00" / f"{KEYS[0]}.kernel"
    content = entry.read_bytes()
    entry.write_bytes(content[:-1])
    assert run("export", str(tmp_path / "a.tar.gz")).startswith("exported 1 kernel,")
    with tarfile.open(tmp_path / "b.tar", "w") as archive:
        for name in (f"00/{KEYS[0]}.kernel", f"01/{KEYS[1]}.kernel", f"../01/{KEYS[1]}.kernel"):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path / "elsewhere"))
    assert run("import", str(tmp_path / "b.tar")).startswith("imported 1 kernel; 1 are damaged")
    assert listed() == [KEYS[0]]


@pytest.mark.parametrize(
    "options, which",
    [
        (["--kernel", "ad"], "there is no kernel 'ad' in the cache, FOLDER. Did you mean 'add'?"),
        (["--kernel", "add", "--target", "cuda:90"], "there is no kernel 'add' for cuda:90 in the cache, FOLDER."),
        (["--target", "cuda:90"], "there is no kernel for cuda:90 in the cache, FOLDER."),
    ],
)
def test_nothing_to_export_is_an_error(folder, tmp_path, options, which):
    found = CliRunner().invoke(main, ["cache", "export", str(tmp_path / "a.tar.gz"), *options])
    assert found.exit_code == 1 and not (tmp_path / "a.tar.gz").exists()
    assert found.output == f"error: {which.replace('FOLDER', str(folder))}\n"


def test_what_is_no_archive_is_refused(folder, tmp_path):
    (tmp_path / "text").write_text("text")
    found = CliRunner().invoke(main, ["cache", "import", str(tmp_path / "text")])
    assert found.exit_code == 1 and "is not what `deuteron cache export` wrote" in found.output
    assert len(found.output.splitlines()) == 1


def test_an_import_into_a_shared_cache_needs_the_key(folder, tmp_path, monkeypatch):
    run("export", str(tmp_path / "unsigned.tar.gz"))
    monkeypatch.setenv("DEUTERON_CACHE_SHARED", "1")
    monkeypatch.setenv("DEUTERON_CACHE_KEY", "0123456789abcdef")
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path / "shared"))
    assert run("import", str(tmp_path / "unsigned.tar.gz")).startswith("imported 0 kernels; 2 are damaged")
