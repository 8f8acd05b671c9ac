"""`compile` with a backend of three stages: cache, dumps, overrides, texts as input."""

import pytest

import deuteron
from deuteron.compiler import IRSource
from deuteron.compiler.driver import compile_with
from deuteron.errors import IRError, UsageError
from deuteron.options import Target

TARGET = Target("fake", 0)


def compile_text(backend, text="add x", stage="one", symbol=None, **options):
    return compile_with(backend, IRSource.from_text(text, stage), TARGET, backend.make_options(options), symbol)


def test_the_result_has_texts_metadata_and_a_launch_function(backend):
    kernel = compile_text(backend)
    assert (kernel.name, kernel.metadata.symbol, kernel.metadata.scratch_bytes) == ("add", "add", 64)
    assert kernel.asm["one"] == "add x" and kernel.asm["three"] == b"ADD X"
    assert list(kernel.asm) == ["one", "two", "three", "list"]
    assert str(kernel.asm.keys()) == "KeysView(StageTexts(one, two, three, list))"  # and no address
    assert [param.name for param in kernel.metadata.params] == ["x", "n"]
    kernel[(8,)](1234, 7)
    assert backend.calls[-1] == (b"ADD X", (8, 1, 1), (1234, 7))


def test_a_text_on_demand_is_made_once_when_asked_for(backend):
    kernel = compile_text(backend)
    assert "list" in kernel.asm and "list" not in backend.calls
    assert kernel.asm["list"].endswith("characters") and kernel.asm["list"]
    assert backend.calls.count("list") == 1


def test_a_second_compile_comes_from_the_cache_and_runs_no_stage(backend):
    first = compile_text(backend)
    backend.calls.clear()
    second = compile_text(backend)
    assert backend.calls == [] and second.is_cached and not first.is_cached
    assert second.metadata == first.metadata and second.hash == first.hash
    assert dict(second.asm) == dict(first.asm)


@pytest.mark.parametrize("change", [{"text": "add y"}, {"num_warps": 8}, {"symbol": "other"}])
def test_a_change_compiles_again(backend, change):
    compile_text(backend)
    assert not compile_text(backend, **change).is_cached


def test_always_compile_does_not_read_the_cache(backend, monkeypatch):
    compile_text(backend)
    monkeypatch.setenv("DEUTERON_ALWAYS_COMPILE", "1")
    assert not compile_text(backend).is_cached


def test_a_cache_directory_that_cannot_be_written_is_no_error(backend, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path / "file"))
    assert compile_text(backend).asm["three"] == b"ADD X"


def test_an_override_neither_reads_nor_fills_the_cache(backend, tmp_path, monkeypatch):
    compile_text(backend)
    monkeypatch.setenv("DEUTERON_OVERRIDE_DIR", str(tmp_path))
    metadata = compile_text(backend).asm["two"].partition("\n")[0]
    (tmp_path / "add.two").write_text(f"{metadata}\nmine")
    assert compile_text(backend).asm["three"] == b"mine"
    monkeypatch.delenv("DEUTERON_OVERRIDE_DIR")
    assert compile_text(backend).asm["three"] == b"ADD X"


@pytest.mark.parametrize("times", [1, 2])
def test_a_dump_is_written_on_a_compile_and_on_a_hit(backend, tmp_path, monkeypatch, times):
    for _ in range(times - 1):
        compile_text(backend)
    monkeypatch.setenv("DEUTERON_DUMP_DIR", str(tmp_path / "dump"))
    kernel = compile_text(backend)
    names = {path.name for path in (tmp_path / "dump" / kernel.hash).iterdir()}
    assert names == {"add.one", "add.two", "add.three", "add.list"}


def test_a_text_with_metadata_can_be_the_input(backend):
    first = compile_text(backend, symbol="add_1")
    again = compile_text(backend, text=first.asm["two"], stage="two")
    assert (again.name, again.metadata.symbol, again.metadata.scratch_bytes) == ("add", "add_1", 64)
    assert again.metadata.params == first.metadata.params
    assert again.asm["two"] == first.asm["two"] and again.asm["three"] == first.asm["three"]


def test_a_text_that_lacks_its_metadata_says_so(backend):
    with pytest.raises(UsageError, match="the first line of a .two input must be the comment"):
        compile_text(backend, text="ADD", stage="two")


def test_a_text_that_does_not_parse_leaves_nothing_in_the_cache(backend, tmp_path):
    with pytest.raises(IRError, match="bad text in <one>"):
        compile_text(backend, text="bad")
    assert list((tmp_path / "cache").rglob("*.kernel")) == []


def test_a_target_that_there_is_not():
    with pytest.raises(UsageError, match="does not compile for 'hip' yet"):
        deuteron.compile(IRSource.from_text("", "ttir"), target=Target("hip", "gfx942", 64))


def test_a_file_that_does_not_exist():
    with pytest.raises(UsageError, match="cannot read 'none.ttir'"):
        deuteron.compile("none.ttir", target="cpu")


def test_something_else_is_not_a_source():
    with pytest.raises(UsageError, match="compile takes an ASTSource"):
        deuteron.compile(42, target="cpu")
