"""The C files of the runtime part are C as they stand, in both languages, and share nothing they do not mean to."""

import subprocess
from pathlib import Path

import pytest
from aot.workspace import C99, CXX17

import deuteron.aot
from deuteron.aot.templates import comment_text, runtime_source

RUNTIME = Path(deuteron.aot.__path__[0]) / "runtime"


@pytest.mark.parametrize("compiler", [C99, CXX17], ids=["c99", "c++17"])
@pytest.mark.parametrize("name", sorted(path.name for path in RUNTIME.glob("*.c")))
def test_builds_alone(name: str, compiler: list[str], tmp_path: Path):
    subprocess.run([*compiler, "-Wmissing-declarations", "-c", RUNTIME / name, "-o", tmp_path / "x.o"], check=True)


@pytest.mark.parametrize(
    "file, count, version",
    [("cpu_pool.c", 5, "_v2"), ("cuda_kernel.c", 6, "_v5"), ("cuda_tensor_maps.c", 3, "_v5")],
)
def test_every_shared_name_has_a_version(file: str, count: int, version: str, tmp_path: Path):
    """Files that two versions of Deuteron emitted are linked into one program."""
    names = shared_names(file, tmp_path) - shared_names("executor.c", tmp_path)  # which cpu_pool.c includes
    assert len(names) == count
    assert all(name.startswith("deuteron_") and name.endswith(version) for name in names)


def shared_names(file: str, folder: Path) -> set[str]:
    """What an object of a file defines for others."""
    subprocess.run(["gcc", "-c", RUNTIME / file, "-o", folder / "x.o"], check=True)
    command = ["nm", "-g", "--defined-only", folder / "x.o"]
    symbols = subprocess.run(command, capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in symbols.stdout.splitlines()}


def test_source_has_no_includes_of_its_own():
    source = runtime_source("cpu_types.h", "cpu_pool.c")
    assert '#include "' not in source
    assert "#include <pthread.h>" in source


def test_comment_text():
    assert comment_text("a */ b /* c\n ??/ d") == "a * / b / * c ? ?/ d"
