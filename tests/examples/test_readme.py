"""The code in README.md does what README.md says: the kernel, its compilation, the C++ program, the Python call."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with add.py and main.cpp."""
    (tmp_path / "add.py").write_text(blocks("python")[0])
    (tmp_path / "main.cpp").write_text(blocks("cpp")[0])
    return tmp_path


def test_cpp_program(shell, compilers, project: Path):
    compile_and_link, build_and_run = (text for text in blocks("sh") if "make" not in text)
    shell(compile_and_link, project)
    assert shell(build_and_run.replace("g++", compilers["CXX"]), project) == "3.5 3.5\n"


def test_call_from_python(shell, project: Path):
    checks = "assert (out == x + y).all()\nprint('right')\n"
    (project / "add.py").write_text("\n".join([*blocks("python"), checks]))
    assert shell("python add.py", project) == "right\n"


LIBRARY_MAIN = """
#include "kernels.hpp"
#include <cstdio>

int main() {
    float x[3] = {1, 2, 3}, y[3] = {4, 5, 6}, out[3];
    kernels::checked::add(kernels::cpu, x, y, out, 3);
    std::printf("%g %g %g\\n", out[0], out[1], out[2]);
}
"""


def test_library(shell, compilers, project: Path):
    (project / "deuteron.toml").write_text(blocks("toml")[0])
    (project / "main.cpp").write_text(LIBRARY_MAIN)
    shell("deuteron build -t cpu", project)
    build = f"{compilers['CXX']} -std=c++17 main.cpp -Ibuild/kernels build/kernels/libkernels.a -lpthread -o main"
    assert shell(f"{build} && ./main", project) == "5 7 9\n"
