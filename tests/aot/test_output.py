"""Files of one command are written together or not at all."""

import os
from pathlib import Path

import pytest

from deuteron.aot.output import depfile_text, write_files
from deuteron.errors import UsageError


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_writes_all_and_makes_folders(tmp_path: Path):
    write_files({tmp_path / "a/b/x.c": "1", tmp_path / "a/x.h": "2"})
    assert contents(tmp_path) == {"a/b/x.c": "1", "a/x.h": "2"}
    assert (tmp_path / "a/x.h").stat().st_mode & 0o444 == (tmp_path / "a/b/x.c").stat().st_mode & 0o444


def test_a_file_that_cannot_be_written_leaves_the_others_as_they_were(tmp_path: Path):
    (tmp_path / "x.c").write_text("old")
    (tmp_path / "x.h").mkdir()
    with pytest.raises(UsageError, match="cannot write '.*x.h': it is a folder"):
        write_files({tmp_path / "x.c": "new", tmp_path / "x.h": "new"})
    assert contents(tmp_path) == {"x.c": "old"}


def test_a_folder_that_cannot_be_made(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write '.*': '.*' is no folder"):
        write_files({tmp_path / "file/x.c": "new"})
    assert contents(tmp_path) == {"file": ""}


def test_what_is_there_already_is_left_alone(tmp_path: Path):
    assert write_files({tmp_path / "x.c": "1", tmp_path / "x.h": b"2"}) == [tmp_path / "x.c", tmp_path / "x.h"]
    before = (tmp_path / "x.c").stat().st_mtime_ns
    assert write_files({tmp_path / "x.c": "1", tmp_path / "x.h": "3"}) == [tmp_path / "x.h"]
    assert (tmp_path / "x.c").stat().st_mtime_ns == before
    assert contents(tmp_path) == {"x.c": "1", "x.h": "3"}


def test_what_is_no_file_is_written_to_and_a_link_stays_one(tmp_path: Path):
    """`--depfile /dev/null` had made a file of it, where it was called by root."""
    (tmp_path / "x.c").write_text("old")
    (tmp_path / "link.c").symlink_to("x.c")
    reading, writing = os.pipe()
    try:
        write_files({tmp_path / "link.c": "new", Path(f"/dev/fd/{writing}"): "a rule"})
        assert os.read(reading, 100) == b"a rule"
    finally:
        os.close(reading)
        os.close(writing)
    assert (tmp_path / "link.c").is_symlink() and (tmp_path / "x.c").read_text() == "new"


def test_depfile_text():
    text = depfile_text([Path("a.c"), Path("a.h")], [Path("k #1.py"), Path("$x.py")])
    assert text == "a.c a.h: \\\n  k\\ \\#1.py \\\n  $$x.py\nk\\ \\#1.py:\n$$x.py:\n"


def test_a_depfile_has_the_bytes_of_a_name_that_is_no_utf8(tmp_path: Path):
    write_files({tmp_path / "x.d": depfile_text([Path("a.c")], [Path(os.fsdecode(b"k\xe9.py"))])})
    assert (tmp_path / "x.d").read_bytes() == b"a.c: \\\n  k\xe9.py\nk\xe9.py:\n"
