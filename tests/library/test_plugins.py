"""Several libraries in one program: shared objects with a static library each, which run the version that they were
linked with; static libraries that have an equal kernel."""

import subprocess
from pathlib import Path

from library.project import Project, write_project

from deuteron.library import Library, build_library, read_project

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


TWO_TEAMS = """
#include "norms.hpp"
#include "sums.hpp"

int main() {
  float first = 2.0f, second = 2.0f;
  norms::checked::scale(norms::cpu, &first, 10.0f, 1);
  sums::checked::scale(sums::cpu, &second, 11.0f, 1);
  return first == 20.0f && second == 22.0f ? 0 : 1;
}
"""


def test_two_libraries_with_an_equal_kernel(tmp_path: Path):
    """Also where a linker is told to take all of both, and where their code becomes one unit."""
    kernels = read_project(write_project(tmp_path).file)["norms"].kernels[1:]
    for name in ("norms", "sums"):
        build_library(Library(name, ["cpu"], kernels, root=tmp_path), tmp_path / name)
    (tmp_path / "main.cpp").write_text(TWO_TEAMS)
    libraries = ["-Wl,--whole-archive", "norms/libnorms.a", "sums/libsums.a", "-Wl,--no-whole-archive"]
    kernels = ["norms/norms.c", "sums/sums.c", *tmp_path.glob("*/kernels/*.c")]
    for linked in (libraries, ["-flto", "-xc++", *kernels]):
        command = ["g++", "-std=c++17", "-Inorms", "-Isums", "main.cpp", *linked, "-lpthread", "-o", "app"]
        subprocess.run(command, check=True, cwd=tmp_path)
        assert subprocess.run([tmp_path / "app"]).returncode == 0
