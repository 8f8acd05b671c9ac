"""Shared objects with a static library each, open in one program: each runs the version that it was linked with."""

import subprocess
from pathlib import Path

from library.project import Project, write_project

PLUGIN = """
#include "norms.hpp"

extern "C" float scaled(float value) {
  acme::checked::scale(acme::cpu, &value, 10.0f, 1);
  return value;
}
"""
HOST = """
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **names) {
  for (int round = 0; round < 3; round++)
    for (int i = 1; i < count; i++) {
      void *plugin = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL);
      if (!plugin)
        return puts(dlerror());
      printf("%g ", ((float (*)(float))dlsym(plugin, "scaled"))(2.0f));
      if (round == 2)
        dlclose(plugin);
    }
  return 0;
}
"""


def plugin(folder: Path, sum_: str) -> Path:
    """A plug-in with a version of the library, which says what its kernel computes of 2."""
    project = write_project(folder)
    project.edit("kernels/parts.py", "x * factor", sum_)
    project.build()
    return shared(project)


def shared(project: Project) -> Path:
    source, made = project.folder / "plugin.cpp", project.folder / "plugin.so"
    source.write_text(PLUGIN)
    library = project.out / "libnorms.a"
    command = ["g++", "-std=c++17", "-shared", "-fPIC", f"-I{project.out}", source, library, "-lpthread", "-o", made]
    subprocess.run(command, check=True)
    return made


def test_two_versions_of_a_library(tmp_path: Path):
    plugins = [plugin(tmp_path / "first", "x * factor"), plugin(tmp_path / "second", "x + factor")]
    (tmp_path / "host.c").write_text(HOST)
    subprocess.run(["gcc", tmp_path / "host.c", "-ldl", "-o", tmp_path / "host"], check=True)
    said = subprocess.run([tmp_path / "host", *plugins], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["20", "12"] * 3
