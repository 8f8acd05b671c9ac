"""Where kernels are found: in files, in packages with relative imports, as modules; and what they were read from."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from deuteron.aot.dependencies import dependencies_of
from deuteron.aot.load import ModuleName, load_module
from deuteron.tools.main import main

HELPER = """
import deuteron as triton


@triton.jit
def doubled(x):
    return x * 2
"""
KERNEL = """
import triton
import triton.language as tl
from {source} import doubled


@triton.jit
def scale(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, doubled(tl.load(x + i)))
"""


def make_package(folder: Path, package: str) -> Path:
    """A package with kernels in a package of its own; returns the file of the kernel."""
    inner = folder / package / "ops"
    inner.mkdir(parents=True)
    (folder / package / "__init__.py").write_text("from .ops.scale import scale\n")
    (inner / "__init__.py").touch()
    (folder / package / "parts.py").write_text(HELPER)
    (inner / "scale.py").write_text(KERNEL.format(source="..parts"))
    return inner / "scale.py"


def compile_scale(folder: Path, *command: str) -> subprocess.CompletedProcess:
    arguments = [
        "-n",
        "scale",
        "-s",
        "*fp32, 64",
        "-g",
        "1",
        "-t",
        "cpu",
        "-o",
        "out/scale",
        "--depfile",
        "out/scale.d",
    ]
    full = [sys.executable, "-m", "deuteron.tools.compile", *command, *arguments]
    return subprocess.run(full, cwd=folder, capture_output=True, text=True)


def dependencies(folder: Path) -> set[str]:
    """The files that the depfile names, relative to the folder."""
    rule, *others = (folder / "out/scale.d").read_text().replace("\\\n", " ").splitlines()
    targets, _, sources = rule.partition(":")
    assert others == [f"{source}:" for source in sources.split()]
    assert sorted(map(Path, targets.split())) == sorted(p.relative_to(folder) for p in folder.glob("out/scale.*_*"))
    return {os.path.relpath(folder / source, folder) for source in sources.split()}


@pytest.mark.parametrize("command", [["pkg/ops/scale.py"], ["-m", "pkg.ops.scale"]], ids=["path", "module"])
def test_kernels_in_packages(command: list[str], tmp_path: Path):
    make_package(tmp_path, "pkg")
    result = compile_scale(tmp_path, *command)
    assert result.returncode == 0, result.stderr
    parts = {"pkg/__init__.py", "pkg/parts.py", "pkg/ops/__init__.py", "pkg/ops/scale.py"}
    assert dependencies(tmp_path) == parts
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    again = compile_scale(tmp_path, *command)
    assert [line.split()[0] for line in again.stderr.splitlines()] == ["unchanged"] * 3
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()} == before


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
def test_a_file_that_make_waits_for(tmp_path: Path):
    """The names of what is written have a hash, so that a rule of make's is for another file."""
    make_package(tmp_path, "pkg")
    options = "-n scale -s '*fp32, 64' -g 1 -t cpu -o out/scale --depfile out/scale.d --depfile-target $@"
    command = f"{sys.executable} -m deuteron.tools.compile pkg/ops/scale.py {options}"
    (tmp_path / "Makefile").write_text(f"out/stamp:\n\t{command}\n\ttouch $@\n-include out/scale.d\n")

    def make() -> str:
        done = subprocess.run(["make"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    assert "wrote out/scale." in make()
    assert "up to date" in make()
    later = time.time() + 5
    os.utime(tmp_path / "pkg/parts.py", (later, later))
    assert "unchanged out/scale." in make()


def test_relative_imports_outside_of_packages(tmp_path: Path):
    (tmp_path / "scale.py").write_text(KERNEL.format(source=".parts"))
    result = compile_scale(tmp_path, "scale.py")
    assert result.returncode == 1
    assert "'scale.py' has relative imports, and its folder is no package (it has no __init__.py)" in result.stderr


def test_a_file_whose_imports_begin_further_up(tmp_path: Path):
    folder = tmp_path / "pkg"
    folder.mkdir()
    (folder / "parts.py").write_text(HELPER)
    (folder / "scale.py").write_text(KERNEL.format(source="pkg.parts"))
    result = compile_scale(folder, "scale.py")
    assert result.returncode == 1
    assert (
        f"cannot import 'scale.py': ModuleNotFoundError: No module named 'pkg'. It is in '{tmp_path}': Python imports "
        'this file from there as the module pkg.scale. Say -m pkg.scale, in deuteron.toml module = "pkg.scale"\n'
    ) in result.stderr
    assert compile_scale(tmp_path, "-m", "pkg.scale").returncode == 0


def test_a_module_that_does_not_exist(tmp_path: Path):
    result = compile_scale(tmp_path, "-m", "nothing.there")
    assert result.returncode == 1
    assert result.stderr == "error: cannot import 'nothing.there': ModuleNotFoundError: No module named 'nothing'\n"
    (tmp_path / "scale.py").write_text("")
    result = compile_scale(tmp_path, "-m", "scale.py")
    assert 'It is a file: name it without -m, in deuteron.toml source = "scale.py"' in result.stderr


@pytest.mark.parametrize("command", [[], ["x.py", "-m", "x"]])
def test_a_file_or_a_module(command: list[str]):
    result = CliRunner().invoke(main, ["compile", *command, "-n", "k", "-s", "i32", "-g", "1"])
    assert result.exit_code == 2
    assert "name a Python file, or a module with -m" in result.output


def test_dependencies_that_were_loaded_before_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = make_package(tmp_path, "loaded_before")
    monkeypatch.syspath_prepend(str(tmp_path))
    load_module(ModuleName("loaded_before.ops.scale"))
    names = [path.name for path in dependencies_of(load_module(file))]
    assert names == ["__init__.py", "__init__.py", "scale.py", "parts.py"]


def test_of_installed_packages_all_that_is_loaded_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    place = tmp_path / "site-packages"
    make_package(place, "installed_one")
    monkeypatch.syspath_prepend(str(place))
    (tmp_path / "scale.py").write_text(KERNEL.format(source="installed_one.parts") + "\nimport numpy, click\n")
    found = dependencies_of(load_module(tmp_path / "scale.py"))
    assert {path.name for path in found if path.is_relative_to(tmp_path)} == {"__init__.py", "scale.py", "parts.py"}
    assert any("numpy" in path.parts for path in found)
