"""The output folder changes as a whole."""

from pathlib import Path

import pytest

from deuteron.library.folder import recover, replaced_folder


def contents(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(params=["exchange", "renames"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.param == "renames":
        monkeypatch.setattr("deuteron.library.folder._exchanged", lambda first, second: False)
    (tmp_path / "out/a").mkdir(parents=True)
    for name, text in (("a/same", "1"), ("a/other", "2"), ("gone", "3"), ("mine", "4")):
        (tmp_path / "out" / name).write_text(text)
    return tmp_path / "out"


def test_it_is_replaced(folder: Path):
    before = (folder / "a/same").stat()
    with replaced_folder(folder, {"a/same", "a/other", "gone"}) as staging:
        (staging / "a").mkdir()
        (staging / "a/same").write_text("1")
        (staging / "a/other").write_text("new")
    assert contents(folder) == {"a/same": "1", "a/other": "new", "mine": "4"}
    after = (folder / "a/same").stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)
    assert [path.name for path in folder.parent.iterdir()] == ["out"]


def test_an_exception_leaves_it(folder: Path):
    before = contents(folder)
    with pytest.raises(ValueError), replaced_folder(folder, before) as staging:
        (staging / "new").write_text("")
        raise ValueError
    assert contents(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == ["out"]


def test_two_renames_that_were_interrupted(tmp_path: Path):
    (tmp_path / ".out.old").mkdir()
    (tmp_path / ".out.old/x").write_text("1")
    recover(tmp_path / "out")
    assert contents(tmp_path) == {"out/x": "1"}
    (tmp_path / ".out.old").mkdir()
    recover(tmp_path / "out")
    assert contents(tmp_path) == {"out/x": "1"} and not (tmp_path / ".out.old").exists()
