"""The ahead-of-time demo: compiled, linked into the C++ program, run; the program itself compares with float64.

For GPUs it is compiled where there is ptxas, and run where there is a GPU.
"""

from __future__ import annotations

import re
from pathlib import Path

AOT = Path(__file__).resolve().parents[2] / "examples" / "aot"


def command(build: Path, compilers: dict[str, str]) -> str:
    return f"make -C '{AOT}' BUILD='{build}' CC={compilers['CC']} CXX={compilers['CXX']} run"


def check_cuda(printed: str, build: Path) -> None:
    """Compiled for both architectures and built without CUDA, or said why not."""
    if "ptxas was not found" in printed:
        assert "So the kernel is not compiled for GPUs." in printed
        return
    assert "-t cuda:80" in printed and "-t cuda:90" in printed
    assert (build / "program_cuda").is_file()
    assert "There is no NVIDIA GPU, so nothing was run." in printed or "All results are right" in printed


def test_demo(shell, compilers, tmp_path: Path):
    printed = shell(command(tmp_path, compilers), tmp_path)
    on_cpu = printed.partition("cuda:80")[0]
    rows = re.findall(r"^ +\d+ +\d+ +\d+ +\d+ +\d+ +(\d+) +(\S+) +(\S+) +(\S+) ", on_cpu, re.MULTILINE)
    assert {row[0] for row in rows} == {"128", "64"}
    assert len(rows) == 10
    assert all(float(row[2]) < 1e-3 and float(row[3]) < 1e-5 for row in rows)
    assert str(tmp_path / "cpu") in printed
    check_cuda(printed.partition("All results are right")[2], tmp_path)

    again = shell(command(tmp_path, compilers), tmp_path)
    assert "deuteron compile" not in again
    assert "All results are right" in again
