"""Kernels and parameters called as the functions around them call what is their own, or as libc does."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from library.project import Project

from deuteron.errors import UsageError
from deuteron.library import Kernel

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def select(stream, algo_id, reason, text, status, message, new, arguments, SHAPE: tl.constexpr):
    tl.store(stream, algo_id + reason + text + status + message + new + arguments + SHAPE[1][0])


@triton.jit
def check(x, SIZE_MAX, typeof, ctypes, Error, CPU, status_of, Ok, NAN, BIG_ENDIAN: tl.constexpr):
    tl.store(x, SIZE_MAX + typeof + ctypes + Error + CPU + status_of + Ok + NAN + BIG_ENDIAN)
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

[[library.norms.kernel]]
source = "k.py"
name = "check"
grid = "1"
types = { x = "*i32", SIZE_MAX = "i32", typeof = "i32", ctypes = "i32", Error = "i32", CPU = "i32", status_of = "i32", \
Ok = "i32", NAN = "i32" }
constexprs = { BIG_ENDIAN = 1 }
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
norms.check(x, 1, 2, 3, 4, 5, 6, 7, 8)
print(x[0], norms.check_supports(x, 1, 2, 3, 4, 5, 6, 7, 8), norms.check_select(BIG_ENDIAN_=1))
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
    assert done.stdout == "31 \n700\n37  0\n", done.stderr


def test_in_c_of_gnu(named: Project):
    """Its words, and macros of the headers that come with it."""
    includes = ["limits", "math", "signal", "stdio", "complex", "pthread", "norms"]
    text = "".join(f"#include <{name}.h>\n" for name in includes)
    for standard in ("gnu99", "gnu17"):
        command = ["gcc", f"-std={standard}", "-D_GNU_SOURCE", "-I", named.out, "-fsyntax-only", "-x", "c", "-"]
        subprocess.run(command, input=text, text=True, check=True)


@pytest.mark.skipif(not shutil.which("rustc"), reason="needs rustc")
def test_in_rust(named: Project):
    command = ["rustc", "--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "norms.rs"]
    subprocess.run([*command, "-o", "norms.meta"], cwd=named.out, check=True)


@pytest.mark.parametrize("name", ["cpu", "checked"])
def test_a_name_that_every_library_has_in_cxx(name: str):
    with pytest.raises(UsageError, match=f"'{name}' is a name of a library's own in C.*: give an 'out_name'"):
        Kernel(name=name, grid="1", source="k.py")


def test_words_of_rust_and_python_name_functions_with_an_underscore(tmp_path: Path):
    project = Project(tmp_path)
    (project.folder / "k.py").write_text("import triton\n\n\n@triton.jit\ndef k(x):\n    pass\n")
    names = ["lambda", "match", "self", "ctypes", "Error", "size"]
    kernel = '[[library.norms.kernel]]\nsource = "k.py"\nname = "k"\ngrid = "1"\ntypes = { x = "*i8" }\nout_name = '
    head = '[library.norms]\ntargets = ["cpu"]\nshared = true\n'
    project.file.write_text(head + "".join(f'{kernel}"{name}"\n' for name in names))
    project.build(with_objects=False)
    python, rust = ((project.out / f"norms.{kind}").read_text() for kind in ("py", "rs"))
    called = ["lambda_", "match", "self", "ctypes_", "Error_", "size"]
    defined = [node.name for node in ast.parse(python).body if isinstance(node, ast.FunctionDef)]
    assert set(called) <= set(defined) and len(set(defined)) == len(defined)
    assert all(f"pub unsafe fn {name}(" in rust for name in ("match_", "self_", "Error_", "size"))


@pytest.mark.torch
def test_in_torch(named: Project):
    torch = pytest.importorskip("torch")
    include = Path(torch.__file__).parent / "include"
    flags = ["-std=c++20", "-fsyntax-only", "-DTORCH_TARGET_VERSION=0x020a000000000000", "-isystem", include]
    subprocess.run(["g++", "-Wall", "-Wextra", "-Werror", *flags, named.out / "norms_torch.cpp"], check=True)
