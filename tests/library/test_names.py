"""Kernels and parameters called as the functions around them call what is their own, or as libc does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from library.project import Project

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def select(stream, algo_id, reason, text, status, message, new, arguments, SHAPE: tl.constexpr):
    tl.store(stream, algo_id + reason + text + status + message + new + arguments + SHAPE[1][0])
"""
TOML = """
[library.norms]
targets = ["cpu"]
shared = true
torch = true
check = "bounds"

[[library.norms.kernel]]
source = "k.py"
name = "select"
grid = "1"
types = { stream = "*i32", algo_id = "i32", reason = "u16", text = "i32", status = "i32", message = "i64", \
new = "i32", arguments = "i32" }
constexprs = { SHAPE = [[1, [2, "tl.int8", "None"]], [1, [3]]] }
"""
IN_CXX = r"""
#include "norms.hpp"
#include <cstdio>
#include <sys/select.h>

int main() {
  int x = 0;
  const char *why;
  std::string text;
  const int second = norms::select_select();
  int status = norms::select_supports(norms::cpu, &x, 1, 2, 3, 4, 5, 6, 7, 1, &why);
  status += norms::select(norms::cpu, &x, 1, 2, 3, 4, 5, 6, 7);
  std::printf("%d %d %d\n", status, second, x);
  status = norms::select_checked(norms::cpu, &x, 1, 2, 3, 4, 5, 6, 7, 3, 1, &text);
  std::printf("%d %d\n", status, text.find("stream, which has 3 bytes") != text.npos);
}
"""
IN_PYTHON = """
import numpy as np, norms
x = np.zeros(1, np.int32)
norms.select(x, 1, 2, 3, 4, 5, 6, 7, algo_id=1)
print(x[0], norms.select_supports(x, 1, 2, 3, 4, 5, 6, 7))
try:
    norms.select_checked(x[:0], 1, 2, 3, 4, 5, 6, 7)
except norms.Error as error:
    print(error.status)
"""


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("names"))
    (project.folder / "k.py").write_text(KERNEL)
    project.file.write_text(TOML.replace("\\\n", ""))
    project.build()
    return project


def test_in_cxx(named: Project):
    assert named.run(IN_CXX, str(named.out / "libnorms.a")) == "0 0 30\n700 1\n"


def test_in_python(named: Project):
    environment = {**os.environ, "PYTHONPATH": str(named.out)}
    done = subprocess.run([sys.executable, "-c", IN_PYTHON], env=environment, capture_output=True, text=True)
    assert done.stdout == "31 \n700\n", done.stderr


@pytest.mark.torch
def test_in_torch(named: Project):
    torch = pytest.importorskip("torch")
    include = Path(torch.__file__).parent / "include"
    flags = ["-std=c++20", "-fsyntax-only", "-DTORCH_TARGET_VERSION=0x020a000000000000", "-isystem", include]
    subprocess.run(["g++", "-Wall", "-Wextra", "-Werror", *flags, named.out / "norms_torch.cpp"], check=True)
