"""A cache that machines share: what one has compiled another takes, if it is signed; a failure is a warning."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.compiler import ASTSource, cache, remote_cache
from deuteron.compiler import compile as compile_source

fsspec = pytest.importorskip("fsspec")

SECRET = "a secret that nobody guesses"
ADDRESS = "memory://team/kernels"


@deuteron.jit
def tripled(out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(out + i, i < n) * 3, i < n)


@pytest.fixture(autouse=True)
def remote(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store of this test's own, and its key."""
    monkeypatch.setenv("DEUTERON_REMOTE_CACHE", ADDRESS)
    monkeypatch.setenv("DEUTERON_CACHE_KEY", SECRET)
    monkeypatch.setattr(remote_cache, "_failed", set())
    monkeypatch.setattr("deuteron.trusted_files._warned", set())
    files = fsspec.filesystem("memory")
    files.store.clear()
    files.pseudo_dirs[:] = [""]


def compiled(folder: Path, monkeypatch: pytest.MonkeyPatch, target: str = "cpu") -> deuteron.CompiledKernel:
    """A compile on a machine whose own cache is that folder."""
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(folder))
    source = ASTSource(tripled, {"out": "*fp32", "n": "i32"}, {"BLOCK": 16})
    return compile_source(source, target)


def stored() -> list[str]:
    return [name for name in fsspec.filesystem("memory").store if name.endswith(".kernel")]


def test_what_one_machine_has_compiled_another_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    first = compiled(tmp_path / "first", monkeypatch)
    assert not first.is_cached
    assert stored() == [f"/team/kernels/{first.hash[:2]}/{first.hash}.kernel"]
    second = compiled(tmp_path / "second", monkeypatch)
    assert second.is_cached and second.asm["obj"] == first.asm["obj"]
    fsspec.filesystem("memory").store.clear()
    assert compiled(tmp_path / "second", monkeypatch).is_cached, "it is kept there"
    monkeypatch.delenv("DEUTERON_REMOTE_CACHE")
    assert compiled(tmp_path / "second", monkeypatch).is_cached, "as an entry of its own"


def test_a_launch_takes_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for machine in ("first", "second"):
        monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path / machine))
        kernel = deuteron.jit(tripled.fn)
        out = np.ones(16, np.float32)
        kernel[(1,)](out, 9, BLOCK=16)
        assert out.tolist() == [3] * 9 + [1] * 7
    assert len(stored()) == 1


@pytest.mark.parametrize("change", ["a byte", "cut", "another key", "not signed", "another's"])
def test_what_is_not_signed_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str):
    first = compiled(tmp_path / "first", monkeypatch)
    (name,) = stored()
    files = fsspec.filesystem("memory")
    content = files.cat_file(name)
    if change == "a byte":
        content = content[:-7] + bytes([content[-7] ^ 1]) + content[-6:]
    elif change == "cut":
        content = content[:-1]
    elif change == "not signed":
        content = cache.encode_file(first.hash, cache.decode_file(first.hash, content, is_signed=True))
    elif change == "another's":
        content = content.replace(first.hash.encode(), first.hash[::-1].encode())
    files.pipe_file(name, content)
    if change == "another key":
        monkeypatch.setenv("DEUTERON_CACHE_KEY", SECRET + "!")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second = compiled(tmp_path / "second", monkeypatch)
        assert not second.is_cached
        assert compiled(tmp_path / "third", monkeypatch).is_cached, "it was written again"


@pytest.mark.parametrize("key", ["", "too short"])
def test_without_a_key_it_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str):
    monkeypatch.setenv("DEUTERON_CACHE_KEY", key)
    with pytest.warns(
        RuntimeWarning, match=f"the cache '{ADDRESS}' is not used: .* 16 or more bytes in DEUTERON_CACHE_KEY"
    ):
        assert not compiled(tmp_path / "first", monkeypatch).is_cached
    assert not stored()


def test_without_fsspec_it_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.warns(RuntimeWarning, match=r"it takes fsspec: pip install 'deuteron\[remote-cache\]'"):
        assert not compiled(tmp_path / "first", monkeypatch).is_cached


@pytest.mark.parametrize("address", ["nothing://x", "memory://"])
def test_what_fails_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str):
    """And asked no more: a store that does not answer would hold up every kernel."""
    monkeypatch.setenv("DEUTERON_REMOTE_CACHE", address)
    asked = []

    def fail(files: object, place: str) -> bytes:
        asked.append(place)
        raise ConnectionError("no route")

    monkeypatch.setattr(fsspec.get_filesystem_class("memory"), "cat_file", fail)
    with pytest.warns(RuntimeWarning, match=f"the cache '{address}' .DEUTERON_REMOTE_CACHE. is not used: ") as said:
        for machine in ("first", "second"):
            assert not compiled(tmp_path / machine, monkeypatch).is_cached
    assert len(said) == 1 and len(asked) == (address == "memory://")


def test_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DEUTERON_REMOTE_CACHE", f"file://{tmp_path}/shared")
    first = compiled(tmp_path / "first", monkeypatch)
    assert compiled(tmp_path / "second", monkeypatch).is_cached
    files = [path.name for path in (tmp_path / "shared").rglob("*") if path.is_file()]
    assert files == [f"{first.hash}.kernel"]
