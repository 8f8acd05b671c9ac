"""A project on disk, and the builds of it: in this process, with the compiles in others."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from deuteron.library import BuildOptions, build_library, read_project
from deuteron.library.builder import Built

TOML = """
[library.norms]
targets = ["cpu"]
namespace = "acme"

[[library.norms.kernel]]
source = "kernels/norms.py"
name = "rms_norm"
grid = "n_rows"
host_parameters = { n_rows = "i32" }
[library.norms.kernel.types]
X = ["*fp16:16", "*fp32"]
Y = "same:X"
n = "i32"
[library.norms.kernel.constexprs]
BLOCK = [64, 128]

[[library.norms.kernel]]
module = "kernels.scale"
name = "scale"
grid = "cdiv(n, BLOCK)"
types = { x = "*fp32", factor = "fp32", n = "i32" }
constexprs = { BLOCK = 64 }
"""
NORMS = """
import triton
import triton.language as tl


@triton.jit
def rms_norm(X, Y, n, BLOCK: tl.constexpr, eps: tl.constexpr = 1e-5):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(X + row * n + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(Y + row * n + i, x * tl.rsqrt(tl.sum(x * x) / n + eps), mask=i < n)
"""
SCALE = """
import triton
import triton.language as tl

from .parts import multiplied


@triton.jit
def scale(x, factor, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, multiplied(tl.load(x + i, mask=i < n), factor), mask=i < n)
"""
PARTS = """
import triton


@triton.jit
def multiplied(x, factor):
    return x * factor
"""


@dataclass(frozen=True)
class Project:
    folder: Path

    @property
    def out(self) -> Path:
        return self.folder / "build" / "norms"

    @property
    def file(self) -> Path:
        return self.folder / "deuteron.toml"

    def build(self, **options: object) -> Built:
        library = read_project(self.file)["norms"]
        return build_library(library, self.out, BuildOptions(processes=2, **options))

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_text()
        assert old in text
        (self.folder / name).write_text(text.replace(old, new))

    def contents(self) -> dict[str, bytes]:
        files = (path for path in self.out.rglob("*") if path.is_file())
        return {path.relative_to(self.out).as_posix(): path.read_bytes() for path in files}

    def times(self) -> dict[str, int]:
        files = (path for path in self.out.rglob("*") if path.is_file())
        return {path.relative_to(self.out).as_posix(): path.stat().st_mtime_ns for path in files}

    def run(self, main: str, *flags: str, compiler: str = "g++") -> str:
        """What a program prints that is linked with the library."""
        source = self.folder / ("main.cpp" if compiler == "g++" else "main.c")
        source.write_text(main)
        std = "-std=c++17" if compiler == "g++" else "-std=c99"
        strict = ["-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic"]
        program = self.folder / "main"
        command = [compiler, std, *strict, f"-I{self.out}", source, *flags, "-lpthread", "-ldl", "-o", program]
        subprocess.run(command, check=True)
        return subprocess.run([program], capture_output=True, text=True, check=True).stdout


def write_project(folder: Path) -> Project:
    (folder / "kernels").mkdir(parents=True)
    for name, text in (("__init__", ""), ("norms", NORMS), ("scale", SCALE), ("parts", PARTS)):
        (folder / "kernels" / f"{name}.py").write_text(text)
    (folder / "deuteron.toml").write_text(TOML)
    return Project(folder)


STANDARDS = ["c99", "c11", "c++17", "c++20"]
_WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Wcast-qual"]
_WARNINGS += ["-Wredundant-decls", "-Wundef", "-Wvla", "-Wformat=2", "-Wnull-dereference", "-Werror", "-pedantic"]


def check_warnings(project: Project, compiler: str, std: str) -> None:
    """The C of a library has nothing that a compiler warns of; Zig's is a clang too."""
    command = [compiler]
    if not shutil.which(compiler):
        if compiler == "gcc" or not find_spec("ziglang"):
            pytest.skip(f"needs {compiler}")
        command = [sys.executable, "-m", "ziglang", "c++" if "+" in std else "cc", "-Qunused-arguments"]
    language = ["-x", "c++"] if "+" in std else []
    kernels = sorted(project.out.glob("kernels/*.c"))
    command += [*language, f"-std={std}", *_WARNINGS, "-c"]  # -fsyntax-only is nothing for Zig
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*command, project.out / "norms.c", kernels[0], kernels[-1]], cwd=folder, check=True)
        if language:
            header = ["-include", project.out / "norms.hpp"]
            subprocess.run([*command, *header, project.out / "norms.c"], cwd=folder, check=True)
