"""Every example as a newcomer starts it: `deuteron run`, and plain Python where the file imports Deuteron itself.

An example raises where its result is wrong.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
IMPORT_DEUTERON = [path for path in EXAMPLES if "import deuteron" in path.read_text()]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_deuteron_run(shell, path: Path, tmp_path: Path):
    printed = shell(f"deuteron run '{path}'", tmp_path)
    assert "relative error" in printed or "NumPy" in printed


@pytest.mark.share(3)
@pytest.mark.parametrize("path", IMPORT_DEUTERON, ids=lambda path: path.stem)
def test_plain_python(shell, path: Path, tmp_path: Path):
    printed = shell(f"python '{path}'", tmp_path)
    assert "relative error" in printed or "NumPy" in printed


def test_arguments_reach_the_script(shell, tmp_path: Path):
    shell(f"deuteron run '{ROOT}/examples/softmax_benchmark.py' results", tmp_path)
    assert {path.name for path in (tmp_path / "results").iterdir()} >= {"softmax.csv", "softmax.png"}


def test_some_examples_say_import_triton():
    assert len(EXAMPLES) - len(IMPORT_DEUTERON) >= 2
    assert len(IMPORT_DEUTERON) >= 5
