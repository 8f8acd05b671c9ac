"""Pages link to files and headings that there are, and the code names modules that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "benchmarks/results/README.md", *(ROOT / "docs").rglob("*.md")])
CODE = re.compile(r"```.*?```|^    .*?$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """The headings of a page as links name them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    words = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-") for text in words}


def missing(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = (page.parent / name) if name else page
    return not target.exists() or (anchor != "" and anchor not in anchors(target))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links(page: Path):
    links = LINK.findall(CODE.sub("", page.read_text()))
    assert [link for link in links if "://" not in link and missing(page, link)] == []


def test_what_is_not_there_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A `heading` of *it*\n")
    assert not missing(page, "#a-heading-of-it") and not missing(page, "page.md")
    assert missing(page, "#another") and missing(page, "other.md")


SOURCES = ROOT / "src/deuteron"
FOLDERS = "|".join(path.name for path in SOURCES.iterdir() if path.is_dir() and not path.name.startswith("_"))
NAMED = re.compile(rf"`((?:{FOLDERS})(?:\.[A-Za-z_]\w*)+)`")


def is_there(name: str) -> bool:
    """Whether `backend.tensor_map.TensorMap.sizes` is a module, or begins with a name that one has."""
    module, parts = SOURCES, name.split(".")
    while parts and ((module / parts[0]).is_dir() or (module / f"{parts[0]}.py").is_file()):
        module /= parts.pop(0)
    file = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
    return not parts or re.search(rf"\b{parts[0]}\b", file.read_text()) is not None


def test_modules_that_are_named_are_there():
    """But those of Triton, which `compat` and its page name."""
    sources = [file for file in SOURCES.rglob("*.py") if SOURCES / "compat" not in file.parents]
    files = [*sources, *(page for page in PAGES if page.stem != "compat")]
    named = {(file.name, name) for file in files for name in NAMED.findall(file.read_text())}
    assert len(named) > 15
    assert {(file, name) for file, name in named if not is_there(name)} == set()


def test_every_page_of_measurements_is_in_their_index():
    index = ROOT / "benchmarks/results/README.md"
    pages = {page.name for page in index.parent.glob("*.md")} - {index.name}
    assert pages == {link for link in LINK.findall(index.read_text()) if "/" not in link}
