"""`check = "bounds"`: functions of a library that check what its kernels access."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from library.project import Project, check_warnings, write_project

from deuteron.errors import UsageError
from deuteron.library import read_project

MAIN = r"""
#include "norms.hpp"
#include <cstdio>

int main() {
  static float x[50 * 3], y[50 * 3];
  std::string text;
  int status = acme::rms_norm_checked(acme::cpu, x, y, 50, 4, sizeof x, sizeof y, deuteron::any_algo, &text);
  std::printf("%d %s\n", status, text.c_str());
  status = acme::rms_norm_checked(acme::cpu, x, y, 50, 3, sizeof x, sizeof y, deuteron::any_algo, &text);
  std::printf("%d %s\n", status, text.c_str());
  std::printf("%d\n", acme::scale_checked(reinterpret_cast<CUstream_st *>(x), x, 2, 50, sizeof x, 0, &text));
  try {
    acme::checked::rms_norm_checked(acme::cpu, x, y, 50, 3, sizeof x, 4, acme::rms_norm_fp32_select(128));
  } catch (const deuteron::error &error) {
    std::printf("%d %s\n", error.status(), error.what());
  }
  try {
    acme::checked::scale_checked(acme::cpu, x, 2, 151, sizeof x);
  } catch (const deuteron::error &error) {
    std::printf("%d %s\n", error.status(), error.what());
  }
  for (const std::uint64_t num_bytes : {std::uint64_t(200), UINT64_MAX}) {
    status = acme::scale_checked(acme::cpu, nullptr, 2, 50, num_bytes, deuteron::any_algo, &text);
    std::printf("%d %s\n", status, text.c_str());
  }
}
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = write_project(tmp_path / "project")
    project.edit("deuteron.toml", 'targets = ["cpu"]', 'targets = ["cpu"]\ncheck = "bounds"')
    return project


def test_functions_that_check(project: Project, monkeypatch: pytest.MonkeyPatch):
    project.edit("deuteron.toml", 'check = "bounds"', 'check = "bounds"\nline_info = true')
    project.build()
    for compiler, std in (("gcc", "c99"), ("gcc", "c++17")):
        check_warnings(project, compiler, std)
    lines = project.run(MAIN, str(project.out / "libnorms.a")).splitlines()
    assert lines[0].startswith("700 kernels/norms.py:10:9: error: Out-of-bounds load: lane (")
    assert "byte offset 600 of X, which has 600 bytes" in lines[0]
    assert lines[1:3] == ["0 ", "209"]
    assert lines[3].startswith("700 kernels/norms.py:11:5: error: Out-of-bounds store: lane (")
    assert "of Y, which has 4 bytes" in lines[3]
    assert "byte offset 600 of x" in lines[4]
    null = "offset 0 of x, which is null and has 0 bytes"
    assert all(line.startswith("700 ") and null in line for line in lines[5:7])
    assert not project.build().changed
    monkeypatch.setenv("DEUTERON_CHECK", "none")
    assert project.build(with_objects=False).compiled == 5
    assert "_checked(" not in (project.out / "norms.h").read_text()


def test_in_python(project: Project):
    project.edit("deuteron.toml", "[library.norms]", "[library.norms]\nshared = true")
    project.build()
    program = (
        "import numpy as np, norms\n"
        "x, y = np.ones((3, 50), np.float32), np.zeros((3, 50), np.float32)\n"
        "norms.rms_norm_fp32_checked(x, y, 50, 3)\n"
        "print(round(float(y.min()), 3))\n"
        "norms.rms_norm_fp32_checked(x, y.ctypes.data, 50, 3)\n"
        "try:\n    norms.rms_norm_fp32_checked(x, y[:2], 50, 3, algo_id=norms.rms_norm_fp32_select(BLOCK=128))\n"
        "except norms.Error as error:\n    print(error.status, error)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(project.out)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    first, second = done.stdout.splitlines() or [done.stderr, ""]
    assert first == "1.0"
    assert second.startswith("700 kernels/norms.py:11:5: error: Out-of-bounds store: ")
    assert "of Y, which has 400 bytes" in second


def test_the_environment_asks_for_it(project: Project, monkeypatch: pytest.MonkeyPatch):
    project.edit("deuteron.toml", '\ncheck = "bounds"', "")
    assert not read_project(project.file)["norms"].is_checked
    monkeypatch.setenv("DEUTERON_CHECK", "bounds")
    assert read_project(project.file)["norms"].is_checked


def test_another_value(project: Project):
    project.edit("deuteron.toml", '"bounds"', '"all"')
    with pytest.raises(UsageError, match="deuteron.toml:4:1: error: 'check' is \"bounds\", got 'all'"):
        read_project(project.file)
