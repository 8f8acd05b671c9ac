"""The CMake package, with examples/cmake: configure, build, run, edit, rebuild; vendored without Python; installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from library.project import write_project

import deuteron

EXAMPLE = Path(__file__).parents[2] / "examples" / "cmake"
CMAKE_DIR = Path(deuteron.__file__).parent / "cmake"
TOOLS = ("cmake", "ninja", "make", "cc", "c++", "gcc", "g++", "as", "ld", "ar", "ranlib", "nm", "sh", "uname")

pytestmark = pytest.mark.skipif(not (shutil.which("cmake") and shutil.which("ninja")), reason="needs cmake and ninja")

# What a project may have set for all its targets.
SETTINGS = ["-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_C_STANDARD=90", "-DCMAKE_C_EXTENSIONS=OFF"]
SETTINGS += ["-DCMAKE_C_FLAGS=-Wall -Werror", "-DCMAKE_C_VISIBILITY_PRESET=hidden"]

CONSUMER = """
cmake_minimum_required(VERSION 3.20)
project(consumer LANGUAGES C CXX)
find_package(Threads REQUIRED)
include(${INSTALLED}/lib/cmake/inference/inference-targets.cmake)
add_executable(consumer main.cpp)
target_link_libraries(consumer PRIVATE inference::layers)
target_compile_features(consumer PRIVATE cxx_std_17)
"""


class CMakeProject:
    """The example in a folder of its own, built for the CPU alone, with a command `deuteron` that is this one."""

    def __init__(self, folder: Path):
        self.folder = folder / "project"
        shutil.copytree(EXAMPLE, self.folder, ignore=shutil.ignore_patterns("build*", "vendor", "__pycache__"))
        self.command = folder / "bin" / "deuteron"
        self.command.parent.mkdir()
        self.command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m deuteron "$@"\n')
        self.command.chmod(0o755)
        self.path = f"{self.command.parent}:{os.environ['PATH']}"

    def run(self, *command: object, status: int = 0) -> str:
        environment = {**os.environ, "PATH": self.path}
        done = subprocess.run(
            [str(word) for word in command], cwd=self.folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def configure(self, build: str = "build", *flags: str, generator: str = "Ninja", status: int = 0) -> str:
        command = ("cmake", "-S", ".", "-B", build, "-G", generator, f"-DDeuteron_DIR={CMAKE_DIR}", *flags)
        return self.run(*command, status=status)

    def build(self, folder: str = "build", status: int = 0) -> str:
        return self.run("cmake", "--build", folder, status=status)

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.folder / name
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
        later = path.stat().st_mtime + 2
        os.utime(path, (later, later))


@pytest.fixture
def project(tmp_path: Path) -> CMakeProject:
    return CMakeProject(tmp_path)


def objects_in(said: str) -> set[str]:
    """The sources that were compiled."""
    lines = (line for line in said.splitlines() if "Building C" in line)
    return {Path(line.split()[-1]).name.partition(".")[0] for line in lines}


@pytest.mark.parametrize("generator", ["Ninja", pytest.param("Unix Makefiles", marks=pytest.mark.long)])
def test_build_edit_rebuild(project: CMakeProject, generator: str):
    project.configure("build", "-DKERNEL_TARGETS=cpu", generator=generator)
    assert objects_in(project.build()) == {"layers", "rms_norm", "attention", "swiglu", "main"}
    assert project.run("build/inference", "cpu").endswith(": right\n")
    assert not objects_in(project.build())
    project.edit("kernels/activations.py", "x / (1.0 + tl.exp(-x))", "x * tl.sigmoid(x)")
    said = project.build()
    assert "compiled 1 of 3 kernels" in said and "--sources-only" not in said
    assert objects_in(said) == {"layers", "swiglu"}
    assert project.run("build/inference", "cpu").endswith(": right\n")
    project.edit("kernels/norm.py", "tl.rsqrt", "tl.rsqt")
    said = project.build(status=1 if generator == "Ninja" else 2)
    assert "norm.py:13:13: error: Module 'triton.language' has no 'rsqt'" in said
    assert "layers.hpp" not in said  # what was to be made is not listed
    project.edit("kernels/norm.py", "tl.rsqt", "tl.rsqrt")
    project.build()
    for file in [
        *(project.folder / "build/deuteron/layers").glob("kernels/rms*"),
        project.folder / "build/liblayers.a",
    ]:
        file.unlink()
    assert objects_in(project.build()) <= {"rms_norm"}
    assert project.run("build/inference", "cpu").endswith(": right\n")


def test_two_targets_of_one_library(project: CMakeProject):
    small = "deuteron_add_library(small MANIFEST deuteron.toml LIBRARY layers TARGETS cpu:x86-64-v2 SHARED)"
    project.edit("CMakeLists.txt", "add_executable", f"{small}\nadd_executable")
    project.configure("build", "-DKERNEL_TARGETS=cpu", *SETTINGS)
    project.run("cmake", "--build", "build", "--target", "small", "layers")
    assert (project.folder / "build/libsmall.so").exists() and (project.folder / "build/liblayers.a").exists()
    folders = {"cpu:x86-64-v3": "layers", "cpu:x86-64-v2": "small/layers"}
    for target, folder in folders.items():
        assert target in (project.folder / "build/deuteron" / folder / "layers.json").read_text()


def test_vendored_without_python(project: CMakeProject, tmp_path: Path):
    project.run("deuteron", "build", "layers", "--sources-only", "-o", "vendor", "-t", "cpu")
    project.command.unlink()
    (tmp_path / "tools").mkdir()
    for tool in TOOLS:
        if found := shutil.which(tool):
            (tmp_path / "tools" / tool).symlink_to(found)
    project.path = str(tmp_path / "tools")
    project.configure("build", "-DVENDORED=ON", "-DBUILD_SHARED_LIBS=ON")
    project.build()
    assert (project.folder / "build" / "liblayers.so").exists()
    assert project.run("build/inference", "cpu").endswith(": right\n")
    check_installed(project, tmp_path)

    project.edit("CMakeLists.txt", "VENDOR_DIR vendor", "VENDOR_DIR vendor TARGETS cpu:x86-64-v3")
    project.configure("build")
    project.edit("CMakeLists.txt", "TARGETS cpu:x86-64-v3", "TARGETS cpu cuda:90")
    said = " ".join(project.configure("build", status=1).split())
    assert "vendor/layers' have no kernel for cuda:90. Make them anew: deuteron build layers" in said
    project.edit("CMakeLists.txt", " TARGETS cpu cuda:90", "")

    assert "'deuteron' was not found" in project.configure("other", status=1).replace("`", "'").replace("\n  ", " ")
    project.edit("kernels/activations.py", "x / (1.0 + tl.exp(-x))", "x * tl.sigmoid(x)")
    said = " ".join(project.build(status=1).split())
    assert "The committed sources are stale: " in said and "kernels/activations.py' is not what they were made" in said
    assert f"deuteron build layers --sources-only -f '{project.folder}/deuteron.toml' -o " in said


def check_installed(project: CMakeProject, tmp_path: Path) -> None:
    """What is installed is found by another project, and the folder of sources is a project of its own."""
    project.run("cmake", "--install", "build", "--prefix", tmp_path / "prefix")
    consumer = tmp_path / "consumer"
    consumer.mkdir()
    (consumer / "CMakeLists.txt").write_text(CONSUMER)
    for name in ("main.cpp", "device.h"):
        shutil.copy(project.folder / name, consumer)
    project.run("cmake", "-S", consumer, "-B", consumer / "out", "-G", "Ninja", f"-DINSTALLED={tmp_path / 'prefix'}")
    project.run("cmake", "--build", consumer / "out")
    assert project.run(consumer / "out/consumer", "cpu").endswith(": right\n")
    project.run("cmake", "-S", "vendor/layers", "-B", tmp_path / "alone", "-G", "Ninja", *SETTINGS)
    project.run("cmake", "--build", tmp_path / "alone")


CROSS = """
cmake_minimum_required(VERSION 3.20)
project(cross LANGUAGES C)
find_package(Deuteron REQUIRED)
deuteron_add_library(norms MANIFEST deuteron.toml)
add_executable(app main.c)
target_link_libraries(app PRIVATE norms)
"""
CROSS_MAIN = """
#include <stdio.h>
#include "norms.h"

