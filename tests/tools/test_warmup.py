"""`deuteron warmup`: what a run has compiled is in the cache of the next one, elsewhere, which compiles nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

import deuteron
from deuteron.tools.main import main

PROGRAM = """
import sys
import numpy as np
import triton
import triton.language as tl
from shapes import Shape, twice

def made(factor):
    @triton.jit
    def inner(x, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(x + i, factor * tl.load(x + i))
    return inner

@triton.autotune(configs=[triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 8}, num_warps=2)], key=["n"])
@triton.jit
def scale(x, out, n, shape: tl.constexpr, FN: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, FN(tl.load(x + i, mask=i < n)) + shape, mask=i < n)

local = made(tl.constexpr(3))

if GUARD:
    x, out = np.zeros((2, 16), np.float32)
    scale[lambda meta: (triton.cdiv(16, meta["BLOCK"]),)](x, out, 16, Shape.WIDE, twice)
    local[(1,)](out, 16)
    assert (out == 3 * Shape.WIDE).all(), out
    print(sum(not each.is_cached for each in __import__("deuteron").recompiles()))
"""
SHAPES = """
import enum
import triton

class Shape(enum.IntEnum):
    WIDE = 7

@triton.jit
def twice(x):
    return 2 * x
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "shapes.py").write_text(SHAPES)
    return tmp_path / "project"


def python(project, cache, *arguments, **variables):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "DEUTERON_CACHE_DIR": str(cache), **variables}
    environment |= {"DEUTERON_TARGET": "cpu", "DEUTERON_COMPILE_PROCESSES": "2"}
    return subprocess.run([sys.executable, *arguments], cwd=project, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("guard", ["__name__ == '__main__'", "True"])
def test_a_run_after_it_compiles_nothing(project, tmp_path, guard):
    (project / "program.py").write_text(PROGRAM.replace("GUARD", guard))
    run = ["-m", "deuteron", "run", "program.py"]
    found = python(project, tmp_path / "first", *run, DEUTERON_RECORD="manifest.json")
    assert found.returncode == 0, found.stderr
    assert len((project / "manifest.json").read_text().splitlines()) == 3
    moved = project.rename(tmp_path / "moved")
    warm = ["-m", "deuteron", "warmup", "manifest.json"]
    found = python(moved, tmp_path / "second", *warm)
    made = "compiled 3 kernels, 0 were"  # an autotuner that is reached compiles before it launches
    made = made if guard != "True" else "compiled 2 kernels, 1 were"
    assert found.stdout == f"{made} in the cache, 0 failed\n", found.stdout + found.stderr
    found = python(moved, tmp_path / "second", *run, DEUTERON_STRICT="1")
    assert (found.returncode, found.stdout) == (0, "0\n"), found.stderr


def run(*args):
    return CliRunner().invoke(main, ["warmup", *args])


@pytest.fixture
def listed(project, monkeypatch):
    """A manifest of a kernel that adds one, in a module, and the module's file."""
    (project / "adding.py").write_text(ADDING)
    monkeypatch.chdir(project)
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(project / "cache"))
    command = "import numpy as np, adding; adding.add[(1,)](np.zeros(8, np.float32), 8)"
    found = python(project, project / "elsewhere", "-c", command, DEUTERON_RECORD="manifest.json")
    assert found.returncode == 0, found.stderr
    monkeypatch.delitem(sys.modules, "adding", raising=False)
    yield project / "adding.py"
    sys.modules.pop("adding", None)


ADDING = """
import deuteron
import deuteron.language as tl

@deuteron.jit
def add(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, 1 + tl.load(x + i))
"""


def test_what_is_there_is_not_compiled_again(listed):
    for expected in ("compiled 1 kernel, 0 were", "compiled 0 kernels, 1 were"):
        found = run("manifest.json", "manifest.json")
        assert found.exit_code == 0 and found.output.startswith(expected), found.output


def test_from_python(listed):
    warmed = deuteron.warm_up(["manifest.json"])
    assert (warmed.compiled, warmed.cached, warmed.failures) == (1, 0, [])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("def add", "def subtract", "'adding' defines no kernel 'add' any more"),
        ("import deuteron\n", "import absent_module\n", "cannot import 'adding': ModuleNotFoundError"),
        ("(x, BLOCK", "(x, y, BLOCK", "this is of a kernel with 2 parameters, and there are 3"),
        ("1 + tl.load(x + i)", "1 + tl.load(x + j)", "'j' is not defined"),
    ],
)
def test_what_fails_is_told_and_the_rest_is_compiled(listed, old, new, message):
    listed.write_text(listed.read_text().replace(old, new))
    other = (listed.parent / "manifest.json").read_text().replace('"add"', '"other"')
    listed.write_text(listed.read_text() + ADDING.replace("def add", "def other"))
    with (listed.parent / "manifest.json").open("a") as file:
        file.write(other)
    found = run("manifest.json")
    is_import = "import" in old
    assert found.exit_code == 1 and ("compiled 0 kernels" if is_import else "compiled 1 kernel,") in found.output, (
        found.output
    )
    assert message in found.output and "add of adding for cpu" in found.output


def test_a_manifest_that_is_not_there(tmp_path):
    found = run(str(tmp_path / "absent.json"))
    assert found.exit_code == 1 and "cannot read" in found.output
