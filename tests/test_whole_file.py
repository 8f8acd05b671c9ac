"""Files that are written whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from deuteron.whole_file import whole_file


def test_what_was_there_stays_until_all_is_written(tmp_path: Path):
    path = tmp_path / "page.html"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), whole_file(path) as beside:
        beside.write_text("ne")
        raise KeyboardInterrupt
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["page.html"]
    with whole_file(path) as beside:
        beside.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new" and os.listdir(tmp_path) == ["page.html"]


def test_a_link_stays_one(tmp_path: Path):
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link"
    link.symlink_to(Path("folder") / "file")
    for text in ("made", "changed"):
        with whole_file(link) as beside:
            beside.write_text(text)
        assert link.is_symlink() and (tmp_path / "folder" / "file").read_text() == text


def test_who_may_read_it_is_up_to_the_umask(tmp_path: Path):
    before = os.umask(0o077)
    try:
        with whole_file(tmp_path / "file") as beside:
            beside.write_text("")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs POSIX")
def test_what_is_no_file_stays_what_it_is():
    with whole_file(Path(os.devnull)) as path:
        path.write_text("nothing")
    assert not Path(os.devnull).is_file()
