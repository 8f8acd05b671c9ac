"""The data: what JSON holds, that it is documented, that numbers in it are of what is there; texts as inputs."""

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
from explorer.conftest import explored, kernel

import deuteron
from deuteron.compiler import IRSource
from deuteron.explorer import explore
from deuteron.explorer.model import Exploration

DOCS = Path(__file__).resolve().parents[2] / "docs" / "explorer.md"


@pytest.mark.parametrize("target", ["cuda:90", "cpu"])
def test_numbers_are_of_what_is_there(target):
    found = json.loads(json.dumps(explored("matmul", target).exploration.to_dict()))
    assert (found["format"], found["version"]) == ("deuteron-explorer", 1)
    for text in (*found["stages"], *found["passes"]):
        assert len(text["lines"]) == len(text["at"])
        assert all(0 <= place < len(found["places"]) for places in text["at"] for place in places)
    for file, line, column in found["places"]:
        parts = found["files"][file]["parts"]
        assert any(part["first"] <= line < part["first"] + len(part["lines"]) for part in parts) and column >= 1


def test_edits_lead_from_one_pass_to_the_next():
    passes = [one for one in explored("attention", "cuda:90").exploration.passes if one.is_changed]
    for before, after in zip(passes, passes[1:], strict=False):
        if not after.name:
            continue
        kept = [
            line for number, line in enumerate(before.lines) if not any(a <= number < b for a, b, _, _ in after.edits)
        ]
        same = [
            line for number, line in enumerate(after.lines) if not any(c <= number < d for _, _, c, d in after.edits)
        ]
        assert len(kept) == len(same)
    last = {one.stage: one.lines for one in passes}
    for stage in explored("attention", "cuda:90").exploration.stages:
        assert stage.lines == last.get(stage.name, stage.lines)


def test_every_field_is_documented():
    text = DOCS.read_text()
    assert [field.name for field in fields(Exploration) if f"`{field.name}`" not in text] == []


def test_a_kernel_from_text():
    """Of tile IR without a Python file the text is the source."""
    text = re.sub(r" loc\(#loc\d*\)|^#loc.*\n", "", kernel("matmul", "cuda:80").asm["ttir"], flags=re.MULTILINE)
    compiled = deuteron.compile(IRSource.from_text(text, "ttir"), "cuda:80", {"num_warps": 4})
    found = explore(compiled).exploration
    assert found.files[0].path == "<ttir>" and found.files[0].parts[0].lines[0].startswith("module")
    assert any(found.stages[0].at)
