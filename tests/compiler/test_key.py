"""The cache key: every part counts, and two processes agree."""

import os
import subprocess
import sys
from importlib import metadata

import pytest

from deuteron import toolchain
from deuteron.compiler import key
from deuteron.options import CPUOptions, Target

PARTS = {
    "fingerprint": "source",
    "target": Target("cpu", "native", 1),
    "machine": "znver4 +avx512f",
    "options": CPUOptions(),
    "symbol": "",
    "disabled": (),
    "is_portable": False,
}
OTHERS = {
    "fingerprint": "source2",
    "target": Target("cpu", "x86-64-v3", 1),
    "machine": "znver4 ",
    "options": CPUOptions(num_warps=8),
    "symbol": "s",
    "disabled": ("fold",),
    "is_portable": True,
}


@pytest.mark.parametrize("name", PARTS)
def test_every_part_changes_the_key(name):
    assert key.cache_key(**PARTS) != key.cache_key(**{**PARTS, name: OTHERS[name]})


def test_versions_are_those_of_the_toolchain_and_of_this_package():
    python, llvmlite, xdsl, package = toolchain.toolchain()
    assert python == f"python {sys.version_info.major}.{sys.version_info.minor}"
    assert llvmlite.startswith("llvmlite 0.") and xdsl.startswith("xdsl 0.") and len(package) == 64


def test_a_changed_source_file_of_the_package_changes_the_version(tmp_path, monkeypatch):
    monkeypatch.setattr(toolchain, "PACKAGE", tmp_path)
    (tmp_path / "a.py").write_text("x = 1\n")
    before = toolchain._package_hash()
    (tmp_path / "a.py").write_text("x = 2\n")
    assert toolchain._package_hash() != before
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.py").write_text("")
    assert toolchain._package_hash() == before, "it is that of the sources, not of their files' times"


def test_sources_are_read_when_their_files_have_changed_only(tmp_path, monkeypatch):
    monkeypatch.setattr(toolchain, "PACKAGE", tmp_path / "package")
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "package").mkdir()
    source = tmp_path / "package" / "a.py"
    source.write_text("x = 1\n")
    before, status = toolchain._package_hash(), source.stat()
    monkeypatch.setattr(toolchain, "_hash_of_sources", lambda: "read")
    assert toolchain._package_hash() == before
    source.write_text("x = 2\n")
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert toolchain._package_hash() == "read", "as large as it was, and of the same time"


def test_of_what_is_installed_the_record_is_read(tmp_path, monkeypatch):
    """Of a checkout that is installed as a link the record does not have the files."""
    monkeypatch.setattr(toolchain, "PACKAGE", tmp_path / "deuteron")
    monkeypatch.setattr(toolchain, "_hash_of_sources", lambda: "read")
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "deuteron").mkdir()
    (tmp_path / "deuteron-1.0.dist-info").mkdir()
    record = tmp_path / "deuteron-1.0.dist-info" / "RECORD"
    assert toolchain._package_hash() == "read"
    record.write_text("__editable__.deuteron-1.0.pth,sha256=aa,3\n")
    assert toolchain._package_hash() == "read"
    record.write_text("deuteron/__init__.py,sha256=aa,3\ndeuteron/toolchain.py,sha256=bb,3\n")
    first = toolchain._package_hash()
    record.write_text("deuteron/__init__.py,sha256=aa,3\ndeuteron/toolchain.py,sha256=cc,3\n")
    assert len({first, toolchain._package_hash(), "read"}) == 3


def test_versions_are_those_that_are_installed():
    for name in ("llvmlite", "xdsl"):
        assert toolchain._installed_version(name) == metadata.version(name)


def test_two_processes_agree():
    code = (
        "from deuteron.compiler.key import cache_key; from deuteron.options import *;"
        "print(cache_key('s', Target('cpu', 'native', 1), 'm', CPUOptions(), ''))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


@pytest.mark.parametrize("is_zip", [True, False])
def test_modules_in_an_archive_or_in_a_frozen_program(is_zip, tmp_path, monkeypatch):
    """Of which no file can be read: it is another version where the file is another that has them."""
    archive = tmp_path / ("program.zip" if is_zip else "program")
    monkeypatch.setattr(toolchain, "PACKAGE", (archive if is_zip else tmp_path / "unpacked") / "deuteron")
    monkeypatch.setattr(toolchain.sys, "executable", str(tmp_path / "python" if is_zip else archive))
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path / "cache"))
    archive.write_bytes(b"one")
    first = toolchain._package_hash()
    archive.write_bytes(b"two")
    second = toolchain._package_hash()
    archive.write_bytes(b"one")
    assert toolchain._package_hash() == first != second


def test_modules_without_their_sources(tmp_path, monkeypatch):
    monkeypatch.setattr(toolchain, "PACKAGE", tmp_path)
    (tmp_path / "a.pyc").write_bytes(b"one")
    first = toolchain._package_hash()
    (tmp_path / "a.pyc").write_bytes(b"two")
    assert toolchain._package_hash() != first
