"""Kernels become the same texts, stage by stage, in processes of other hash seeds, in another order, cold and warm."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernels.families import CASES

PARTS = 15
NAMES = list(CASES)


def start(names: list[str], seed: int, cache: Path) -> subprocess.Popen:
    """With an emulator's seed that leaves assembling to whoever asks for a cubin."""
    here = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": str(seed), "DEUTERON_CACHE_DIR": str(cache)}
    command = [sys.executable, "-m", "compiler.compiled_texts", *names]
    return subprocess.Popen(
        command, env={**os.environ, **here, "DEUTERON_EMULATOR_SEED": "1"}, stdout=subprocess.PIPE, text=True
    )


def lines(process: subprocess.Popen) -> list[str]:
    text, _ = process.communicate()
    assert process.returncode == 0
    return sorted(text.splitlines())


@pytest.mark.share(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_same_in_other_processes(part: int, tmp_path: Path):
    names = NAMES[part::PARTS]
    forward, backward = start(names, 1, tmp_path / "one"), start(names[::-1], 2, tmp_path / "two")
    found = lines(forward)
    assert len(found) >= 8 * len(names)
    assert lines(backward) == found
    compiled = sorted((tmp_path / "one").rglob("*.kernel"))
    assert lines(start(names, 3, tmp_path / "one")) == found
    assert compiled and sorted((tmp_path / "one").rglob("*.kernel")) == compiled
