"""What docs/aot.md says of Make, Meson, Bazel and Go: its blocks as they stand, with a small library."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from library.project import Project, write_project

DOCS = (Path(__file__).parents[2] / "docs" / "aot.md").read_text()
MAIN = """
#include <stdio.h>
#include "norms.h"

int main(void) {
  float x[3] = {1, 2, 3};
  const deuteron_status status = scale_default(DEUTERON_CPU, x, 2, 2);
  printf("%s %g %g\\n", deuteron_status_string(status), (double)x[1], (double)x[2]);
  return 0;
}
"""
GO = """package main

{preamble}
import "fmt"

func main() {{
	x := []float32{{1, 2, 3}}
	status := C.scale_default(C.deuteron_stream(C.DEUTERON_CPU), (*C.float)(&x[0]), 2, 2)
	fmt.Println(C.GoString(C.deuteron_status_string(status)), x[1], x[2])
}}
"""


def block(language: str) -> str:
    """The text of the one block of a language."""
    (text,) = re.findall(rf"```{language}\n(.*?)```", DOCS, re.DOTALL)
    return text


class Built:
    """A project with one kernel, `scale`, and tools that find a command `deuteron`, which is this one."""

    def __init__(self, folder: Path):
        self.project: Project = write_project(folder / "project")
        first, _, scale = self.project.file.read_text().split("[[library.norms.kernel]]")
        self.project.file.write_text(f"{first}[[library.norms.kernel]]{scale}")
        self.write("main.c", MAIN)
        command = folder / "bin" / "deuteron"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m deuteron "$@"\n')
        command.chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}"}

    def write(self, name: str, text: str) -> None:
        path = self.project.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def edit(self, name: str, old: str, new: str) -> None:
        """Edit a file, so that its time is another, too."""
        self.project.edit(name, old, new)
        path = self.project.folder / name
        later = path.stat().st_mtime + 5
        os.utime(path, (later, later))

    def run(self, *command: object, status: int = 0) -> str:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self.project.folder,
            env=self.environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return Built(tmp_path)


@pytest.mark.skipif(not (shutil.which("make") and shutil.which("cc")), reason="needs make and cc")
def test_make(built: Built):
    built.write("Makefile", block("make"))
    assert "compiled 1 of 1 kernel" in built.run("make", "-j2")
    assert built.run("./app") == "success 4 3\n"
    assert "up to date" in built.run("make") and "deuteron" not in built.run("make")
    built.edit("kernels/parts.py", "x * factor", "x + factor")
    assert "compiled 1 of 1 kernel" in built.run("make")
    assert built.run("./app") == "success 4 3\n"
    (built.project.folder / "kernels/parts.py").rename(built.project.folder / "kernels/pieces.py")
    assert "No module named 'kernels.parts'" in built.run("make", status=2)  # of the kernel, not of make's rule
    built.edit("kernels/scale.py", "from .parts", "from .pieces")
    built.edit("kernels/pieces.py", "x + factor", "x - factor")
    built.run("make")
    assert built.run("./app") == "success 0 3\n"


@pytest.mark.skipif(not (shutil.which("meson") and shutil.which("ninja")), reason="needs Meson and Ninja")
def test_meson(built: Built):
    text = block("meson")
    assert text.startswith("# norms/meson.build, after project(...); then: subdir('norms')  executable(")
    project = "project('app', 'c')\nsubdir('norms')\nexecutable('app', 'main.c', dependencies: norms)\n"
    built.write("meson.build", project)
    built.write("norms/meson.build", text)
    built.run("meson", "setup", "out")
    built.run("ninja", "-C", "out")
    assert built.run("out/app") == "success 4 3\n"
    assert "no work to do" in built.run("ninja", "-C", "out")
    built.edit("kernels/parts.py", "x * factor", "x - factor")
    built.run("ninja", "-C", "out")
    assert built.run("out/app") == "success 0 3\n"


def test_a_rule_of_bazel(built: Built, tmp_path: Path):
    """Its command in an empty environment, with sources that cannot be written."""
    (command,) = re.findall(r'cmd = "(.*)"', block("starlark").replace("$$", "$"))
    outs = tmp_path / "outs"
    command = command.replace("$(location deuteron.toml)", str(built.project.file)).replace("$(RULEDIR)", str(outs))
    folders = [built.project.folder, built.project.folder / "kernels"]
    for folder in folders:
        folder.chmod(0o555)
    passed = {name: os.environ[name] for name in ("PYTHONPATH", "TMPDIR", "LD_LIBRARY_PATH") if name in os.environ}
    built.environment = {**passed, "PATH": built.environment["PATH"]}
    try:
        assert built.run("sh", "-c", command) == f"norms: compiled 1 of 1 kernel into '{outs}/norms'\n"
    finally:
        for folder in folders:
            folder.chmod(0o755)
    names = re.findall(r'"norms/([^"]*)"', block("starlark"))
    assert names == ["libnorms.a", "norms.h", "norms.hpp"] and all((outs / "norms" / name).exists() for name in names)


@pytest.mark.skipif(not (shutil.which("go") and shutil.which("pkg-config")), reason="needs Go and pkg-config")
def test_go(built: Built):
    preamble, _, call = block("go").partition("// ")
    built.write("program/main.go", GO.format(preamble=preamble))
    built.write("go.mod", "module app\n")
    built.run("deuteron", "build")
    folder = built.project.folder
    own = {"PKG_CONFIG_PATH": str(folder / "build/norms"), "GOCACHE": str(folder / "cache"), "GOFLAGS": "-mod=mod"}
    built.environment |= own
    assert built.run("go", "run", "./program") == "success 4 3\n"
    assert "C.deuteron_stream(C.DEUTERON_CPU), (*C.float)(&x[0])" in call