int main(void) {
  float x[3] = {1, 2, 3};
  const deuteron_status status = scale_default(DEUTERON_CPU, x, 2, 2);
  printf("%s %g %g\\n", deuteron_status_string(status), x[1], x[2]);
  return 0;
}
"""
TOOLCHAIN = """
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR {0})
set(CMAKE_C_COMPILER {0}-linux-gnu-gcc)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
"""


@pytest.mark.skipif(
    not (shutil.which("aarch64-linux-gnu-gcc") and shutil.which("qemu-aarch64")), reason="needs a compiler for AArch64"
)
def test_cross_compiling(project: CMakeProject, tmp_path: Path):
    """The target `cpu` is the processor that is compiled for, not the one at hand; where one library is vendored for
    several it names them."""
    shutil.rmtree(project.folder)
    written = write_project(project.folder)
    first, _, scale = written.file.read_text().split("[[library.norms.kernel]]")
    written.file.write_text(f"{first}[[library.norms.kernel]]{scale}")
    for name, text in (("CMakeLists.txt", CROSS), ("main.c", CROSS_MAIN), ("tools.cmake", TOOLCHAIN.format("aarch64"))):
        (project.folder / name).write_text(text)
    project.configure("build", "-DCMAKE_TOOLCHAIN_FILE=tools.cmake")
    project.build()
    assert project.run("qemu-aarch64", "build/app") == "success 4 3\n"
    said = project.run("deuteron", "build", "--architecture", "riscv64", status=1)
    assert "Deuteron has no code for 'riscv64' processors, for aarch64 and x86_64: leave the target cpu away" in said
    written.edit("deuteron.toml", '["cpu"]', '["cpu:arm64", "cpu:amd64"]')
    project.run("deuteron", "build", "--quiet", "--sources-only", "-o", "vendor")
    written.edit("CMakeLists.txt", "MANIFEST deuteron.toml", "MANIFEST deuteron.toml VENDOR_DIR vendor")
    project.build()
    assert project.run("qemu-aarch64", "build/app") == "success 4 3\n"


MISTAKES = [
    ("MANIFEST deuteron.toml", "", "deuteron_add_library(layers) needs MANIFEST"),
    ("MANIFEST deuteron.toml", "MANIFEST deuteron.toml STATIC SHARED", "is either STATIC or SHARED"),
    ("MANIFEST deuteron.toml", "MANIFEST deuteron.toml OUT x", "unknown argument 'OUT;x'. There are MANIFEST, LIBRARY"),
    ("MANIFEST deuteron.toml", "MANIFEST deuteron.toml LIBRARY layer", "declares no library 'layer'. Did you mean"),
    ("LANGUAGES C CXX", "LANGUAGES CXX", "needs the language C: project(... LANGUAGES C CXX)"),
]


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES)
def test_mistakes(project: CMakeProject, old: str, new: str, message: str):
    project.edit("CMakeLists.txt", old, new)
    assert message in " ".join(project.configure(status=1).split())
