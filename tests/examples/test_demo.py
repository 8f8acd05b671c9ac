"""The ahead-of-time demo: compiled, linked into the C++ program, run; the program itself compares with float64."""

from __future__ import annotations

import re
from pathlib import Path

AOT = Path(__file__).resolve().parents[2] / "examples" / "aot"


def command(build: Path, compilers: dict[str, str]) -> str:
    return f"make -C '{AOT}' BUILD='{build}' CC={compilers['CC']} CXX={compilers['CXX']} run"


def test_demo(shell, compilers, tmp_path: Path):
    printed = shell(command(tmp_path, compilers), tmp_path)
    rows = re.findall(r"^ +\d+ +\d+ +\d+ +\d+ +\d+ +(\d+) +(\S+) +(\S+) +(\S+) ", printed, re.MULTILINE)
    assert {row[0] for row in rows} == {"128", "64"}
    assert len(rows) == 10
    assert all(float(row[2]) < 1e-3 and float(row[3]) < 1e-5 for row in rows)
    assert str(tmp_path / "aot") in printed

    again = shell(command(tmp_path, compilers), tmp_path)
    assert "deuteron compile" not in again
    assert "All results are right" in again
