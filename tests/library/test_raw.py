"""Machine code without a C compiler: objects for several systems, archives, a header, JSON; run where it can be."""

import ctypes
import hashlib
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from library.project import Project, write_project

from deuteron.backend.metadata import Apart
from deuteron.library.manifest import Entry, read_manifest
from deuteron.library.raw_code import raw_library

EMULATOR, COMPILER = "qemu-aarch64", "aarch64-linux-gnu-gcc"
# Scales 100 numbers, in two parts.
MAIN = """
#include "norms_raw.h"
#include <stdio.h>

int main(void) {
  static float x[100];
  float *places = x, factor = 1.5f;
  int32_t n = 99;
  deuteron_raw_control control = {0};
  const uint32_t grid[3] = {2, 1, 1};
  void *args[4];
  int i, wrong = 0;
  args[0] = &places, args[1] = &factor, args[2] = &n, args[3] = &control;
  for (i = 0; i < 100; i++)
    x[i] = (float)i;
  SYMBOL(args, grid, 1, 2, NULL);
  SYMBOL(args, grid, 0, 1, NULL);
  for (i = 0; i < 100; i++)
    wrong += x[i] != (i < 99 ? 1.5f : 1.0f) * (float)i;
  printf("%d\\n", wrong);
  return wrong;
}
"""


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = write_project(tmp_path_factory.mktemp("raw"))
    objects = 'objects = ["linux", "macos", "windows"]'
    project.edit("deuteron.toml", 'targets = ["cpu"]', f'targets = ["cpu:x86-64-v2", "cpu:neoverse-v2"]\n{objects}')
    project.build(with_objects=False)
    return project


def kernels(project: Project) -> list[dict]:
    fields = json.loads((project.out / "raw" / "norms_raw.json").read_text())
    assert (fields["format"], fields["version"], fields["library"]) == ("deuteron-raw", 1, "norms")
    return fields["kernels"]


def scale(project: Project, target: str) -> str:
    """The symbol of the kernel that scales."""
    (found,) = (k["symbol"] for k in kernels(project) if (k["function"], k["target"]) == ("scale", target))
    return found


def program(project: Project, compiler: str, target: str, folder: str, flags: list[str]) -> Path:
    main, made = project.folder / f"{folder}.c", project.folder / folder
    main.write_text(MAIN.replace("SYMBOL", scale(project, target)))
    library = project.out / "raw" / folder / "libnorms_raw.a"
    command = [compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", f"-I{project.out}/raw", *flags]
    subprocess.run([*command, main, library, "-o", made], check=True)
    return made


def test_what_is_there(raw: Project):
    folders = {f"{system}-{arch}" for system in ("linux", "macos", "windows") for arch in ("x86_64", "aarch64")}
    assert {path.name for path in (raw.out / "raw").iterdir() if path.is_dir()} == folders
    for kernel in kernels(raw):
        assert len(kernel["files"]) == 3
        for name, digest in kernel["files"].items():
            assert hashlib.sha256((raw.out / name).read_bytes()).hexdigest() == digest
        assert kernel["symbol"] in (raw.out / "raw" / "norms_raw.h").read_text()
    assert (raw.out / "raw" / "windows-x86_64" / "norms_raw.lib").read_bytes().startswith(b"!<arch>\n/ ")
    assert not list(raw.out.rglob("*.so")) and not (raw.out / "libnorms.a").exists()


def test_what_its_caller_sees_to(raw: Project):
    """Which arrays must not overlap; that programs wait for one another; and nothing of kernels that demand nothing."""
    manifest = read_manifest(raw.out / "norms.json")
    entry = next(entry for entry in manifest.entries if entry.record.out_name == "scale")
    assert "wait" not in made_of(entry)[0] and "overlap" not in made_of(entry)[0]
    pointer, other = entry.record.arguments[0].name, entry.record.arguments[1].name
    demanding = replace(entry.record, waiting_line=7, uses_tiles=True, apart=(Apart(pointer, other),))
    header, fields = made_of(replace(entry, record=demanding))
    for demand in ("wait for one another", "tiles of AMX", f"must not overlap: {pointer} and {other}."):
        assert demand in header
    assert (fields["waits"], fields["uses_tiles"], len(fields["apart"])) == (True, True, 1)


def made_of(entry: Entry) -> tuple[str, dict]:
    """The header and the fields of a library of one kernel."""
    made = raw_library("one", [entry], lambda name: b"")
    return " ".join(made["raw/one_raw.h"].split()), json.loads(made["raw/one_raw.json"])["kernels"][0]


def test_run_on_linux(raw: Project):
    if not shutil.which("gcc") or ctypes.sizeof(ctypes.c_void_p) != 8:
        pytest.skip("needs gcc")
    made = program(raw, "gcc", "cpu:x86-64-v2", "linux-x86_64", ["-fsanitize=address,undefined"])
    assert subprocess.run([made], capture_output=True, text=True, check=True).stdout == "0\n"


@pytest.mark.skipif(not (shutil.which(COMPILER) and shutil.which(EMULATOR)), reason=f"needs {COMPILER} and {EMULATOR}")
def test_run_on_aarch64(raw: Project):
    made = program(raw, COMPILER, "cpu:neoverse-v2", "linux-aarch64", ["-static"])
    assert subprocess.run([EMULATOR, made], capture_output=True, text=True, check=True).stdout == "0\n"


@pytest.mark.skipif(not shutil.which("lld-link"), reason="needs lld-link")
@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_link_for_windows(raw: Project, architecture: str):
    library = raw.out / "raw" / f"windows-{architecture}" / "norms_raw.lib"
    symbol = scale(raw, "cpu:x86-64-v2" if architecture == "x86_64" else "cpu:neoverse-v2")
    machine = {"x86_64": "x64", "aarch64": "arm64"}[architecture]  # LLD 14 does not see it from what it exports
    flags = ["/dll", "/noentry", f"/machine:{machine}", f"/export:{symbol}", "/force:unresolved"]
    subprocess.run(["lld-link", *flags, f"/out:{raw.folder / architecture}.dll", library], check=True)


def test_an_edit_makes_its_own_objects_anew(raw: Project, tmp_path: Path):
    shutil.copytree(raw.folder, tmp_path / "project")
    project = Project(tmp_path / "project")
    before = project.contents()
    project.edit("kernels/parts.py", "x * factor", "x * factor * 2.0")
    assert project.build(with_objects=False).compiled == 2
    changed = {name for name, content in project.contents().items() if before.get(name) != content}
    assert {name for name in changed if name.endswith(".o")} == {
        name for name in changed if "/scale." in name and name.endswith(".o")
    }
    assert sum(name.endswith((".a", ".lib")) for name in changed) == 6
